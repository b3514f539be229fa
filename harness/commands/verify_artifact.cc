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
#include "harness/claims/claim.h"
#include "harness/folders/rebuild.h"
#include "harness/table/html.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// Of JSON, and of the CSV of claims: members that are words for people, of which numbers and verdicts are compared.
/// All others are values.
bool is_prose(std::string_view key) {
  constexpr std::string_view kProse[] = {"title", "notes", "text", "source", "limit", "unit", "grid"};
  return std::ranges::find(kProse, key) != std::end(kProse);
}

/// Members of JSON in which every name is one of an axis, and so none is prose.
bool has_axes(std::string_view key) {
  constexpr std::string_view kOfAxes[] = {"labels", "row_axes", "column_axes", "place"};
  return std::ranges::find(kOfAxes, key) != std::end(kOfAxes);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The numbers of a text, with their signs, and the verdicts, in the text's order.
std::vector<std::string> numbers_in(std::string_view text) {
  constexpr std::string_view kMinus[] = {"$-$", "−", "-"};  // of LaTeX, of people, of programs
  std::vector<std::string> numbers;
  for (size_t i = 0; i < text.size();) {
    const std::string_view before = text.substr(0, i), rest = text.substr(i);
    if (is_digit(rest[0])) {
      size_t end = 1;
      while (end < rest.size() && (is_digit(rest[end]) || (rest[end] == '.' && is_digit(rest[end - 1])))) ++end;
      const auto number = rest.substr(0, rest[end - 1] == '.' ? end - 1 : end);
      const auto minus = std::ranges::find_if(kMinus, [&](std::string_view one) { return before.ends_with(one); });
      numbers.push_back((minus != std::end(kMinus) ? "-" : before.ends_with('+') ? "+" : "") + std::string(number));
      i += number.size();
      continue;
    }
    for (int verdict = 0; verdict < kVerdicts; ++verdict) {
      const char* const name = name_of(static_cast<ClaimVerdict>(verdict));
      if (rest.starts_with(name)) numbers.emplace_back(name);
    }
    ++i;
  }
  return numbers;
}

/// A phrase for the first number in which two texts differ; "" if they have the same ones.
std::string differing_numbers(std::string_view packed, std::string_view made) {
  const std::vector<std::string> before = numbers_in(packed), now = numbers_in(made);
  const auto [was, is] = std::ranges::mismatch(before, now);
  if (was == before.end() && is == now.end()) return "";
  return fmt::format("the numbers differ: {}, made again {}", was == before.end() ? "none" : *was,
                     is == now.end() ? "none" : *is);
}

/// Without the elements from `begin` to `end`.
std::string without(std::string text, std::string_view begin, std::string_view end) {
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    const size_t to = text.find(end, at + begin.size());
    text.erase(at, to == std::string::npos ? to : to + end.size() - at);
  }
  return text;
}

/// What a page shows. Its data are in scripts with a type, and are kept.
std::string shown_by(std::string page) {
  page = without(std::move(page), "<meta http-equiv=", ">");  // the checksums of style and script
  return without(without(std::move(page), "<style>", "</style>"), "<script>", "</script>");
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

/// A text or texts; nullopt for anything else.
std::optional<std::string> prose_in(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  std::string text;
  for (const json& one : value) {
    if (!one.is_string()) return std::nullopt;
    text += one.get_ref<const std::string&>() + "\n";
  }
  return text;
}

enum class Members { kMayBeProse, kAreValues };

/// Puts a phrase for each value of `packed` that `made` has not into `values`. What only `made` has, where it has
/// names, an earlier build did not write.
void compare(const json& packed, const json& made, const std::string& place, Members members,
             std::vector<std::string>& values) {
  if (packed.is_object() && made.is_object()) {
    for (const auto& [key, value] : packed.items()) {
      const auto found = made.find(key);
      const json again = found == made.end() ? json() : *found;
      const std::string inner = place.empty() ? key : place + ", " + key;
      const auto prose = prose_in(value), prose_again = prose_in(again);
      if (members == Members::kMayBeProse && is_prose(key) && prose && prose_again) {
        const std::string phrase = differing_numbers(*prose, *prose_again);
        if (!phrase.empty()) values.push_back(inner + ": " + phrase);
      } else {
        compare(value, again, inner, has_axes(key) ? Members::kAreValues : members, values);
      }
    }
  } else if (packed.is_array() && made.is_array() && packed.size() == made.size()) {
    for (size_t i = 0; i < packed.size(); ++i)
      compare(packed[i], made[i], fmt::format("{} {}", place, i + 1), members, values);
  } else if (!are_equal(packed, made)) {
    const auto shown = [](const json& value) -> std::string {
      if (value.is_null()) return "nothing";
      if (value.is_structured()) return counted(std::ssize(value), "item");  // of a foreign file, maybe a deep one
      return value.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    values.push_back(fmt::format("{}: {}, made again {}", place, shown(packed), shown(made)));
  }
}

/// A page of this build, with the name of another.
std::string as_made_by(const std::string& build, std::string page) {
  const std::string own = "tearless " + escape_html(std::string(build_stamp())),
                    other = "tearless " + escape_html(build);
  for (size_t at = page.find(own); at != std::string::npos; at = page.find(own, at + other.size()))
    page.replace(at, own.size(), other);
  return page;
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
  const PrintedResults printed = [&] {
    try {
      return print_results(workspace, manifest.at("sweeps"), manifest.at("file"), licences);
    } catch (const MachineError&) {
      throw;
    } catch (const UserError& error) {
      fail("{} cannot be made again by this build: {}", manifest.at("file").get<std::string>(),
           without(error.what(), workspace.root().string() + "/", ""));
    }
  }();
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
  // The page that another build has made names that one.
  const bool is_page = name.ends_with(".html");
  if (is_page && !check.same_build && packed == as_made_by(check.made_by, made)) return;
  const std::optional<json> before = values_in(name, packed), now = values_in(name, made);
  const size_t known = check.values.size();
  if (now && !before) {
    check.values.push_back(fmt::format("{}: it has no values that can be read", name));
  } else if (now) {
    std::vector<std::string> differing;
    const bool has_prose = !name.ends_with(".csv") || name.starts_with("artifact/claims/");
    compare(*before, *now, "", has_prose ? Members::kMayBeProse : Members::kAreValues, differing);
    for (const std::string& one : differing) check.values.push_back(fmt::format("{}, {}", name, one));
  } else {
    const std::string phrase = is_page ? differing_numbers(shown_by(packed), shown_by(as_made_by(check.made_by, made)))
                                       : differing_numbers(packed, made);
    if (!phrase.empty()) check.values.push_back(fmt::format("{}: {}", name, phrase));
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
      if (!manifest) throw DamagedArchive(fmt::format("{} is not as it was packed", kManifest));
      if (manifest->at("format") > kArtifactFormat)
        fail("{} was made by a later tearless ({}); use that one", archive.string(),
             manifest->at("made_by").get<std::string>());
      check.made_by = manifest->at("made_by");
      check.made_at = manifest->at("made_at");
      check.counts = manifest->at("counts");
      check.members = manifest->at("members").size();
      check.same_build = check.made_by == build_stamp();
      compare_members(folder, manifest->at("members"), check);
      if (again && check.damage.empty()) make_again(Workspace(folder), *manifest, check);
    } catch (const json::exception&) {
      throw DamagedArchive(fmt::format("{} is not as it was packed", kManifest));
    }
  };
  try {
    with_unpacked(archive, use);
  } catch (const DamagedArchive& error) {  // cut, damaged, or with members that lead elsewhere
    check.damage.emplace_back(error.what());
  }
  for (std::string& sentence : check.damage) {
    if (const size_t at = sentence.find(unpacked); !unpacked.empty() && at != std::string::npos)
      sentence.erase(at, unpacked.size());
  }
  return check;
}

}  // namespace tearless::harness
