#include "harness/store/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "harness/store/database.h"
#include "harness/store/query.h"
#include "harness/store/statements.h"
#include "harness/store/workspace_format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::optional<int64_t> optional_integer(const SQLite::Column& column) {
  if (column.isNull()) return std::nullopt;
  return column.getInt64();
}

std::optional<std::string> optional_text(const SQLite::Column& column) {
  if (column.isNull()) return std::nullopt;
  return column.getString();
}

std::optional<LostWork> lost_from(const SQLite::Column& updates, const SQLite::Column& seconds) {
  if (updates.isNull()) return std::nullopt;
  return LostWork{.updates = updates.getInt64(), .seconds = seconds.getDouble()};
}

constexpr const char* kRunColumns =
    "runs.id, runs.state, runs.class, runs.reason, runs.canonical, runs.local, runs.data, runs.device, runs.threads, "
    "runs.shape, runs.memory_bytes, runs.parameters, runs.updates, runs.step";

constexpr const char* kSweepColumns =
    "id, title, grid_file, submitted_at, program, policy, state, reason, priority, stamp, submission";

/// Parses a stored text with `read`; UserError if that throws, because then the database is damaged.
template <class Read>
auto understood(const SQLite::Column& column, const Read& read) {
  try {
    return read(column.getString());
  } catch (const std::exception&) {
    fail("the database holds {} = '{}', which is not a valid value; to see what is damaged: tearless verify",
         column.getName(), column.getString());
  }
}
auto as_json(const std::string& text) { return nlohmann::ordered_json::parse(text); }
InputFiles as_files(const std::string& text) { return json::parse(text).get<InputFiles>(); }
Labels as_labels(const std::string& text) {
  Labels labels;
  const auto object = nlohmann::ordered_json::parse(text);
  for (const auto& [axis, label] : object.items()) labels.emplace_back(axis, label.get<std::string>());
  return labels;
}

RunRecord run_from(Statement& row) {
  RunRecord run;
  run.id = row.getColumn(0).getString();
  run.state = understood(row.getColumn(1), state_named);
  run.failure = understood(row.getColumn(2), failure_named);
  run.reason = row.getColumn(3).getString();
  run.settings = row.getColumn(4).getString();
  run.local = row.getColumn(5).getString();
  run.data = std::make_shared<InputFiles>(understood(row.getColumn(6), as_files));
  run.needs = {.device = row.getColumn(7).getString(),
               .threads = row.getColumn(8).getInt(),
               .resource_class = row.getColumn(9).getString(),
               .memory_bytes = optional_integer(row.getColumn(10))};
  run.parameters = optional_integer(row.getColumn(11));
  run.updates = row.getColumn(12).getInt64();
  run.step = optional_integer(row.getColumn(13));
  return run;
}

constexpr const char* kPlaceColumns = "coordinates, seed, rank, place";

// kRunColumns, then kPlaceColumns.
RunRecord run_of_sweep_from(Statement& row) {
  RunRecord run = run_from(row);
  run.coordinates = understood(row.getColumn(14), as_labels);
  run.seed = row.getColumn(15).getInt64();
  run.rank = row.getColumn(16).getInt64();
  run.place = row.getColumn(17).getInt64();
  return run;
}

Sweep sweep_from(Statement& row) {
  return {.id = row.getColumn(0).getString(),
          .title = row.getColumn(1).getString(),
          .grid_file = row.getColumn(2).getString(),
          .submitted_at = row.getColumn(3).getString(),
          .runs = {},
          .program = row.getColumn(4).getString(),
          .stamp = understood(row.getColumn(9), as_json),
          .policy = understood(row.getColumn(5),
                               [](const std::string& text) { return sweep_policy_from(json::parse(text)); }),
          .state = understood(row.getColumn(6), sweep_state_named),
          .reason = row.getColumn(7).getString(),
          .priority = row.getColumn(8).getInt64(),
          .submission = row.getColumn(10).getInt64()};
}

}  // namespace

nlohmann::json to_json(const SweepPolicy& policy) {
  return {{"stall_seconds", policy.stall_seconds},
          {"grace_seconds", policy.grace_seconds},
          {"memory_bytes", policy.memory_bytes},
          {"tries", policy.tries}};
}

SweepPolicy sweep_policy_from(const nlohmann::json& json) {
  SweepPolicy policy;
  json.at("stall_seconds").get_to(policy.stall_seconds);
  json.at("grace_seconds").get_to(policy.grace_seconds);
  json.at("memory_bytes").get_to(policy.memory_bytes);
  json.at("tries").get_to(policy.tries);
  return policy;
}

std::string changed_file(const RecordedResult& result, const RunDirectory& folder) {
  if (read_if_there(folder.done()) != result.done) return "DONE";
  return read_if_there(folder.scores()) == result.scores ? "" : "scores.json";
}

// --- opening -------------------------------------------------------------------------------------------------------

std::unique_ptr<Store> Store::open_writer(const Workspace& workspace) {
  require_usable(workspace);
  make_folders(workspace.root());
  LockFile lock = lock_for_writing(workspace, kServiceRole);
  std::unique_ptr<SQLite::Database> database = open_for_writing(workspace.database());
  refuse_changed(*database);
  return std::make_unique<Store>(std::move(database), std::move(lock));
}

std::unique_ptr<const Store> Store::open_reader(const Workspace& workspace) {
  require_usable(workspace);
  std::error_code unreachable;
  const fs::file_type type = fs::status(workspace.database(), unreachable).type();
  if (type == fs::file_type::none) {
    fail("cannot reach {}: {}; check that path (--workspace)", workspace.database().string(), unreachable.message());
  }
  if (type == fs::file_type::not_found) {
    std::error_code absent;
    if (fs::directory_iterator(workspace.runs(), absent) == fs::directory_iterator()) return nullptr;
    fail("{} is missing, but {} holds runs; rebuild it from them: {}", workspace.database().string(),
         workspace.runs().string(), rebuild_command(workspace.root()));
  }
  std::unique_ptr<SQLite::Database> database = open_for_reading(workspace.database());
  refuse_changed(*database);
  return std::make_unique<const Store>(std::move(database), std::nullopt);
}

Store::Store(std::unique_ptr<SQLite::Database> database, std::optional<LockFile> lock)
    : lock_(std::move(lock)), database_(std::move(database)), statements_(std::make_unique<Statements>(*database_)) {}

Store::~Store() {
  if (lock_) leave_wal_mode(*database_);
}

// --- reading -------------------------------------------------------------------------------------------------------

std::optional<RecordedResult> Store::recorded_result(const std::string& id) const {
  Question row(*statements_, "SELECT done, scores FROM results JOIN runs ON runs.number = run WHERE id = ?");
  row.bind(1, id);
  if (!row.executeStep()) return std::nullopt;
  return RecordedResult{.done = row.getColumn(0).getString(), .scores = optional_text(row.getColumn(1))};
}

RunResult Store::result_of(const std::string& id, std::optional<int64_t> numerics_now) const {
  const Workspace workspace(fs::path(database_->getFilename()).parent_path());
  const RunDirectory folder = workspace.run(id);
  RunResult result{.id = id};
  const std::optional<RunRecord> record = run(id);
  if (!record) {
    if (folder.newest_begun_attempt() == 0 || LockFile::is_held(workspace.lock())) return result;
    fail(
        "run {}: its folder has attempts, but it is not in the database; `tearless run` of its grid records it, "
        "or, if the database is damaged: tearless verify --workspace {}",
        id, workspace.root().string());
  }
  result.state = record->state;
  result.reason = record->reason;
  result.resume = read_resume_check(folder);
  if (record->state == RunState::kDiverged) result.diverged_step = record->step.value_or(0);
  if (const std::optional<RecordedResult> recorded = recorded_result(id)) {
    if (const std::string file = changed_file(*recorded, folder); fs::exists(folder.root()) && !file.empty()) {
      fail(
          "run {}: its {} is not what the run had written; to see what is wrong and what to do: tearless verify "
          "--workspace {}",
          id, file, workspace.root().string());
    }
    if (recorded->scores) result.scores = scores_in(*recorded->scores, folder.scores());
  }

  std::optional<int64_t> oldest;
  int64_t checkpoint = 0;
  const std::vector<AttemptRecord> attempts = attempts_of(id);
  for (const AttemptRecord& attempt : attempts) {
    if (attempt.device.empty() && attempt.numerics == 0) continue;  // no start.json: device and numerics are unknown
    // An attempt that was killed before its first checkpoint has no part in the result.
    const bool has_part = attempt.checkpoint > checkpoint || attempt.number == attempts.back().number;
    checkpoint = std::max(checkpoint, attempt.checkpoint);
    if (has_part && !attempt.device.empty()) result.trained_on.insert(machine_of(attempt));
    oldest = std::min(oldest.value_or(attempt.numerics), attempt.numerics);
  }
  result.stale = numerics_now && oldest && *oldest != *numerics_now;
  return result;
}

std::optional<RunRecord> Store::run(const std::string& id) const {
  Question row(*statements_, fmt::format("SELECT {} FROM runs WHERE id = ?", kRunColumns));
  row.bind(1, id);
  if (!row.executeStep()) return std::nullopt;
  return run_from(row);
}

RunRecord Store::known_run(const std::string& id) const {
  std::optional<RunRecord> known = run(id);
  if (!known) fail("run {} was deleted meanwhile", id);
  return *std::move(known);
}

std::vector<AttemptRecord> Store::attempts_of(const std::string& id) const {
  Question row(*statements_,
               "SELECT attempt, outcome, reason, code, signal, started_at, ended_at, host, device, processor, "
               "version, numerics, measured, checkpoint, lost_updates, lost_seconds, arithmetic FROM attempts_view "
               "WHERE run = ? "
               "ORDER BY attempt");
  row.bind(1, id);
  std::vector<AttemptRecord> attempts;
  while (row.executeStep()) {
    attempts.push_back({.number = row.getColumn(0).getInt64(),
                        .outcome = row.getColumn(1).getString(),
                        .reason = row.getColumn(2).getString(),
                        .code = optional_integer(row.getColumn(3)),
                        .signal = optional_integer(row.getColumn(4)),
                        .asked = "",
                        .phase = "",
                        .checkpoint = row.getColumn(13).getInt64(),
                        .started_at = row.getColumn(5).getString(),
                        .ended_at = row.getColumn(6).getString(),
                        .host = row.getColumn(7).getString(),
                        .device = row.getColumn(8).getString(),
                        .processor = row.getColumn(9).getString(),
                        .version = row.getColumn(10).getString(),
                        .numerics = row.getColumn(11).getInt64(),
                        .arithmetic = row.getColumn(16).getString(),
                        .measured = understood(row.getColumn(12), as_json),
                        .lost = lost_from(row.getColumn(14), row.getColumn(15))});
  }
  return attempts;
}

LostWork Store::lost_in(const std::string& sweep) const {
  Question row(*statements_,
               "SELECT coalesce(sum(lost_updates), 0), coalesce(sum(lost_seconds), 0) FROM attempts "
               "WHERE run IN (SELECT run FROM sweep_runs WHERE sweep = ?)");
  row.bind(1, sweep);
  row.executeStep();
  return {.updates = row.getColumn(0).getInt64(), .seconds = row.getColumn(1).getDouble()};
}

std::vector<std::string> Store::ids_starting_with(const std::string& prefix) const {
  Question row(*statements_, "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id");
  row.bind(1, prefix);
  return text_column(row);
}

std::vector<std::string> Store::ids_in(RunState state) const {
  Question row(*statements_, "SELECT id FROM runs WHERE state = ? ORDER BY number");
  row.bind(1, std::string(name_of(state)));
  return text_column(row);
}

std::vector<Sweep> Store::sweeps() const {
  Question row(*statements_,
               fmt::format("SELECT {} FROM sweeps ORDER BY submitted_at DESC, submission DESC, id", kSweepColumns));
  std::vector<Sweep> sweeps;
  while (row.executeStep()) sweeps.push_back(sweep_from(row));
  return sweeps;
}

std::optional<Sweep> Store::sweep(const std::string& id) const {
  Question row(*statements_, fmt::format("SELECT {} FROM sweeps WHERE id = ?", kSweepColumns));
  row.bind(1, id);
  if (!row.executeStep()) return std::nullopt;
  return sweep_from(row);
}

std::vector<std::string> Store::active_sweeps() const {
  Question row(*statements_, "SELECT id FROM sweeps WHERE state = 'active' ORDER BY submission");
  return text_column(row);
}

std::string Store::label_axes_of(const std::string& sweep) const {
  Statement row(*statements_, "SELECT coordinates FROM sweep_runs WHERE sweep = ? ORDER BY place LIMIT 1");
  row.bind(1, sweep);
  return row.executeStep() ? label_axes(understood(row.getColumn(0), as_labels)) : "";
}

StateCounts Store::counts_of(const std::string& sweep) const {
  Question row(*statements_,
               "SELECT state, count(*) FROM sweep_runs JOIN runs ON runs.number = run WHERE sweep = ? GROUP BY state");
  row.bind(1, sweep);
  StateCounts counts;
  while (row.executeStep()) counts[understood(row.getColumn(0), state_named)] = row.getColumn(1).getInt64();
  return counts;
}

bool Store::has_unfinished(const std::string& sweep) const {
  Question row(*statements_,
               "SELECT EXISTS (SELECT 1 FROM sweep_runs JOIN runs ON runs.number = run WHERE sweep = ? AND "
               "state IN ('queued', 'running', 'held', 'waiting_data'))");
  row.bind(1, sweep);
  row.executeStep();
  return row.getColumn(0).getInt() != 0;
}

std::vector<std::string> Store::sweeps_of(const std::string& run) const {
  Question row(
      *statements_,
      "SELECT DISTINCT sweeps.id FROM sweep_runs JOIN runs ON runs.number = run JOIN sweeps ON sweeps.id = sweep "
      "WHERE runs.id = ? ORDER BY submission");
  row.bind(1, run);
  return text_column(row);
}

std::vector<Timing> Store::timings() const {
  // The program's own time where it says so: the supervisor's has whole seconds only.
  Question row(*statements_,
               "SELECT id, shape, updates, "
               "total(coalesce(json_extract(measured, '$.seconds'), "
               "strftime('%s', ended_at) - strftime('%s', started_at))), "
               "total(json_extract(measured, '$.training_seconds')), total(json_extract(measured, '$.updates')), "
               "total(json_extract(measured, '$.evaluation_seconds')), total(json_extract(measured, '$.evaluations')) "
               "FROM runs LEFT JOIN attempts ON run = number WHERE state = 'done' AND shape != '' GROUP BY number");
  std::vector<Timing> timings;
  while (row.executeStep()) {
    timings.push_back({.id = row.getColumn(0).getString(),
                       .resource_class = row.getColumn(1).getString(),
                       .updates = row.getColumn(2).getInt64(),
                       .seconds = row.getColumn(3).getDouble(),
                       .training_seconds = row.getColumn(4).getDouble(),
                       .updates_made = row.getColumn(5).getInt64(),
                       .evaluation_seconds = row.getColumn(6).getDouble(),
                       .evaluations = row.getColumn(7).getInt64()});
  }
  return timings;
}

std::map<std::string, int64_t> Store::memory_peaks() const {
  Question row(*statements_, "SELECT shape, json_extract(learnt, '$.peak_bytes') FROM shapes WHERE json_valid(learnt)");
  std::map<std::string, int64_t> peaks;
  while (row.executeStep()) {
    if (row.getColumn(1).isInteger()) peaks[row.getColumn(0).getString()] = row.getColumn(1).getInt64();
  }
  return peaks;
}

bool Store::is_wanted(const std::string& run) const {
  Question row(*statements_,
               "SELECT count(*) FROM sweep_runs JOIN runs ON runs.number = run JOIN sweeps ON sweeps.id = sweep "
               "WHERE runs.id = ? AND sweeps.state != 'cancelled'");
  row.bind(1, run);
  row.executeStep();
  return row.getColumn(0).getInt64() > 0;
}

std::vector<std::string> Store::queued_with(const InputFiles& files) const {
  Question row(*statements_, "SELECT id FROM runs WHERE state = 'queued' AND data = ? ORDER BY number");
  row.bind(1, json(files).dump());
  return text_column(row);
}

std::vector<RunRecord> Store::runs_of(const std::string& sweep, const std::vector<RunState>& states) const {
  std::vector<std::string> names;
  for (const RunState state : states) names.push_back(fmt::format("'{}'", name_of(state)));
  Question row(*statements_,
               fmt::format("SELECT {}, {} FROM sweep_runs JOIN runs ON runs.number = sweep_runs.run "
                           "WHERE sweep = ? {} ORDER BY place",
                           kRunColumns, kPlaceColumns,
                           names.empty() ? "" : fmt::format("AND state IN ({})", fmt::join(names, ", "))));
  row.bind(1, sweep);
  std::vector<RunRecord> runs;
  while (row.executeStep()) runs.push_back(run_of_sweep_from(row));
  return runs;
}

RunRecord Store::run_of(const std::string& sweep, const std::string& run) const {
  Question row(*statements_, fmt::format("SELECT {}, {} FROM sweep_runs JOIN runs ON runs.number = sweep_runs.run "
                                         "WHERE id = ? AND sweep = ? ORDER BY place",
                                         kRunColumns, kPlaceColumns));
  row.bind(1, run);
  row.bind(2, sweep);
  if (!row.executeStep()) throw std::logic_error(fmt::format("sweep {} has no run {}", sweep, run));
  return run_of_sweep_from(row);
}

std::vector<MetricLine> Store::metrics_of(const std::string& id) const {
  Question row(*statements_,
               "SELECT position, metrics.step, metric_names.name, value FROM metrics "
               "JOIN runs ON runs.number = metrics.run JOIN metric_names ON metric_names.number = metrics.name "
               "WHERE runs.id = ? ORDER BY position");
  row.bind(1, id);
  std::vector<MetricLine> lines;
  while (row.executeStep()) {
    lines.push_back({row.getColumn(0).getInt64(), row.getColumn(1).getInt64(), row.getColumn(2).getString(),
                     row.getColumn(3).getDouble()});
  }
  return lines;
}

std::map<std::string, MetricLine> Store::newest_metrics(const std::string& id) const {
  std::map<std::string, MetricLine> newest;
  for (const MetricLine& line : metrics_of(id)) newest[line.name] = line;
  return newest;
}

int64_t Store::failures_of(const std::string& id, FailureClass failure) const {
  Question row(
      *statements_,
      "SELECT count(*) FROM attempts JOIN runs ON runs.number = attempts.run "
      "WHERE runs.id = ? AND outcome = ? AND attempt > tries_from AND attempts.checkpoint >= "
      "(SELECT checkpoint FROM attempts newest WHERE newest.run = attempts.run ORDER BY attempt DESC LIMIT 1)");
  row.bind(1, id);
  row.bind(2, std::string(name_of(failure)));
  row.executeStep();
  return row.getColumn(0).getInt64();
}

QueryResult Store::query(const std::string& sql) const { return ask(*database_, sql); }

void Store::in_snapshot(const std::function<void()>& reads) const {
  const bool inside_another = sqlite3_get_autocommit(database_->getHandle()) == 0;
  if (inside_another) return reads();
  try {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::DEFERRED);
    reads();
    transaction.commit();
  } catch (const SQLite::Exception& error) {
    refuse_unusable(database_->getFilename(), error);
  }
}

}  // namespace tearless::harness
