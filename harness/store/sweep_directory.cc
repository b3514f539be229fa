#include "harness/store/sweep_directory.h"

#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "base/words.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

ordered_json to_json(const RunRequest& run) {
  ordered_json line = {{"id", run.id}, {"updates", run.updates}, {"coordinates", run.coordinates}, {"seed", run.seed}};
  if (!run.waiting_for.empty()) line["waiting_for"] = run.waiting_for;
  return line;
}

std::string lines_of(const Sweep& sweep) {
  std::string lines;
  for (const RunRequest& run : sweep.runs) lines += to_json(run).dump() + "\n";
  return lines;
}

std::string job_lines_of(const Sweep& sweep) {
  std::string lines;
  for (const RunRequest& run : sweep.runs) {
    const ordered_json line = {
        {"id", run.id},           {"canonical", run.canonical},
        {"local", run.local},     {"device", run.device},
        {"threads", run.threads}, {"rank", run.rank},
        {"shape", run.shape},     {"memory_bytes", run.memory_bytes ? json(*run.memory_bytes) : json()}};
    lines += line.dump() + "\n";
  }
  return lines;
}

json to_json(const std::vector<KeptFile>& files) {
  json list = json::array();
  for (const KeptFile& file : files) {
    list.push_back({{"copy", file.copy}, {"source", file.source}, {"sha256", file.sha256}});
  }
  return list;
}

std::vector<KeptFile> kept_files_from(const json& list) {
  std::vector<KeptFile> files;
  for (const json& file : list) files.push_back({file.at("copy"), file.at("source"), file.at("sha256")});
  return files;
}

void read_jobs(const fs::path& file, Sweep& sweep) {
  if (!fs::exists(file)) return;
  const std::string text = read_file(file);
  const std::vector<std::string_view> lines = split_lines(text);
  if (lines.size() != sweep.runs.size()) fail("{} is not complete; submit the sweep's grid again", file.string());
  for (size_t i = 0; i < lines.size(); ++i) {
    const json line = json::parse(lines[i]);
    RunRequest& run = sweep.runs[i];
    if (line.at("id") != run.id) fail("{} does not belong to runs.jsonl; submit the sweep's grid again", file.string());
    run.canonical = line.at("canonical");
    if (!run.canonical.empty() && run_id(run.canonical) != run.id) {
      fail("{} was changed: the settings of run {} no longer have that id; submit the sweep's grid again",
           file.string(), run.id);
    }
    run.local = line.at("local");
    run.device = line.at("device");
    run.threads = line.at("threads");
    run.rank = line.at("rank");
    run.shape = line.value("shape", "");
    if (const json memory = line.value("memory_bytes", json()); memory.is_number()) run.memory_bytes = memory;
  }
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
    if (what == "paused") becomes(SweepState::kPaused);
    if (what == "left") {  // of a tearless without a daemon: its `run` has ended
      becomes(SweepState::kPaused);
      sweep.reason = "it was run by an older tearless";
    }
    if (what == "cancelled") becomes(SweepState::kCancelled);
    if (what == "priority") sweep.priority = event.value("priority", int64_t{0});
  }
}

[[noreturn]] void fail_damaged(const fs::path& folder, const json::exception& error) {
  fail("{} is damaged ({}); delete that folder and submit its grid again", folder.string(), error.what());
}

std::string id_of_texts(const std::string& grid_file, std::string_view grid_text, std::string_view lines) {
  Sha256 hash;
  hash.update(grid_text);
  hash.update(lines);
  return fs::path(grid_file).stem().string() + "-" + hash.hex().substr(0, 8);
}

}  // namespace

std::string sweep_id(const Sweep& sweep, std::string_view grid_text) {
  return id_of_texts(sweep.grid_file, grid_text, lines_of(sweep));
}

void freeze_sweep(const Workspace& workspace, const Sweep& sweep, std::string_view grid_text) {
  const fs::path folder = workspace.sweep(sweep.id);
  make_folders(folder);
  if (!fs::exists(folder / "sweep.json")) {
    write_atomically(folder / "grid.toml", grid_text);
    write_atomically(folder / "runs.jsonl", lines_of(sweep));
  }
  write_atomically(folder / "jobs.jsonl", job_lines_of(sweep));
  const json about = {
      {"title", sweep.title},       {"grid_file", sweep.grid_file}, {"submitted_at", sweep.submitted_at},
      {"program", sweep.program},   {"stamp", sweep.stamp},         {"policy", to_json(sweep.policy)},
      {"data", to_json(sweep.data)}};
  write_atomically(folder / "sweep.json", sealed(about));
}

Sweep read_sweep_head(const Workspace& workspace, const std::string& id) {
  const fs::path file = workspace.sweep(id) / "sweep.json";
  try {
    const std::optional<json> record = unsealed(read_file(file));
    if (!record) fail("{} is damaged; delete that folder and submit its grid again", file.string());
    const json& about = *record;
    return {.id = id,
            .title = about.at("title"),
            .grid_file = about.at("grid_file"),
            .submitted_at = about.at("submitted_at"),
            .runs = {},
            .program = about.value("program", ""),
            .stamp = about.value("stamp", json::object()),
            .policy = sweep_policy_from(about.value("policy", json::object())),
            .data = kept_files_from(about.value("data", json::array())),
            .state = SweepState::kActive,
            .reason = "",
            .priority = 0};
  } catch (const json::exception& error) {
    fail_damaged(workspace.sweep(id), error);
  }
}

Sweep read_sweep(const Workspace& workspace, const std::string& id) {
  const fs::path folder = workspace.sweep(id);
  Sweep sweep = read_sweep_head(workspace, id);
  try {
    const std::string texts = read_file(folder / "runs.jsonl");
    if (id_of_texts(sweep.grid_file, read_file(folder / "grid.toml"), texts) != id) {
      fail(
          "{}: grid.toml and runs.jsonl are no longer what was submitted; delete that folder and submit its grid again",
          folder.string());
    }
    for (const std::string_view line : split_lines(texts)) {
      const ordered_json run = ordered_json::parse(line);
      sweep.runs.push_back({.id = run.at("id"),
                            .canonical = "",
                            .waiting_for = run.value("waiting_for", ""),
                            .parameters = std::nullopt,
                            .memory_bytes = std::nullopt,
                            .updates = run.at("updates"),
                            .coordinates = run.at("coordinates"),
                            .seed = run.at("seed"),
                            .local = ""});
    }
    read_jobs(folder / "jobs.jsonl", sweep);
    replay_events(folder / "events.jsonl", sweep);
    return sweep;
  } catch (const json::exception& error) {
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

}  // namespace tearless::harness
