#include "harness/store/sweep_directory.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json_line.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/store/workspace_format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void put(Writer& line, std::string_view key, std::string_view text) {
  line.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  line.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void put(Writer& line, std::string_view key, int64_t number) {
  line.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  line.Int64(number);
}

/// One line for each run, with the members that put_members(line, run) writes.
template <class PutMembers>
std::string lines_of(const Sweep& sweep, PutMembers put_members) {
  rapidjson::StringBuffer lines;
  for (const RunRequest& run : sweep.runs) {
    Writer line(lines);
    line.StartObject();
    put_members(line, run);
    line.EndObject();
    lines.Put('\n');
  }
  return {lines.GetString(), lines.GetSize()};
}

// The sweep's id is made of these bytes: an edit here would make every sweep that is submitted again a new one.
std::string run_lines_of(const Sweep& sweep) {
  return lines_of(sweep, [](Writer& line, const RunRequest& run) {
    put(line, "id", run.id);
    put(line, "updates", run.updates);
    line.Key("coordinates");
    line.StartObject();
    for (const auto& [axis, label] : run.coordinates.items()) put(line, axis, label.get_ref<const std::string&>());
    line.EndObject();
    put(line, "seed", run.seed);
    if (!run.waiting_for.empty()) put(line, "waiting_for", run.waiting_for);
  });
}

std::string job_lines_of(const Sweep& sweep) {
  return lines_of(sweep, [](Writer& line, const RunRequest& run) {
    put(line, "id", run.id);
    put(line, "canonical", run.canonical);
    put(line, "local", run.local);
    put(line, "device", run.device);
    put(line, "threads", run.threads);
    put(line, "rank", run.rank);
    put(line, "shape", run.shape);
    line.Key("data");
    line.StartObject();
    for (const auto& [file, checksum] : run.data ? *run.data : InputFiles()) put(line, file, checksum);
    line.EndObject();
    if (run.memory_bytes) put(line, "memory_bytes", *run.memory_bytes);
  });
}

void read_jobs(const fs::path& file, Sweep& sweep) {
  const std::string text = read_file(file);
  const std::vector<std::string_view> lines = split_lines(text);
  if (lines.size() != sweep.runs.size()) fail("{} is not complete; submit the sweep's grid again", file.string());
  JsonLineParser parser;
  for (size_t i = 0; i < lines.size(); ++i) {
    const JsonValue& line = parser.parse(lines[i]);
    RunRequest& run = sweep.runs[i];
    if (text_at(line, "id") != run.id) {
      fail("{} does not belong to runs.jsonl; submit the sweep's grid again", file.string());
    }
    run.canonical = text_at(line, "canonical");
    if (!run.canonical.empty() && run_id(run.canonical) != run.id) {
      fail("{} was changed: the settings of run {} no longer have that id; submit the sweep's grid again",
           file.string(), run.id);
    }
    run.local = text_at(line, "local");
    run.device = text_at(line, "device");
    run.threads = static_cast<int>(number_at(line, "threads"));
    run.rank = number_at(line, "rank");
    run.shape = text_at(line, "shape");
    run.data = input_files_at(line, "data", i > 0 ? sweep.runs[i - 1].data : nullptr);
    if (find_member(line, "memory_bytes")) run.memory_bytes = number_at(line, "memory_bytes");
  }
}

void read_runs(std::string_view texts, Sweep& sweep) {
  JsonLineParser parser;
  for (const std::string_view text : split_lines(texts)) {
    const JsonValue& line = parser.parse(text);
    auto coordinates = ordered_json::object();
    for (const auto& [axis, label] : object_at(line, "coordinates")) coordinates[as_text(axis)] = as_text(label);
    sweep.runs.push_back({.id = std::string(text_at(line, "id")),
                          .canonical = "",
                          .waiting_for = std::string(text_at(line, "waiting_for", "")),
                          .parameters = std::nullopt,
                          .memory_bytes = std::nullopt,
                          .updates = number_at(line, "updates"),
                          .coordinates = std::move(coordinates),
                          .seed = number_at(line, "seed"),
                          .local = ""});
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
    if (what == "cancelled") becomes(SweepState::kCancelled);
    if (what == "priority") sweep.priority = event.value("priority", int64_t{0});
  }
}

[[noreturn]] void fail_damaged(const fs::path& folder, const std::exception& error) {
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
  return id_of_texts(sweep.grid_file, grid_text, run_lines_of(sweep));
}

void freeze_sweep(const Workspace& workspace, const Sweep& sweep, std::string_view grid_text) {
  const fs::path folder = workspace.sweep(sweep.id);
  make_folders(folder);
  if (!fs::exists(folder / "sweep.json")) {
    write_atomically(folder / "grid.toml", grid_text);
    write_atomically(folder / "runs.jsonl", run_lines_of(sweep));
  }
  write_atomically(folder / "jobs.jsonl", job_lines_of(sweep));
  const json about = {{"format", kWorkspaceFormat},         {"title", sweep.title},     {"grid_file", sweep.grid_file},
                      {"submitted_at", sweep.submitted_at}, {"program", sweep.program}, {"stamp", sweep.stamp},
                      {"policy", to_json(sweep.policy)}};
  write_atomically(folder / "sweep.json", sealed(about));
}

Sweep read_sweep_head(const Workspace& workspace, const std::string& id) {
  const fs::path file = workspace.sweep(id) / "sweep.json";
  try {
    const std::optional<json> record = unsealed(read_file(file));
    if (!record) fail("{} is damaged; delete that folder and submit its grid again", file.string());
    const json& about = *record;
    if (about.at("format") != kWorkspaceFormat) fail("{} is of another build of tearless", file.string());
    return {.id = id,
            .title = about.at("title"),
            .grid_file = about.at("grid_file"),
            .submitted_at = about.at("submitted_at"),
            .runs = {},
            .program = about.at("program"),
            .stamp = about.at("stamp"),
            .policy = sweep_policy_from(about.at("policy")),
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
    read_runs(texts, sweep);
    read_jobs(folder / "jobs.jsonl", sweep);
    replay_events(folder / "events.jsonl", sweep);
    return sweep;
  } catch (const JsonLineError& error) {
    fail_damaged(folder, error);
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
