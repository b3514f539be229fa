#include "harness/commands/verify_artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/numbers.h"
#include "base/sealed_json.h"
#include "base/words.h"
#include "harness/archive/archive.h"
#include "harness/archive/open_archive.h"
#include "harness/folders/rebuild.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// Of JSON and CSV: members that are words for people. All others are values.
bool is_prose(std::string_view key) {
  constexpr std::string_view kProse[] = {"title", "notes", "text", "source", "limit", "unit", "grid"};
  return std::ranges::find(kProse, key) != std::end(kProse);
}

/// The cells of a line of CSV (RFC 4180, as csv_line() writes it).
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && is_quoted && line.substr(i + 1).starts_with('"')) {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      cells.emplace_back();
    } else if (line[i] != '\r') {
      cells.back() += line[i];
    }
  }
  return cells;
}

/// An array of objects: header → cell.
json records_of_csv(std::string_view text) {
  json records = json::array();
  std::vector<std::string> header;
  for (const std::string_view line : split_lines(text)) {
    const std::vector<std::string> cells = cells_of(line);
    if (header.empty()) {
      header = cells;
      continue;
    }
    json record = json::object();
    for (size_t i = 0; i < cells.size(); ++i)
      record[i < header.size() ? header[i] : fmt::format("column {}", i + 1)] = cells[i];
    records.push_back(std::move(record));
  }
  return records;
}

bool are_equal(const json& a, const json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  if (a == b) return true;
  if (!a.is_string() || !b.is_string()) return false;
  const auto x = number_of<double>(a.get_ref<const std::string&>()),
             y = number_of<double>(b.get_ref<const std::string&>());
  return x && y && *x == *y;  // 0.50 and 0.5
}

/// Puts a phrase for each value of `packed` that `made` has not into `values`. What only `made` has, where it has
/// names, an earlier build did not write.
void compare(const json& packed, const json& made, const std::string& place, std::vector<std::string>& values) {
  if (packed.is_object() && made.is_object()) {
    for (const auto& [key, value] : packed.items()) {
      if (is_prose(key)) continue;
      const auto again = made.find(key);
      compare(value, again == made.end() ? json() : *again, place.empty() ? key : place + ", " + key, values);
    }
  } else if (packed.is_array() && made.is_array() && packed.size() == made.size()) {
    for (size_t i = 0; i < packed.size(); ++i) compare(packed[i], made[i], fmt::format("{} {}", place, i + 1), values);
  } else if (!are_equal(packed, made)) {
    const auto shown = [](const json& value) -> std::string {
      if (value.is_null()) return "nothing";
      if (value.is_structured()) return counted(std::ssize(value), "item");  // of a foreign file, maybe a deep one
      return value.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    values.push_back(fmt::format("{}: {}, made again {}", place, shown(packed), shown(made)));
  }
}

/// Nullopt for a file without values, or with none that can be read.
std::optional<json> values_in(const std::string& name, const std::string& text) {
  if (name.ends_with(".csv")) return json::object({{"row", records_of_csv(text)}});
  json parsed =
      name.ends_with(".json") ? json::parse(text, nullptr, /*allow_exceptions=*/false) : json(json::value_t::discarded);
  return parsed.is_discarded() ? std::nullopt : std::optional(std::move(parsed));
}

// --- an artefact -----------------------------------------------------------------------------------------------------

void compare_members(const fs::path& folder, const std::map<std::string, std::string>& members, ArtifactCheck& check) {
  std::set<std::string> left;
  for (const std::string& name : archived_files(folder)) left.insert(name);
  left.erase(kManifest);
  for (const auto& [name, checksum] : members) {
    if (left.erase(name) == 0) {
      check.damage.push_back(fmt::format("{} is missing", name));
    } else if (sha256_of_file(folder / name) != checksum) {
      check.damage.push_back(fmt::format("{} is not as it was packed", name));
    }
  }
  for (const std::string& name : left)
    check.damage.push_back(fmt::format("{} is in it, and the manifest does not have it", name));
}

void make_again(const Workspace& workspace, const json& manifest, ArtifactCheck& check) {
  if (const RebuildReport report = rebuild(workspace); !report.passed_over.empty()) {
    check.damage.push_back(report.passed_over.front());
    return;
  }
  std::vector<std::string> licences;
  std::set<std::string> packed;
  for (const std::string& name : archived_files(workspace.root())) {
    if (fs::path(name).parent_path() == kLicences) {
      licences.push_back(fs::path(name).filename());
    } else if (name.starts_with("artifact/") && name != kManifest) {
      packed.insert(name);
    }
  }
  const PrintedResults printed = print_results(workspace, manifest.at("sweeps"), manifest.at("file"), licences);
  check.counts = printed.counts;
  for (const ArtifactFile& file : printed.files) {
    if (packed.erase(file.name) > 0) {
      compare_printed(file.name, read_file(workspace.root() / file.name), file.bytes, check);
    } else {
      check.texts.push_back(fmt::format("{} (not in it)", file.name));
    }
  }
  for (const std::string& name : packed) check.values.push_back(fmt::format("{}: not made again", name));
}

}  // namespace

void compare_printed(const std::string& name, const std::string& packed, const std::string& made,
                     ArtifactCheck& check) {
  if (packed == made) return;
  const std::optional<json> before = values_in(name, packed), now = values_in(name, made);
  const size_t known = check.values.size();
  if (now && !before) {
    check.values.push_back(fmt::format("{}: it has no values that can be read", name));
  } else if (now) {
    std::vector<std::string> differing;
    compare(*before, *now, "", differing);
    for (const std::string& one : differing) check.values.push_back(fmt::format("{}, {}", name, one));
  }
  if (check.values.size() == known) check.texts.push_back(name);
}

ArtifactCheck check_artifact(const fs::path& archive, bool again) {
  ArtifactCheck check;
  std::string unpacked;  // where it was, which means nothing to people
  const auto use = [&](const fs::path& folder) {
    unpacked = folder.string() + "/";
    const std::optional<std::string> text = read_if_there(folder / kManifest);
    if (!text) {
      check.is_artifact = false;
      return;
    }
    const std::optional<json> manifest = unsealed(*text);
    try {
      if (!manifest) fail("{} is not as it was packed", kManifest);
      if (manifest->at("format") > kArtifactFormat)
        fail("it was made by a later tearless ({}); use that one", manifest->at("made_by").get<std::string>());
      check.made_by = manifest->at("made_by");
      check.made_at = manifest->at("made_at");
      check.counts = manifest->at("counts");
      check.members = manifest->at("members").size();
      check.same_build = check.made_by == build_stamp();
      compare_members(folder, manifest->at("members"), check);
      if (again && check.damage.empty()) make_again(Workspace(folder), *manifest, check);
    } catch (const json::exception&) {
      fail("{} is not as it was packed", kManifest);
    }
  };
  try {
    with_unpacked(archive, use);
  } catch (const MachineError&) {
    throw;
  } catch (const UserError& error) {  // cut, damaged, or with members that lead elsewhere
    check.damage.emplace_back(error.what());
  }
  for (std::string& sentence : check.damage) {
    if (const size_t at = sentence.find(unpacked); !unpacked.empty() && at != std::string::npos)
      sentence.erase(at, unpacked.size());
  }
  return check;
}

}  // namespace tearless::harness
