#include "harness/folders/looks.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/json_members.h"
#include "base/sealed_json.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;

TEARLESS_JSON(LookTaken, (claim, hash, look, seeds, verdict, n, reason, shown, saw, asks, at),
              (level, estimate, low, high))

namespace {

fs::path file_of(const Workspace& workspace, const std::string& sweep) { return workspace.sweep(sweep) / kLooksFile; }

}  // namespace

void append_looks(const Workspace& workspace, const std::string& sweep, const std::vector<LookTaken>& looks) {
  const fs::path file = file_of(workspace, sweep);
  std::string lines;
  for (const LookTaken& look : looks) {
    nlohmann::json record = look;
    record["sweep"] = sweep;
    record["place"] = nlohmann::json::array();  // of pairs: an object would lose the order of the axes
    for (const auto& [axis, label] : look.place) record["place"].push_back({axis, label});
    std::string line = sealed(std::move(record));
    std::erase(line, '\n');
    lines += line + "\n";
  }
  const std::string before = fs::exists(file) ? read_file(file) : "";
  AppendFile out(file, before.rfind('\n') == std::string::npos ? 0 : before.rfind('\n') + 1);  // without a torn line
  out.append(lines);
  out.sync();
}

std::vector<LookTaken> read_looks(const Workspace& workspace, const std::string& sweep) {
  const fs::path file = file_of(workspace, sweep);
  if (!fs::exists(file)) return {};
  const std::string text = read_file(file);
  const std::string_view whole = std::string_view(text).substr(0, text.rfind('\n') + 1);
  std::vector<LookTaken> looks;
  for (const std::string_view line : split_lines(whole)) {
    try {
      const nlohmann::json record = unsealed(line).value();
      if (record.at("sweep") != sweep) throw std::invalid_argument("of another sweep");
      LookTaken look = record.get<LookTaken>();
      for (const auto& one : record.at("place")) look.place.emplace_back(one.at(0), one.at(1));
      looks.push_back(std::move(look));
    } catch (const std::exception&) {
      fail(
          "{}: line {} is damaged or of another sweep; restore the file, or delete the sweep and submit its grid again",
          file.string(), looks.size() + 1);
    }
  }
  return looks;
}

}  // namespace tearless::harness
