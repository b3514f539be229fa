#include "harness/store/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/words.h"
#include "harness/runs/policy.h"
#include "harness/store/checksums.h"
#include "harness/store/database.h"
#include "harness/store/query.h"
#include "harness/store/statements.h"
#include "harness/store/workspace_format.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

template <class Value>
std::optional<Value> if_set(const SQLite::Column& column) {
  if (column.isNull()) return std::nullopt;
  const Value value = column;
  return value;
}

std::optional<LostWork> lost_from(const SQLite::Column& updates, const SQLite::Column& seconds) {
  if (updates.isNull()) return std::nullopt;
  return LostWork{.updates = updates.getInt64(), .seconds = seconds.getDouble()};
}

// A member of a DONE, {} if it has none: a program need not write it.
json member_of(const std::string& done, const char* name) {
  const json record = json::parse(done, nullptr, /*allow_exceptions=*/false);
  const json member = record.is_object() ? record.value(name, json()) : json();
  return member.is_object() ? member : json::object();
}

constexpr const char* kRunColumns =
    "runs.id, runs.state, runs.class, runs.reason, runs.canonical, runs.local, runs.data, runs.device, runs.threads, "
    "runs.resource_class, runs.memory_bytes, runs.parameters, runs.updates, runs.step";

constexpr const char* kSweepColumns =
    "id, title, grid_file, submitted_at, program, policy, state, reason, priority, stamp, submission, queued_as, name";

RunRecord run_from(Statement& row) {
  RunRecord run;
  run.id = row[0].getString();
  run.state = state_named(row[1].getString());
  run.failure = failure_named(row[2].getString());
  run.reason = row[3].getString();
  run.settings = row[4].getString();
  run.local = row[5].getString();
  run.data = std::make_shared<InputFiles>(json::parse(row[6].getString()));
  run.needs = {.device = row[7], .threads = row[8], .resource_class = row[9], .memory_bytes = if_set<int64_t>(row[10])};
  run.parameters = if_set<int64_t>(row[11]);
  run.updates = row[12].getInt64();
  run.step = if_set<int64_t>(row[13]);
  return run;
}

constexpr const char* kPlaceColumns = "coordinates, seed, rank, place";

// kRunColumns, then kPlaceColumns.
RunRecord run_of_sweep_from(Statement& row) {
  RunRecord run = run_from(row);
  run.coordinates = labels_from(ordered_json::parse(row[14].getString()));
  run.seed = row[15].getInt64();
  run.rank = row[16].getInt64();
  run.place = row[17].getInt64();
  return run;
}

Sweep sweep_from(Statement& row) {
  return {.id = row[0],
          .title = row[1],
          .name = row[12],
          .grid_file = row[2],
          .submitted_at = row[3],
          .runs = {},
          .program = row[4],
          .stamp = json::parse(row[9].getString()),
          .policy = json::parse(row[5].getString()).get<SweepPolicy>(),
          .state = sweep_state_named(row[6].getString()),
          .reason = row[7],
          .priority = row[8],
          .submission = {.newest = row[10], .queued = row[11]}};
}

}  // namespace

int tries_of(const std::vector<Sweep>& sweeps, FailureClass failure) {
  std::optional<int> asked;
  for (const Sweep& sweep : sweeps) {
    const auto tries = sweep.policy.tries.find(std::string(name_of(failure)));
    if (tries != sweep.policy.tries.end()) asked = std::max(asked.value_or(0), tries->second);
  }
  return asked.value_or(policy_of(failure).tries);
}

std::string changed_file(const RecordedResult& result, const RunDirectory& folder) {
  if (read_if_there(folder.done()) != result.done) return "DONE";
  const std::optional<std::string> scores = read_if_there(folder.scores());
  return (scores ? std::optional(scores_as_json(*scores)) : std::nullopt) == result.scores ? "" : "scores.json";
}

// --- opening -------------------------------------------------------------------------------------------------------

std::unique_ptr<Store> Store::open_writer(const Workspace& workspace) {
  require_usable(workspace);
  make_folders(workspace.root());
  LockFile lock = lock_for_writing(workspace, /*is_service=*/true);
  return std::make_unique<Store>(refuse_changed(open_for_writing(workspace.database())), std::move(lock));
}

std::unique_ptr<const Store> Store::open_reader(const Workspace& workspace) {
  require_usable(workspace);
  std::error_code unreachable;
  const fs::file_type type = fs::status(workspace.database(), unreachable).type();
  if (type == fs::file_type::none) {
    fail("cannot reach {}: {}; check that path (--workspace)", workspace.database().string(), unreachable.message());
  }
  if (type == fs::file_type::not_found) {
    if (entries_of(workspace.runs()).empty()) return nullptr;
    fail("{} is missing, but {} holds runs; rebuild it from them: {}", workspace.database().string(),
         workspace.runs().string(), rebuild_command(workspace.root()));
  }
  return std::make_unique<const Store>(refuse_changed(open_for_reading(workspace.database())), std::nullopt);
}

std::string rebuild_command(const fs::path& root) {
  return fmt::format("tearless rebuild --workspace {}", shell_word(root.string()));
}

void Store::make(const fs::path& file, const std::function<void(Store&)>& fill) {
  {
    Store store(open_for_writing(file), std::nullopt);
    fill(store);
  }
  leave_wal_mode(*open_for_writing(file));
}

Examined examine_database(const fs::path& file) {
  Examined found{.damage = damage_in(file)};
  if (!found.damage.empty()) return found;
  std::unique_ptr<SQLite::Database> database = open_for_reading(file);
  SQLite::Statement result(*database, "SELECT id FROM results JOIN runs ON runs.number = run");
  while (result.executeStep()) found.with_result.insert(result.getColumn(0).getString());
  found.changed = changed_tables(*database);
  if (found.changed.empty()) found.store = std::make_unique<const Store>(std::move(database), std::nullopt);
  return found;
}

std::vector<std::string> lost_between(const fs::path& before, const fs::path& now) {
  const auto results_of = [](const char* schema) {
    return fmt::format("SELECT id, done, scores FROM {0}.results JOIN {0}.runs ON number = run", schema);
  };
  try {
    SQLite::Database database(now.string(), SQLite::OPEN_READWRITE);
    SQLite::Statement attach(database, "ATTACH ? AS before");
    attach.bind(1, before.string());
    attach.exec();
    SQLite::Statement row(database,
                          fmt::format("SELECT id FROM before.sweeps EXCEPT SELECT id FROM main.sweeps UNION ALL "
                                      "SELECT id FROM ({} EXCEPT {})",
                                      results_of("before"), results_of("main")));
    std::vector<std::string> lost;
    while (row.executeStep()) lost.push_back(row.getColumn(0).getString());
    return lost;
  } catch (const SQLite::Exception& error) {
    refuse_unusable(before, error);
  }
}

Store::Store(std::unique_ptr<SQLite::Database> database, std::optional<LockFile> lock)
    : lock_(std::move(lock)),
      database_(std::move(database)),
      statements_(std::make_unique<Statements>(*database_)),
      workspace_(root_of_index(fs::path(database_->getFilename()).parent_path())) {}

Store::~Store() {
  if (lock_ && !is_gone()) leave_wal_mode(*database_);  // else the log at that path may be of another database
}

bool Store::is_gone() const {
  int moved = 0;
  ::sqlite3_file_control(database_->getHandle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

void Store::require_there() const {
  if (!is_gone()) return;
  const fs::path file = database_->getFilename();
  fail("{} was deleted or replaced while a service used it; no run is lost, rebuild it from the run folders: {}",
       file.string(), rebuild_command(root_of_index(file.parent_path())));
}

// --- reading -------------------------------------------------------------------------------------------------------

const fs::path& Store::root() const { return workspace_.root(); }

std::optional<RecordedResult> Store::recorded_result(const std::string& id) const {
  Statement row(*statements_, "SELECT done, scores FROM results JOIN runs ON runs.number = run WHERE id = ?", id);
  if (!row.step()) return std::nullopt;
  return RecordedResult{.done = row[0], .scores = if_set<std::string>(row[1])};
}

RunResult Store::result_of(const std::string& id, const ProgramNow& program) const {
  const RunDirectory folder = workspace_.run(id);
  RunResult result{.id = id};
  const std::optional<RunRecord> record = run(id);
  if (!record) {
    if (folder.newest_begun_attempt() == 0 || has_writer(workspace_)) return result;
    fail(
        "run {}: its folder has attempts, but it is not in the database; `tearless run` of its grid records it, "
        "or, if the database is damaged: tearless verify --workspace {}",
        id, root().string());
  }
  result.state = record->state;
  result.failure = record->failure;
  result.reason = record->reason;
  result.step = record->step;
  result.resume = read_resume_check(folder);
  if (const std::optional<RecordedResult> recorded = recorded_result(id)) {
    const auto refuse = [&](const std::string& file) {
      fail(
          "run {}: its {} is not what the run had written; to see what is wrong and what to do: tearless verify "
          "--workspace {}",
          id, file, root().string());
    };
    if (const std::string file = changed_file(*recorded, folder); fs::exists(folder.root()) && !file.empty()) {
      refuse(file);
    }
    for (int64_t attempt = 1, newest = folder.newest_attempt(); attempt <= newest; ++attempt) {
      if (const std::string file = changed_attempt_file(folder, attempt); !file.empty()) refuse(file);
      result.lacks_records |= !missing_attempt_record(folder, attempt).empty();
    }
    result.is_due = !fs::exists(folder.root());
    if (recorded->scores) {
      Scores scores = scores_in(*recorded->scores, folder.scores());
      result.scores = std::move(scores.numbers);
      result.no_numbers = std::move(scores.no_numbers);
    }
  }

  // The runs of tearless-engine have no identity: its numerics tell whether they are comparable.
  const bool is_foreign = names_program(record->settings);
  std::set<int64_t> other_numerics;
  std::set<std::string> other_files;
  int64_t checkpoint = 0;
  result.attempts = attempts_of(id);
  for (AttemptRecord& attempt : result.attempts) {
    if (!is_foreign) attempt.program_file.clear();                  // its numerics tell builds apart
    if (attempt.device.empty() && attempt.numerics == 0) continue;  // no start.json: device and numerics are unknown
    // An attempt that was killed before its first checkpoint has no part in the result.
    const bool has_part = attempt.checkpoint > checkpoint || attempt.number == result.attempts.back().number;
    checkpoint = std::max(checkpoint, attempt.checkpoint);
    if (!has_part) continue;
    if (!attempt.device.empty()) result.trained_on.insert(machine_of(attempt));
    if (program.numerics && attempt.numerics != *program.numerics) other_numerics.insert(attempt.numerics);
    if (!is_foreign) continue;
    const std::string made = program_of(attempt);
    if (!made.empty()) result.trained_by.insert(made);
    const bool is_known = !program.file.empty() && !attempt.program_file.empty();
    if (is_known && attempt.program_file != program.file) other_files.insert(made);
  }
  if (!other_numerics.empty()) {
    result.stale = fmt::format("the training program computed other numbers (numerics {}, now {})",
                               fmt::join(other_numerics, " and "), *program.numerics);
  } else if (!other_files.empty()) {
    result.stale = fmt::format("trained by {}; the training program is file {} now", fmt::join(other_files, " and "),
                               program.file);
  }
  if (is_outdated(*record)) {
    result.stale = "the run from which it derives was trained again, with another result";
    result.is_due = true;
  }
  return result;
}

bool Store::is_outdated(const RunRecord& derived) const {
  const std::string of = tearless::derived_from(derived.settings);
  if (of.empty()) return false;
  const std::optional<RecordedResult> own = recorded_result(derived.id), origin = recorded_result(of);
  if (!own || !origin) return false;
  if (is_outdated(known_run(of))) return true;
  const json inputs = member_of(own->done, "inputs"), files = member_of(origin->done, "files");
  for (const auto& [name, checksum] : inputs.items()) {
    if (!name.starts_with(of + "/")) continue;
    const std::string file = name.substr(of.size() + 1);
    const json now = file == "DONE" ? json(sha256(origin->done)) : files.value(file, json());
    if (!now.is_null() && now != checksum) return true;
  }
  return false;
}

std::vector<std::string> Store::derived_from(const std::string& id) const {
  Statement row(*statements_, "SELECT run FROM derived_runs_view WHERE of = ?", id);
  return text_column(row);
}

std::optional<RunRecord> Store::run(const std::string& id) const {
  Statement row(*statements_, fmt::format("SELECT {} FROM runs WHERE id = ?", kRunColumns), id);
  if (!row.step()) return std::nullopt;
  return run_from(row);
}

RunRecord Store::known_run(const std::string& id) const {
  std::optional<RunRecord> known = run(id);
  if (!known) fail("run {} was deleted meanwhile", id);
  return *std::move(known);
}

std::vector<AttemptRecord> Store::attempts_of(const std::string& id) const {
  Statement row(*statements_,
                "SELECT attempt, outcome, reason, code, signal, started_at, ended_at, host, device, processor, "
                "version, numerics, measured, checkpoint, lost_updates, lost_seconds, arithmetic, program_file FROM "
                "attempts_view "
                "WHERE run = ? ORDER BY attempt",
                id);
  std::vector<AttemptRecord> attempts;
  while (row.step()) {
    attempts.push_back({.number = row[0],
                        .outcome = row[1],
                        .reason = row[2],
                        .code = if_set<int64_t>(row[3]),
                        .signal = if_set<int64_t>(row[4]),
                        .asked = "",
                        .phase = "",
                        .checkpoint = row[13],
                        .started_at = row[5],
                        .ended_at = row[6],
                        .host = row[7],
                        .device = row[8],
                        .processor = row[9],
                        .version = row[10],
                        .numerics = row[11],
                        .arithmetic = row[16],
                        .program_file = row[17],
                        .measured = json::parse(row[12].getString()),
                        .lost = lost_from(row[14], row[15])});
  }
  return attempts;
}

LostWork Store::lost_in(const std::string& sweep) const {
  Statement row(*statements_,
                "SELECT coalesce(sum(lost_updates), 0), coalesce(sum(lost_seconds), 0) FROM attempts "
                "WHERE run IN (SELECT run FROM sweep_runs WHERE sweep = ?)",
                sweep);
  row.step();
  return {.updates = row[0], .seconds = row[1]};
}

int64_t Store::restarts_in(const std::string& sweep) const {
  Statement row(
      *statements_,
      "SELECT count(*) FROM (SELECT attempts.run FROM attempts JOIN runs ON runs.number = attempts.run "
      "WHERE attempts.run IN (SELECT run FROM sweep_runs WHERE sweep = ?) AND runs.state IN ('queued', 'held') "
      "GROUP BY attempts.run HAVING max(checkpoint) = 0)",
      sweep);
  row.step();
  return row[0].getInt64();
}

std::string Store::first_kind_in(const std::string& sweep) const {
  Statement row(*statements_,
                "SELECT CASE device WHEN 'cpu' THEN processor ELSE device END FROM attempts "
                "WHERE device != '' AND run IN (SELECT run FROM sweep_runs WHERE sweep = ?) "
                "ORDER BY started_at, run, attempt LIMIT 1",
                sweep);
  return row.step() ? row[0].getString() : "";
}

std::vector<std::string> Store::ids_starting_with(const std::string& prefix) const {
  Statement row(*statements_, "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id", prefix);
  return text_column(row);
}

std::vector<std::string> Store::ids_in(RunState state) const {
  Statement row(*statements_, "SELECT id FROM runs WHERE state = ? ORDER BY number", name_of(state));
  return text_column(row);
}

std::vector<Sweep> Store::sweeps() const {
  Statement row(*statements_, fmt::format("SELECT {} FROM sweeps ORDER BY submission DESC, id", kSweepColumns));
  std::vector<Sweep> sweeps;
  while (row.step()) sweeps.push_back(sweep_from(row));
  return sweeps;
}

std::optional<Sweep> Store::sweep(const std::string& id) const {
  Statement row(*statements_, fmt::format("SELECT {} FROM sweeps WHERE id = ?", kSweepColumns), id);
  if (!row.step()) return std::nullopt;
  return sweep_from(row);
}

std::vector<std::string> Store::active_sweeps() const {
  Statement row(*statements_, "SELECT id FROM sweeps WHERE state = 'active' ORDER BY queued_as, id");
  return text_column(row);
}

bool Store::is_over(const std::string& sweep) const {
  Statement row(*statements_,
                "SELECT 1 FROM sweeps JOIN sweep_runs ON sweep = sweeps.id JOIN runs ON runs.number = run "
                "WHERE sweeps.id = ? AND sweeps.state != 'cancelled' "
                "AND runs.state IN ('queued', 'running', 'held', 'waiting_data') LIMIT 1",
                sweep);
  return !row.step();
}

SubmissionNumbers Store::numbers_for(const std::string& id) const {
  Statement newest(*statements_, "SELECT coalesce(max(submission), 0) FROM sweeps");
  newest.step();
  const int64_t next = newest[0].getInt64() + 1;
  return {.newest = next, .queued = is_over(id) ? next : sweep(id)->submission.queued};
}

std::string Store::label_axes_of(const std::string& sweep) const {
  Statement row(*statements_, "SELECT coordinates FROM sweep_runs WHERE sweep = ? ORDER BY place LIMIT 1", sweep);
  return row.step() ? label_axes(labels_from(ordered_json::parse(row[0].getString()))) : "";
}

StateCounts Store::counts_of(const std::string& sweep) const {
  Statement row(*statements_,
                "SELECT state, count(DISTINCT run) FROM sweep_runs JOIN runs ON runs.number = run WHERE sweep = ? "
                "GROUP BY state",
                sweep);
  StateCounts counts;
  while (row.step()) counts[state_named(row[0].getString())] = row[1].getInt64();
  return counts;
}

std::vector<std::string> Store::sweeps_of(const std::string& run) const {
  Statement row(
      *statements_,
      "SELECT DISTINCT sweeps.id FROM sweep_runs JOIN runs ON runs.number = run JOIN sweeps ON sweeps.id = sweep "
      "WHERE runs.id = ? ORDER BY submission, sweeps.id",
      run);
  return text_column(row);
}

std::map<std::string, std::map<std::string, std::string>> Store::submissions() const {
  Statement row(*statements_,
                "SELECT DISTINCT runs.id, sweeps.id, submitted_at FROM sweep_runs JOIN runs ON runs.number = run JOIN "
                "sweeps ON sweeps.id = sweep");
  std::map<std::string, std::map<std::string, std::string>> submissions;
  while (row.step()) submissions[std::string(row[0])].emplace(std::string(row[1]), std::string(row[2]));
  return submissions;
}

std::vector<Timing> Store::timings() const {
  // The program's own time where it says so: the supervisor's has whole seconds only.
  Statement row(
      *statements_,
      "SELECT id, resource_class, updates, "
      "total(coalesce(json_extract(measured, '$.seconds'), "
      "strftime('%s', ended_at) - strftime('%s', started_at))), "
      "total(json_extract(measured, '$.training_seconds')), total(json_extract(measured, '$.updates')), "
      "total(json_extract(measured, '$.evaluation_seconds')), total(json_extract(measured, '$.evaluations')) "
      "FROM runs LEFT JOIN attempts ON run = number WHERE state = 'done' AND resource_class != '' GROUP BY number");
  std::vector<Timing> timings;
  while (row.step()) {
    timings.push_back({.id = row[0],
                       .resource_class = row[1],
                       .updates = row[2],
                       .seconds = row[3],
                       .training_seconds = row[4],
                       .updates_made = row[5],
                       .evaluation_seconds = row[6],
                       .evaluations = row[7]});
  }
  return timings;
}

std::map<std::string, int64_t> Store::memory_peaks() const {
  Statement row(
      *statements_,
      "SELECT resource_class, json_extract(learnt, '$.peak_bytes') FROM resource_classes WHERE json_valid(learnt)");
  std::map<std::string, int64_t> peaks;
  while (row.step()) {
    if (row[1].isInteger()) peaks.emplace(row[0].getString(), row[1].getInt64());
  }
  return peaks;
}

bool Store::is_wanted(const std::string& run) const {
  Statement row(*statements_,
                "SELECT 1 FROM sweep_runs JOIN runs ON runs.number = run JOIN sweeps ON sweeps.id = sweep "
                "WHERE runs.id = ? AND sweeps.state != 'cancelled'",
                run);
  return row.step();
}

std::vector<std::string> Store::queued_with(const InputFiles& files) const {
  Statement row(*statements_, "SELECT id FROM runs WHERE state = 'queued' AND data = ? ORDER BY number",
                json(files).dump());
  return text_column(row);
}

std::vector<RunRecord> Store::runs_of(const std::string& sweep, const std::vector<RunState>& states) const {
  std::vector<std::string> names;
  for (const RunState state : states) names.push_back(fmt::format("'{}'", name_of(state)));
  Statement row(*statements_,
                fmt::format("SELECT {}, {} FROM sweep_runs JOIN runs ON runs.number = sweep_runs.run "
                            "WHERE sweep = ? {} ORDER BY place",
                            kRunColumns, kPlaceColumns,
                            names.empty() ? "" : fmt::format("AND state IN ({})", fmt::join(names, ", "))),
                sweep);
  std::vector<RunRecord> runs;
  while (row.step()) runs.push_back(run_of_sweep_from(row));
  return runs;
}

std::vector<RunRecord> Store::each_run_of(const std::string& sweep, const std::vector<RunState>& states) const {
  std::vector<RunRecord> runs = runs_of(sweep, states);
  std::set<std::string> seen;
  std::erase_if(runs, [&](const RunRecord& run) { return !seen.insert(run.id).second; });
  return runs;
}

RunRecord Store::run_of(const std::string& sweep, const std::string& run) const {
  Statement row(*statements_,
                fmt::format("SELECT {}, {} FROM sweep_runs JOIN runs ON runs.number = sweep_runs.run "
                            "WHERE id = ? AND sweep = ? ORDER BY place",
                            kRunColumns, kPlaceColumns),
                run, sweep);
  if (!row.step()) throw std::logic_error(fmt::format("sweep {} has no run {}", sweep, run));
  return run_of_sweep_from(row);
}

void Store::read_metrics(const std::string& id, const std::function<void(const MetricLine&)>& read) const {
  in_snapshot([&] {  // a running run may get metrics of a new name meanwhile
    std::map<int64_t, std::string> names;
    for (Statement row(*statements_, "SELECT number, name FROM metric_names"); row.step();)
      names[row[0]] = row[1].getString();
    Statement row(*statements_,
                  "SELECT position, metrics.step, name, value, metrics_seal FROM runs "
                  "LEFT JOIN metrics ON metrics.run = runs.number WHERE runs.id = ? ORDER BY position",
                  id);
    int64_t seal = 0, recorded = 0;
    while (row.step()) {
      recorded = row[4].getInt64();
      if (row[0].isNull()) break;  // of a run without metrics
      const MetricLine line{row[0], row[1], names[row[2].getInt64()],
                            row[3].isNull() ? std::numeric_limits<double>::quiet_NaN() : row[3].getDouble()};
      read(line);
      seal = sealed_with(seal, line);
    }
    if (seal != recorded) fail_changed(*database_, fmt::format("the metrics of run {}", id));
  });
}

std::vector<MetricLine> Store::metrics_of(const std::string& id) const {
  std::vector<MetricLine> lines;
  read_metrics(id, [&](const MetricLine& line) { lines.push_back(line); });
  return lines;
}

std::vector<std::string> Store::metric_names() const {
  Statement row(*statements_, "SELECT name FROM metric_names ORDER BY name");
  return text_column(row);
}

std::vector<std::string> Store::metric_names_of(const std::string& id) const {
  Statement row(*statements_,
                "SELECT name FROM metric_names WHERE number IN "
                "(SELECT name FROM metrics WHERE run = (SELECT number FROM runs WHERE id = ?)) ORDER BY name",
                id);
  return text_column(row);
}

std::map<std::string, MetricLine> Store::newest_metrics(const std::string& id) const {
  std::map<std::string, MetricLine> newest;
  read_metrics(id, [&](const MetricLine& line) { newest[line.name] = line; });
  return newest;
}

int64_t Store::failures_of(const std::string& id, FailureClass failure) const {
  Statement row(
      *statements_,
      "SELECT count(*) FROM attempts JOIN runs ON runs.number = attempts.run "
      "WHERE runs.id = ? AND outcome = ? AND attempt > tries_from AND attempts.checkpoint >= "
      "(SELECT checkpoint FROM attempts newest WHERE newest.run = attempts.run ORDER BY attempt DESC LIMIT 1)",
      id, name_of(failure));
  row.step();
  return row[0];
}

QueryResult Store::query(const std::string& sql) const {
  QueryResult result;
  in_snapshot([&] {  // the metrics that were compared with their seals are those that the query reads
    result = ask(*database_, sql, [&] {
      Statement row(*statements_, "SELECT id FROM runs");
      for (const std::string& id : text_column(row)) read_metrics(id, [](const MetricLine&) {});
    });
  });
  return result;
}

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
