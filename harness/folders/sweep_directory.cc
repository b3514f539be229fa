#include "harness/folders/sweep_directory.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "base/settings.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/folders/looks.h"
#include "harness/store/workspace_format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

// The sweep's id is made of these bytes: an edit here would make every sweep that is submitted again a new one.
std::string id_lines_of(const Sweep& sweep) {
  std::string lines;
  for (const Run& run : sweep.runs) {
    ordered_json line = {
        {"id", run.id}, {"updates", run.updates}, {"coordinates", to_json(run.coordinates)}, {"seed", run.seed}};
    if (!run.waiting_for.empty()) line["waiting_for"] = run.waiting_for;
    lines += line.dump() + "\n";
  }
  return lines;
}

std::string run_lines_of(const Sweep& sweep) {
  std::string lines;
  for (const Run& run : sweep.runs) lines += to_json(run).dump() + "\n";
  return lines;
}

void read_runs(const fs::path& file, Sweep& sweep) {
  const std::string text = read_file(file);
  for (const std::string_view line : split_lines(text)) {
    sweep.runs.push_back(run_from(ordered_json::parse(line), sweep.runs.empty() ? nullptr : &sweep.runs.back()));
    const Run& run = sweep.runs.back();
    if (!run.settings.empty() && run_id(run.settings) != run.id) {
      fail("{} was changed: the settings of run {} no longer have that id; submit the sweep's grid again",
           file.string(), run.id);
    }
  }
}

void keep_wanted(const Workspace& workspace, Sweep& sweep) {
  const std::vector<int64_t>& first = sweep.policy.until_decided->first_seeds;
  std::set<std::string> asked;
  for (const LookTaken& look : read_looks(workspace, sweep.id)) asked.insert(look.asks.begin(), look.asks.end());
  std::erase_if(sweep.runs, [&](const Run& run) {
    return std::ranges::find(first, run.seed) == first.end() && !asked.contains(run.id);
  });
}

fs::path merged_file(const Workspace& workspace, const std::string& sweep) {
  return workspace.sweep(sweep) / "merged.toml";
}

/// Puts a line with a checksum in front of a text; it covers the sweep too, so that no other sweep's text has it.
std::string with_checksum(const std::string& sweep, std::string_view text) {
  const std::string checksum = sha256(fmt::format("{}\n{}", sweep, text));
  return fmt::format("# Sweep {} as it was submitted; not to be edited. SHA-256: {}\n{}", sweep, checksum, text);
}

bool ends_a_line(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() <= 0) return true;
  in.seekg(-1, std::ios::end);
  return in.get() == '\n';
}

// Applies what users and the scheduler decided about the sweep as a whole, in the order of events.jsonl. A line that a
// power cut tore is skipped.
void replay_events(const fs::path& file, Sweep& sweep) {
  if (!fs::exists(file)) return;
  const std::string text = read_file(file);
  for (const std::string_view line : split_lines(text)) {
    const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || event.value("run", "") != "") continue;
    const std::string what = event.value("event", "");
    const auto becomes = [&](SweepState state) {
      sweep.state = state;
      sweep.reason = event.value("text", "");
    };
    if (what == "submitted" || what == "resumed") becomes(SweepState::kActive);
    if (what == "submitted") {
      sweep.submission = {.newest = event.value("submission", int64_t{0}),
                          .queued = event.value("queued_as", int64_t{0})};
    }
    if (what == "paused") becomes(SweepState::kPaused);
    if (what == "cancelled") becomes(SweepState::kCancelled);
    if (what == "priority") sweep.priority = event.value("priority", int64_t{0});
  }
}

[[noreturn]] void fail_damaged(const fs::path& folder, const std::exception& error) {
  fail("{} is damaged ({}); delete that folder and submit its grid again", folder.string(), error.what());
}

// Of a foreign archive, too. json::exception if a member is missing or of another type.
json checked_commit(const json& about) {
  json commit = about.value("commit", json());
  if (commit.is_null()) return commit;
  commit.at("id").get<std::string>();
  commit.at("tracked").get<bool>();
  if (commit.contains("clean")) commit["clean"].get<bool>();
  if (commit.contains("diff")) {
    commit["diff"].at("sha256").get<std::string>();
    commit["diff"].at("lines").get<int64_t>();
  }
  return commit;
}

// Empty if the sweep's folder is damaged: `verify` says what is wrong with it.
Sweep sound_head(const Workspace& workspace, const std::string& sweep) {
  try {
    return read_sweep_head(workspace, sweep);
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

std::string sweep_id(const Sweep& sweep, std::string_view grid_text) {
  Sha256 hash;
  hash.update(grid_text);
  hash.update(id_lines_of(sweep));
  return fs::path(sweep.grid_file).stem().string() + "-" + hash.hex().substr(0, 8);
}

void freeze_sweep(const Workspace& workspace, const Sweep& sweep, std::string_view grid_text, std::string_view diff) {
  const fs::path folder = workspace.sweep(sweep.id);
  make_folders(folder);
  write_atomically(folder / "grid.toml", grid_text);
  write_atomically(folder / "runs.jsonl", run_lines_of(sweep));
  json about = {{"format", kWorkspaceFormat},
                {"title", sweep.title},
                {"name", sweep.name},
                {"grid_file", sweep.grid_file},
                {"submitted_at", sweep.submitted_at},
                {"program", sweep.program},
                {"stamp", sweep.stamp},
                {"policy", sweep.policy}};
  if (sweep.scores) about["scores"] = *sweep.scores;
  if (sweep.windows) about["windows"] = *sweep.windows;
  if (!sweep.tags.empty()) about["tags"] = sweep.tags;
  if (!sweep.note.empty()) about["note"] = sweep.note;
  if (!sweep.engine.empty()) about["engine"] = sweep.engine;
  if (!sweep.declared.empty()) about["declared"] = sweep.declared;
  if (!sweep.commit.is_null()) about["commit"] = sweep.commit;
  if (!diff.empty()) write_atomically(folder / kDiffFile, diff, kDiffMode);
  write_atomically(folder / "sweep.json", sealed(about));
  if (diff.empty()) remove_file(folder / kDiffFile);
}

void freeze_grid(const Workspace& workspace, const std::string& sweep, const Grid& grid) {
  std::string text = fmt::format("{}\n[submitted]\nfile = {}\nfolder = {}\n", grid.merged,
                                 toml_value(grid.file.string()), toml_value(grid.folder.string()));
  if (!grid.set_options.empty()) text += fmt::format("set = {}\n", toml_value(grid.set_options));
  make_folders(workspace.sweep(sweep));
  write_atomically(merged_file(workspace, sweep), with_checksum(sweep, text));
}

Grid frozen_grid(const Workspace& workspace, const std::string& sweep) {
  const fs::path file = merged_file(workspace, sweep);
  const std::string text = read_file(file);
  if (text != with_checksum(sweep, std::string_view(text).substr(text.find('\n') + 1))) {
    fail("{} is damaged, was changed, or is of another sweep; submit the sweep's grid again", file.string());
  }
  return parse_grid(text, file);
}

Sweep read_sweep_head(const Workspace& workspace, const std::string& id) {
  const fs::path file = workspace.sweep(id) / "sweep.json";
  try {
    const std::optional<json> record = unsealed(read_file(file));
    if (!record) fail("{} is damaged; delete that folder and submit its grid again", file.string());
    const json& about = *record;
    if (about.at("format") != kWorkspaceFormat) fail("{} is of another build of tearless", file.string());
    const auto names = [&](const char* key) -> std::optional<std::vector<std::string>> {
      if (!about.contains(key)) return std::nullopt;
      return about.at(key).get<std::vector<std::string>>();
    };
    return {.id = id,
            .title = about.at("title"),
            .name = about.at("name"),
            .grid_file = about.at("grid_file"),
            .submitted_at = about.at("submitted_at"),
            .runs = {},
            .program = about.at("program"),
            .stamp = about.at("stamp"),
            .policy = about.at("policy").get<SweepPolicy>(),
            .state = SweepState::kActive,
            .reason = "",
            .priority = 0,
            .scores = names("scores"),
            .windows = names("windows"),
            .tags = about.value("tags", std::vector<std::string>()),
            .note = about.value("note", ""),
            .engine = about.value("engine", ""),
            .declared = about.value("declared", std::map<std::string, std::string>()),
            .commit = checked_commit(about)};
  } catch (const json::exception& error) {
    fail_damaged(workspace.sweep(id), error);
  }
}

std::optional<std::string> diff_of(const Workspace& workspace, const std::string& sweep, const json& commit) {
  try {
    std::string diff = read_file(workspace.sweep(sweep) / kDiffFile);
    if (sha256(diff) == commit.at("diff").at("sha256").get<std::string>()) return diff;
  } catch (const UserError&) {  // it is another user's
  } catch (const json::exception&) {
  }
  return std::nullopt;
}

json commit_of(const Workspace& workspace, const std::string& sweep) { return sound_head(workspace, sweep).commit; }

std::set<std::string> secrets_of(const Workspace& workspace, const std::string& sweep) {
  const auto environment = sound_head(workspace, sweep).policy.environment;
  return environment ? environment->secrets : std::set<std::string>();
}

std::string typed_engine_of(const Workspace& workspace, const std::string& sweep) {
  return sound_head(workspace, sweep).engine;
}

std::map<std::string, std::string> declarations_of(const Workspace& workspace, const std::string& sweep) {
  return sound_head(workspace, sweep).declared;
}

SweepWords read_words(const Workspace& workspace, const std::string& sweep) {
  Sweep head = sound_head(workspace, sweep);
  return {std::move(head.tags), std::move(head.note)};
}

Sweep read_sweep(const Workspace& workspace, const std::string& id, SweepRuns runs) {
  const fs::path folder = workspace.sweep(id);
  Sweep sweep = read_sweep_head(workspace, id);
  try {
    read_runs(folder / "runs.jsonl", sweep);
    if (sweep_id(sweep, read_file(folder / "grid.toml")) != id) {
      fail(
          "{}: grid.toml and runs.jsonl are no longer what was submitted; delete that folder and submit its grid again",
          folder.string());
    }
    replay_events(folder / "events.jsonl", sweep);
    if (runs == SweepRuns::kWanted && sweep.policy.until_decided) keep_wanted(workspace, sweep);
    return sweep;
  } catch (const json::exception& error) {
    fail_damaged(folder, error);
  } catch (const std::invalid_argument& error) {
    fail_damaged(folder, error);
  }
}

void log_event(const Workspace& workspace, const std::string& sweep, std::string_view what, json details) {
  details["at"] = utc_now();
  details["event"] = what;
  const fs::path file = workspace.sweep(sweep) / "events.jsonl";
  const uint64_t size = fs::exists(file) ? fs::file_size(file) : 0;
  // A power cut may have torn the last line. The new one must not become a part of it.
  const std::string line = details.dump() + "\n";
  AppendFile(file, size).append(ends_a_line(file) ? line : "\n" + line);
}

Sweep submit_sweep(Store& store, const Workspace& workspace, const std::string& id) {
  Sweep sweep = read_sweep(workspace, id);
  sweep.state = SweepState::kActive;
  sweep.reason.clear();
  store.in_transaction([&] {
    sweep.submission = store.numbers_for(id);
    log_event(workspace, id, "submitted",
              {{"submission", sweep.submission.newest}, {"queued_as", sweep.submission.queued}});
    store.submit(sweep);
  });
  return sweep;
}

}  // namespace tearless::harness
