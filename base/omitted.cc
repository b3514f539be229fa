#include "base/omitted.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"

namespace tearless {
namespace fs = std::filesystem;
using nlohmann::json;

Omitted read_omitted(const RunDirectory& run) {
  const std::optional<std::string> text = read_if_there(run.omitted());
  if (!text) return {};
  try {
    const std::optional<json> record = unsealed(*text);
    // Without its seal the text would pass as that of another program.
    if (record && sealed(*record) == *text && record->at("run") == run.id()) {
      Omitted omitted;
      for (const auto& [name, file] : record->at("files").items()) {
        omitted[name] = {.sha256 = file.at("sha256"), .bytes = file.at("bytes")};
      }
      return omitted;
    }
  } catch (const json::exception&) {
  }
  fail("{} was edited, is damaged, or belongs to another run; restore it from the copy that it came with",
       run.omitted().string());
}

void write_omitted(const RunDirectory& run, const Omitted& omitted, const fs::path& copy) {
  json files = json::object();
  for (const auto& [name, file] : omitted) files[name] = {{"sha256", file.sha256}, {"bytes", file.bytes}};
  replace_unsynced(copy / run.omitted().filename(), sealed({{"run", run.id()}, {"files", std::move(files)}}));
}

bool is_omitted(const RunDirectory& run, const std::string& name) {
  return !fs::exists(run.root() / name) && read_omitted(run).contains(name);
}

void require_here(const RunDirectory& run, const std::string& name) {
  if (!is_omitted(run, name)) return;
  fail(
      "{} is not here: this is a copy of results alone, and omitted.json lists what it lacks; use the workspace that "
      "was copied",
      (run.root() / name).string());
}

}  // namespace tearless
