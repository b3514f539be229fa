#include "harness/runs/resume_check.h"

#include <fmt/ranges.h>

#include <set>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

std::string ending_of(const Done& done) {
  return fmt::format("{} at update {}: {}", done.outcome, done.step, done.reason);
}

FileDifference first_difference(const std::string& file, const std::string& expected, const std::string& found) {
  const std::vector<std::string_view> a = split_lines(expected), b = split_lines(found);
  size_t line = 0;
  while (line < a.size() && line < b.size() && a[line] == b[line]) ++line;
  const auto text_at = [line](const std::vector<std::string_view>& lines) {
    return line < lines.size() ? std::string(lines[line]) : "";
  };
  return {.file = file, .line = static_cast<int64_t>(line) + 1, .expected = text_at(a), .found = text_at(b)};
}

}  // namespace

const char* signal_name(const TrainingStop& stop) { return stop.kill ? "SIGKILL" : "SIGTERM"; }

std::vector<FileDifference> differences_between(const RunDirectory& undisturbed, const RunDirectory& resumed) {
  const Done expected = read_done(undisturbed).value(), found = read_done(resumed).value();
  std::vector<FileDifference> differences;
  if (ending_of(expected) != ending_of(found)) {
    differences.push_back({.file = "DONE", .line = 1, .expected = ending_of(expected), .found = ending_of(found)});
  }
  std::set<std::string> names = {"metrics.jsonl", "scores.json"};
  for (const Done& done : {expected, found}) {
    for (const auto& [name, checksum] : done.files) names.insert(name);
  }
  for (const std::string& name : names) {
    const fs::path a = undisturbed.root() / name, b = resumed.root() / name;
    if (fs::exists(a) != fs::exists(b)) {
      differences.push_back({.file = name,
                             .line = 0,
                             .expected = fs::exists(a) ? "there" : "missing",
                             .found = fs::exists(b) ? "there" : "missing"});
    } else if (fs::exists(a)) {
      const std::string text = read_file(a), other = read_file(b);
      if (text != other) differences.push_back(first_difference(name, text, other));
    }
  }
  return differences;
}

json to_json(const ResumeCheck& check) {
  json stops = json::array(), differences = json::array();
  for (const TrainingStop& stop : check.stops) {
    stops.push_back({{"update", stop.update}, {"signal", signal_name(stop)}, {"resumed_from", stop.resumed_from}});
  }
  for (const FileDifference& difference : check.differences) {
    differences.push_back({{"file", difference.file}, {"line", difference.line}});
  }
  return {{"outcome", check.is_equal() ? "equal" : "different"},
          {"verified_at", check.verified_at},
          {"program", check.program},
          {"version", check.version},
          {"seed", check.seed},
          {"stops_requested", check.stops_requested},
          {"stops", std::move(stops)},
          {"settings", check.settings},
          {"trained_twice", check.trained_twice},
          {"differences", std::move(differences)}};
}

ResumeCheck resume_check_from(const json& record) {
  ResumeCheck check{.verified_at = record.at("verified_at"),
                    .program = record.at("program"),
                    .version = record.at("version"),
                    .seed = record.at("seed"),
                    .stops_requested = record.at("stops_requested"),
                    .stops = {},
                    .settings = record.at("settings"),
                    .trained_twice = record.at("trained_twice"),
                    .differences = {}};
  for (const json& stop : record.at("stops")) {
    check.stops.push_back({.update = stop.at("update"),
                           .kill = stop.at("signal").get<std::string>() == "SIGKILL",
                           .resumed_from = stop.at("resumed_from")});
  }
  for (const json& difference : record.at("differences")) {
    check.differences.push_back(
        {.file = difference.at("file"), .line = difference.at("line"), .expected = "", .found = ""});
  }
  return check;
}

std::optional<ResumeCheck> read_resume_check(const RunDirectory& run) {
  if (!fs::exists(run.resume_check())) return std::nullopt;
  try {
    if (const std::optional<json> record = read_sealed(run.resume_check())) return resume_check_from(*record);
  } catch (const json::exception&) {
  }
  fail("{} is damaged; delete it, and verify the run again: tearless verify-resume {}", run.resume_check().string(),
       run.id());
}

void write_resume_check(const RunDirectory& run, const ResumeCheck& check) {
  write_atomically(run.resume_check(), sealed(to_json(check)));
}

std::string outcome_of(const ResumeCheck& check) {
  const std::string settings = check.settings.empty() ? "" : fmt::format(" ({})", fmt::join(check.settings, ", "));
  return (check.is_equal() ? "equal" : "different") + settings;
}

std::string sentence_of(const ResumeCheck& check) {
  std::vector<std::string> stops, files;
  for (const TrainingStop& stop : check.stops) {
    stops.push_back(fmt::format("{} at {}{}", signal_name(stop), stops.empty() ? "update " : "", stop.update));
  }
  for (const FileDifference& difference : check.differences) {
    files.push_back(difference.line == 0 ? difference.file
                                         : fmt::format("{} from line {}", difference.file, difference.line));
  }
  std::string text = check.is_equal() ? "equal" : "DIFFERENT";
  text += fmt::format(" after {} ({}; seed {})", counted(static_cast<int64_t>(stops.size()), "stop"),
                      fmt::join(stops, ", "), check.seed);
  if (!files.empty()) text += fmt::format(" in {}", fmt::join(files, ", "));
  if (!check.settings.empty()) text += fmt::format(", with {}", fmt::join(check.settings, ", "));
  if (check.settings.empty() && check.trained_twice) text += ", compared with a second training without stops";
  return text;
}

}  // namespace tearless::harness
