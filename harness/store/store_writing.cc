// The writing half of the store.
#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fault.h"
#include "base/time.h"
#include "harness/store/checksums.h"
#include "harness/store/database.h"
#include "harness/store/statements.h"
#include "harness/store/store.h"

namespace tearless::harness {
namespace {

template <class... Values>
int write(Statements& statements, const std::string& sql, const Values&... values) {
  return Statement(statements, sql, values...).write();
}

/// Adds a run that is new, or fills in what was not known of it. Returns its number.
int64_t put(SQLite::Database& database, Statements& statements, const Run& run) {
  const auto write_run = [&](const std::string& sql, const auto&... more) {
    write(statements, sql, run.id, run.settings, run.parameters, run.needs.memory_bytes, run.updates, run.local,
          run.needs.device, run.needs.threads, run.needs.resource_class,
          nlohmann::json(run.data ? *run.data : InputFiles()).dump(), more...);
  };
  Statement known(statements, "SELECT number FROM runs WHERE id = ?", run.id);
  if (known.step()) {
    write_run(
        "UPDATE runs SET canonical = iif(canonical = '', ?2, canonical), parameters = coalesce(?3, parameters), "
        "memory_bytes = coalesce(?4, memory_bytes), updates = max(?5, updates), local = ?6, device = ?7, threads = ?8, "
        "resource_class = iif(?9 = '', resource_class, ?9), data = ?10 WHERE id = ?1");
    return known[0];
  }
  write_run(
      "INSERT INTO runs (id, canonical, parameters, memory_bytes, updates, local, device, threads, resource_class, "
      "data, state, "
      "reason, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      name_of(run.waiting_for.empty() ? RunState::kQueued : RunState::kWaitingData), run.waiting_for, utc_now());
  return database.getLastInsertRowid();
}

}  // namespace

int64_t Store::run_number(const std::string& id) const {
  Statement row(*statements_, "SELECT number FROM runs WHERE id = ?", id);
  if (!row.step()) throw std::logic_error("no run " + id + " in the store");
  return row[0];
}

void Store::put_run(const Run& run) {
  in_transaction([&] { put(*database_, *statements_, run); });
}

void Store::put_memory_peak(const std::string& resource_class, int64_t bytes) {
  const std::string text = nlohmann::json{{"peak_bytes", bytes}}.dump();
  Statement known(*statements_, "SELECT 1 FROM resource_classes WHERE resource_class = ? AND learnt = ?",
                  resource_class, text);
  if (known.step()) return;  // most runs of a resource class teach nothing new, and a transaction waits for the disk
  in_transaction([&] {
    write(*statements_, "INSERT OR REPLACE INTO resource_classes (resource_class, learnt) VALUES (?, ?)",
          resource_class, text);
  });
}

void Store::submit(const Sweep& sweep) {
  in_transaction([&] {
    const SubmissionNumbers numbers = sweep.submission.newest > 0 ? sweep.submission : numbers_for(sweep.id);
    write(
        *statements_,
        "INSERT INTO sweeps (id, title, grid_file, submitted_at, program, policy, state, reason, priority, stamp, "
        "name, submission, queued_as) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET title = excluded.title, name = excluded.name, grid_file = excluded.grid_file, "
        "submitted_at = excluded.submitted_at, program = excluded.program, stamp = excluded.stamp, "
        "policy = excluded.policy, state = excluded.state, reason = excluded.reason, "
        "submission = excluded.submission, queued_as = excluded.queued_as",
        sweep.id, sweep.title, sweep.grid_file, sweep.submitted_at, sweep.program, nlohmann::json(sweep.policy).dump(),
        name_of(sweep.state), sweep.reason, sweep.priority, sweep.stamp.dump(), sweep.name, numbers.newest,
        numbers.queued);
    int64_t place = 0;
    for (const Run& run : sweep.runs) {
      const int64_t number = put(*database_, *statements_, run);
      write(*statements_,
            "INSERT OR REPLACE INTO sweep_runs (sweep, place, run, coordinates, seed, rank) VALUES (?, ?, ?, ?, ?, ?)",
            sweep.id, place++, number, to_json(run.coordinates).dump(), run.seed, run.rank);
    }
    // It may have asked for more before.
    write(*statements_, "DELETE FROM sweep_runs WHERE sweep = ? AND place >= ?", sweep.id, place);
    cancel_superseded(sweep);
  });
}

// Once its corpus is there, a run gets its final id and nothing refers to the provisional one any more.
void Store::cancel_superseded(const Sweep& sweep) {
  Statement superseded(
      *statements_,
      "SELECT id FROM runs WHERE state = 'waiting_data' AND canonical = '' "
      "AND number IN (SELECT run FROM sweep_runs JOIN sweeps ON sweeps.id = sweep WHERE grid_file = ?1) "
      "AND number NOT IN (SELECT run FROM sweep_runs WHERE sweep = ?2)",
      sweep.grid_file, sweep.id);
  for (const std::string& id : text_column(superseded)) {
    move(id, RunState::kWaitingData, RunState::kCancelled, FailureClass::kNone,
         "the grid has changed, or its corpus is now there");
  }
}

void Store::set_sweep_state(const std::string& id, SweepState state, const std::string& reason) {
  in_transaction(
      [&] { write(*statements_, "UPDATE sweeps SET state = ?, reason = ? WHERE id = ?", name_of(state), reason, id); });
}

void Store::set_priority(const std::string& id, int64_t priority) {
  in_transaction([&] { write(*statements_, "UPDATE sweeps SET priority = ? WHERE id = ?", priority, id); });
}

void Store::move(const std::string& id, RunState from, RunState to, FailureClass failure, const std::string& reason,
                 std::optional<int64_t> step) {
  if (!is_legal(from, to)) {
    throw std::logic_error(fmt::format("run {}: no change from {} to {} is allowed", id, name_of(from), name_of(to)));
  }
  in_transaction([&] {
    const int changed =
        write(*statements_,
              "UPDATE runs SET state = ?, class = ?, reason = ?, step = ?, changed_at = ? WHERE id = ? AND state = ?",
              name_of(to), name_of(failure), reason, step, utc_now(), id, name_of(from));
    if (changed != 1) throw std::logic_error(fmt::format("run {} is not {}", id, name_of(from)));
    if (has_result(from)) write(*statements_, "DELETE FROM results WHERE run = ?", run_number(id));
  });
}

void Store::set_reason(const std::string& id, const std::string& reason) {
  in_transaction([&] { write(*statements_, "UPDATE runs SET reason = ? WHERE id = ?", reason, id); });
}

void Store::requeue(const std::string& id, const std::string& reason) {
  in_transaction([&] {
    move(id, known_run(id).state, RunState::kQueued, FailureClass::kNone, reason);
    write(*statements_,
          "UPDATE runs SET tries_from = coalesce((SELECT max(attempt) FROM attempts WHERE run = number), 0) "
          "WHERE id = ?",
          id);
  });
}

void Store::forget_attempts(const std::string& id) {
  in_transaction([&] {
    for (const char* sql : {"DELETE FROM attempts WHERE run = ?", "DELETE FROM metrics WHERE run = ?",
                            "UPDATE runs SET tries_from = 0, metrics_bytes = 0, metrics_seal = 0 WHERE number = ?"}) {
      write(*statements_, sql, run_number(id));
    }
  });
}

void Store::forget(const std::string& sweep, const std::vector<std::string>& runs) {
  in_transaction([&] {
    write(*statements_, "DELETE FROM sweeps WHERE id = ?", sweep);
    for (const std::string& run : runs) write(*statements_, "DELETE FROM runs WHERE id = ?", run);
  });
}

void Store::put_attempt(const std::string& id, const AttemptRecord& attempt) {
  std::optional<int64_t> lost_updates;
  std::optional<double> lost_seconds;
  if (attempt.lost) {
    lost_updates = attempt.lost->updates;
    lost_seconds = attempt.lost->seconds;
  }
  write(*statements_,
        "INSERT OR REPLACE INTO attempts (run, attempt, outcome, reason, code, signal, started_at, ended_at, host, "
        "device, processor, version, numerics, measured, checkpoint, lost_updates, lost_seconds, arithmetic, "
        "program_file) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        run_number(id), attempt.number, attempt.outcome, attempt.reason, attempt.code, attempt.signal,
        attempt.started_at, attempt.ended_at, attempt.host, attempt.device, attempt.processor, attempt.version,
        attempt.numerics, attempt.measured.dump(), attempt.checkpoint, lost_updates, lost_seconds, attempt.arithmetic,
        attempt.program_file);
}

void Store::put_result(const std::string& id, const RecordedResult& result) {
  write(*statements_, "INSERT OR REPLACE INTO results (run, done, scores) VALUES (?, ?, ?)", run_number(id),
        result.done, result.scores);
}

int64_t Store::metrics_bytes(const std::string& id) const {
  Statement row(*statements_, "SELECT metrics_bytes FROM runs WHERE id = ?", id);
  return row.step() ? row[0].getInt64() : 0;
}

void Store::put_metrics(const std::string& id, int64_t from_byte, const std::vector<MetricLine>& lines,
                        int64_t to_byte) {
  const int64_t number = run_number(id);
  if (from_byte != 0 && from_byte != metrics_bytes(id)) throw std::logic_error("metrics of " + id + ": a gap");
  write(*statements_, "DELETE FROM metrics WHERE run = ? AND position >= ?", number, from_byte);
  int64_t seal = 0;
  if (from_byte != 0) {
    Statement row(*statements_, "SELECT metrics_seal FROM runs WHERE number = ?", number);
    row.step();
    seal = row[0].getInt64();
  }
  std::set<std::string> known;
  for (const MetricLine& line : lines) {
    if (known.insert(line.name).second) {
      write(*statements_, "INSERT OR IGNORE INTO metric_names (name) VALUES (?)", line.name);
    }
    write(*statements_,
          "INSERT INTO metrics (run, position, step, name, value) "
          "VALUES (?, ?, ?, (SELECT number FROM metric_names WHERE name = ?), ?)",
          number, line.position, line.step, line.name, line.value);
    seal = sealed_with(seal, line);
  }
  write(*statements_, "UPDATE runs SET metrics_bytes = ?, metrics_seal = ? WHERE number = ?", to_byte, seal, number);
}

void Store::in_transaction(const std::function<void()>& writes) {
  const bool inside_another = sqlite3_get_autocommit(database_->getHandle()) == 0;
  if (inside_another) return writes();
  require_there();
  try {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    writes();
    if (fault::point(fault::kCommit, "") != 0) throw SQLite::Exception("commit", SQLITE_FULL);
    transaction.commit();
  } catch (const SQLite::Exception& error) {
    const std::string sentence = fmt::format(
        "cannot write the database {}: {}; what was recorded before is safe, and the next `tearless run` continues "
        "from there",
        database_->getFilename(), error.what());
    const int code = error.getErrorCode() & 0xFF;  // the primary code
    if (code == SQLITE_FULL || code == SQLITE_IOERR) throw MachineError(sentence);
    throw UserError(sentence);
  }
}

void Store::in_savepoint(const std::function<void()>& writes) {
  database_->exec("SAVEPOINT part");
  try {
    writes();
  } catch (const UserError&) {
    database_->exec("ROLLBACK TO part");
    database_->exec("RELEASE part");
    throw;
  }
  database_->exec("RELEASE part");
}

}  // namespace tearless::harness
