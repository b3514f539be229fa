#include "harness/archive/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"
#include "base/words.h"
#include "harness/folders/looks.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/attempt_files.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;
namespace {

using Keys = std::set<std::string_view>;
const std::map<std::string, Keys> kPublished = {
    {"start.json",
     {"attempt", "checkpoint", "device", "environment", "numerics", "processor", "program", "program_file",
      "reported_ns", "runtime", "secrets", "started_at", "step", "version"}},
    {"exit.json", {"asked", "code", "disk_full", "ended_at", "files", "memory_kills", "signal", "unread"}},
    {kEndedFile, {"class", "reason"}},
    {"resume.json", {"attempt", "differences", "outcome", "seed", "stops", "verified_at"}},
    {"sweep.json",
     {"commit", "declared", "format", "grid_file", "name", "note", "policy", "program", "scores", "stamp",
      "submitted_at", "tags", "title", "windows"}},
    {"commit", {"clean", "diff", "id", "tracked"}},
    {"policy",
     {"environment", "grace_seconds", "memory_bytes", "same_device", "stall_seconds", "tries", "until_decided"}},
    {"stamp", {"identity", "numerics", "program", "runtime", "version"}},
    {"events.jsonl", {"at", "event", "priority", "queued_as", "submission"}},
};

json published_part_of(const json& record, const std::string& file) {
  json kept = json::object();
  for (const std::string_view key : kPublished.at(file)) {
    if (record.contains(key)) kept[key] = record[key];
  }
  return kept;
}

json whole_record(const fs::path& file) {
  const std::optional<json> record = read_sealed(file);
  if (!record) fail("{} is damaged", file.string());
  return *record;
}

std::string last_part(const json& path) { return path.is_string() ? fs::path(path.get<std::string>()).filename() : ""; }

// --- texts -----------------------------------------------------------------------------------------------------------

// What to write for words that tell of who trained. The longest first: one may be a part of another.
using Substitutes = std::map<std::string, std::string, decltype([](const std::string& a, const std::string& b) {
                               return std::pair(b.size(), a) < std::pair(a.size(), b);
                             })>;

Substitutes substitutes_for(const RunDirectory& run) {
  constexpr size_t kShortest = 4;  // of values of variables: "1" is in many texts
  Substitutes substitutes;
  for (int64_t attempt = 1, newest = run.newest_attempt(); attempt <= newest; ++attempt) {
    const json start = read_sealed(run.attempt(attempt) / "start.json").value_or(json::object());
    if (const json host = start.value("host", json()); host.is_string()) substitutes[host] = "(a machine)";
    for (const auto& [name, value] : environment_of(run, attempt).variables) {
      if (value.size() >= kShortest) substitutes[value] = "$" + name;
    }
    const std::string worker = claimant_of(run, attempt);
    substitutes[worker] = "(a machine)";
    substitutes[worker.substr(0, worker.rfind('-'))] = "(a machine)";
  }
  substitutes.erase("");
  return substitutes;
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string with_substitutes(std::string text, const Substitutes& substitutes) {
  for (const auto& [word, instead] : substitutes) {
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
      const size_t end = at + word.size();
      const bool is_word = (at == 0 || !is_of_word(text[at - 1])) && (end == text.size() || !is_of_word(text[end]));
      if (is_word) text.replace(at, word.size(), instead);
      at = is_word ? at + instead.size() : end;
    }
  }
  return text;
}

// --- files of attempts -----------------------------------------------------------------------------------------------

std::string published_measured(const fs::path& file) {
  json record = whole_record(file);
  if (std::ranges::all_of(record, [](const json& value) { return value.is_number(); })) return read_file(file);
  json numbers = json::object();  // which alone are read
  for (const auto& [key, value] : record.items()) {
    if (value.is_number()) numbers[key] = value;
  }
  return sealed(std::move(numbers));
}

void take_values_away(json& environment) {
  for (json& value : environment) value = environment.is_object() ? json() : value;
}

// True if there were any.
bool take_secrets_away(json& node, bool is_environment = false) {
  if (!node.is_object()) return false;
  bool found = false;
  for (auto at = node.begin(); at != node.end();) {
    const bool is_one = is_environment && at->is_string() && is_secret(at.key());
    found |= is_one || take_secrets_away(*at, is_environment || at.key() == "environment");
    at = is_one ? node.erase(at) : std::next(at);
  }
  return found;
}

}  // namespace

std::string without_secrets(const fs::path& file) {
  std::string text = read_file(file);
  std::optional<json> record = unsealed(text);
  return record && take_secrets_away(*record) ? sealed(*std::move(record)) : text;
}

std::string without_folders(std::string_view text) {
  constexpr std::string_view kBefore = " \t\n\"'`(<[{=,;:|>", kEnds = " \t\n\"'`)>]},;:|";
  std::string shorter;
  for (size_t at = 0; at < text.size();) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool is_of_url = text.substr(at).starts_with("//");
    const bool begins = text[at] == '/' && ((kBefore.find(before) != std::string_view::npos && !is_of_url) ||
                                            text.substr(0, at).ends_with("file://"));
    const bool is_quoted = begins && (before == '"' || before == '\'');
    const size_t end =
        !begins     ? at + 1
        : is_quoted ? std::min(text.find_first_of(std::string{before, '\n'}, at), text.size())  // it may have spaces
                    : std::min(text.find_first_of(kEnds, at), text.size());
    const std::string_view path = text.substr(at, end - at);
    const size_t last = path.find_last_not_of("/\\");
    const size_t slash = begins && last != std::string_view::npos ? path.rfind('/', last) : 0;
    shorter += slash == 0 ? path : path.substr(slash + 1);
    at = end;
  }
  return shorter;
}

std::string published_reason(const RunDirectory& run, const std::string& reason) {
  return reason.empty() ? "" : without_folders(with_substitutes(reason, substitutes_for(run)));
}

std::string published_file(const RunDirectory& run, const fs::path& name) {
  const fs::path file = run.root() / name;
  const std::string own = name.filename();
  if (own == "measured.json") return published_measured(file);
  if (own == "log.txt") {  // of which verdicts have the last line
    const std::string line = last_log_line(run, std::stoll(name.parent_path().filename()));
    return published_reason(run, line) + "\n";
  }
  if (!kPublished.contains(own)) return read_file(file);
  json record = published_part_of(whole_record(file), own);
  if (own == "start.json") {
    if (record.contains("program")) record["program"] = last_part(record["program"]);
    if (record.contains("environment")) take_values_away(record["environment"]);
  } else if (own == kEndedFile) {
    record["reason"] = published_reason(run, record.value("reason", ""));
  } else if (record.contains("files")) {
    for (auto& [of, checksum] : record["files"].items()) {
      const fs::path sealed_by_it = name.parent_path() / of;
      const auto text = read_if_there(run.root() / sealed_by_it);
      if (text && checksum == sha256(*text)) checksum = sha256(published_file(run, sealed_by_it));
    }
  }
  return sealed(std::move(record));
}

std::vector<std::string> publish_sweep(const Workspace& from, const std::string& id, const Workspace& to,
                                       bool with_diff) {
  const fs::path folder = from.sweep(id), copy = to.sweep(id);
  const Sweep sweep = read_sweep(from, id);  // refuses what is damaged
  make_folders_unsynced(copy);
  std::vector<std::string> with_paths;
  const auto write = [&](const char* name, const std::string& text, mode_t mode = 0644) {
    replace_unsynced(copy / name, text, mode);
    if (without_folders(text) != text) with_paths.push_back(fmt::format("sweeps/{}/{}", id, name));
  };
  write("grid.toml", read_file(folder / "grid.toml"));

  json about = published_part_of(whole_record(folder / "sweep.json"), "sweep.json");
  for (const char* part : {"policy", "stamp"}) about[part] = published_part_of(about[part], part);
  if (about.contains("commit")) about["commit"] = published_part_of(about["commit"], "commit");
  if (with_diff && sweep.commit.contains("diff")) {
    const std::optional<std::string> diff = diff_of(from, id, sweep.commit);
    if (!diff) fail("{} is not there, or not as it was written; leave out --with-diff", (folder / kDiffFile).string());
    write(kDiffFile, *diff, kDiffMode);
  }
  about["grid_file"] = last_part(about["grid_file"]);
  if (about.contains("note")) about["note"] = without_folders(about["note"].get<std::string>());
  if (fs::path(sweep.program).is_absolute()) about["program"] = last_part(about["program"]);
  if (about["policy"].contains("environment")) about["policy"]["environment"]["variables"] = json::object();
  replace_unsynced(copy / "sweep.json", sealed(about));

  std::string runs, events;
  const std::string run_lines = read_file(folder / "runs.jsonl");
  for (const std::string_view line : split_lines(run_lines)) {
    ordered_json run = ordered_json::parse(line);
    if (run.contains("local")) run["local"] = without_folders(run["local"].get<std::string>());
    run.erase("data");
    runs += run.dump() + "\n";
  }
  write("runs.jsonl", runs);

  const std::string event_lines = read_if_there(folder / "events.jsonl").value_or("");
  for (const std::string_view line : split_lines(event_lines)) {
    const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_object() && event.value("run", "") == "")
      events += published_part_of(event, "events.jsonl").dump() + "\n";
  }
  if (!events.empty()) replace_unsynced(copy / "events.jsonl", events);

  if (const auto looks = read_if_there(folder / kLooksFile)) write(kLooksFile, *looks);

  Grid grid = frozen_grid(from, id);
  grid.merged = without_folders(grid.merged);
  grid.file = grid.file.filename();
  grid.folder = ".";
  for (std::string& option : grid.set_options) option = without_folders(option);
  freeze_grid(to, id, grid);
  return with_paths;
}

}  // namespace tearless::harness
