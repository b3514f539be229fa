// The writing half of the store.
#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/fault.h"
#include "base/time.h"
#include "harness/store/database.h"
#include "harness/store/statements.h"
#include "harness/store/store.h"

namespace tearless::harness {
int64_t Store::run_number(const std::string& id) const {
  Statement row(*statements_, "SELECT number FROM runs WHERE id = ?");
  row.bind(1, id);
  if (!row.executeStep()) throw std::logic_error("no run " + id + " in the store");
  return row.getColumn(0).getInt64();
}

namespace {

/// While it lives, SQLite may keep many pages in memory. Ids come in no order: a transaction that adds 100,000 runs
/// changes each page of their index again and again.
class LargeCache {
 public:
  explicit LargeCache(SQLite::Database& database) : database_(database) {
    database_.exec("PRAGMA cache_size = -262144");  // KiB
  }
  ~LargeCache() { database_.tryExec("PRAGMA cache_size = -2000"); }  // SQLite's default
  LargeCache(const LargeCache&) = delete;
  LargeCache& operator=(const LargeCache&) = delete;

 private:
  SQLite::Database& database_;
};

void bind_run(Statement& statement, const Run& run) {
  statement.bind(1, run.id);
  statement.bind(2, run.settings);
  statement.bind(3, run.parameters);
  statement.bind(4, run.needs.memory_bytes);
  statement.bind(5, run.updates);
  statement.bind(6, run.local);
  statement.bind(7, run.needs.device);
  statement.bind(8, run.needs.threads);
  statement.bind(9, run.needs.resource_class);
  statement.bind(10, nlohmann::json(run.data ? *run.data : InputFiles()).dump());
}

/// Adds the runs that are new, and fills in what was not known of the others. Returns their numbers.
std::vector<int64_t> put(SQLite::Database& database, Statements& statements, std::span<const Run> runs) {
  Statement find(statements, "SELECT number FROM runs WHERE id = ?");
  Statement insert(statements,
                   "INSERT INTO runs (id, canonical, parameters, memory_bytes, updates, local, device, threads, shape, "
                   "data, state, reason, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Statement update(statements,
                   "UPDATE runs SET canonical = iif(canonical = '', ?2, canonical), "
                   "parameters = coalesce(?3, parameters), memory_bytes = coalesce(?4, memory_bytes), "
                   "updates = max(?5, updates), local = ?6, device = ?7, threads = ?8, "
                   "shape = iif(?9 = '', shape, ?9), data = ?10 WHERE id = ?1");
  const std::string now = utc_now();
  std::vector<int64_t> numbers;
  for (const Run& run : runs) {
    find.bind(1, run.id);
    const bool known = find.executeStep();
    const int64_t number = known ? find.getColumn(0).getInt64() : 0;
    find.reset();
    Statement& write = known ? update : insert;
    bind_run(write, run);
    if (!known) {
      insert.bind(11, std::string(name_of(run.waiting_for.empty() ? RunState::kQueued : RunState::kWaitingData)));
      insert.bind(12, run.waiting_for);
      insert.bind(13, now);
    }
    write.exec();
    write.reset();
    numbers.push_back(known ? number : database.getLastInsertRowid());
  }
  return numbers;
}

}  // namespace

void Store::put_run(const Run& run) {
  in_transaction([&] { put(*database_, *statements_, {&run, 1}); });
}

void Store::put_memory_peak(const std::string& resource_class, int64_t bytes) {
  const std::string text = nlohmann::json{{"peak_bytes", bytes}}.dump();
  Question known(*statements_, "SELECT 1 FROM shapes WHERE shape = ? AND learnt = ?");
  known.bind(1, resource_class);
  known.bind(2, text);
  if (known.executeStep()) return;  // most runs of a shape teach nothing new, and a transaction waits for the disk
  in_transaction([&] {
    Statement row(*statements_, "INSERT OR REPLACE INTO shapes (shape, learnt) VALUES (?, ?)");
    row.bind(1, resource_class);
    row.bind(2, text);
    row.exec();
  });
}

void Store::submit(const Sweep& sweep) {
  const LargeCache large_cache(*database_);
  const WithoutChecks without_checks(*database_);
  in_transaction([&] {
    Statement row(*statements_,
                  "INSERT INTO sweeps (id, title, grid_file, submitted_at, program, policy, state, reason, priority, "
                  "stamp, submission) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                  "(SELECT coalesce(max(submission), 0) + 1 FROM sweeps)) "
                  "ON CONFLICT (id) DO UPDATE SET title = excluded.title, grid_file = excluded.grid_file, "
                  "submitted_at = excluded.submitted_at, program = excluded.program, "
                  "stamp = excluded.stamp, policy = excluded.policy, state = excluded.state, reason = excluded.reason, "
                  "submission = excluded.submission");
    row.bind(1, sweep.id);
    row.bind(2, sweep.title);
    row.bind(3, sweep.grid_file);
    row.bind(4, sweep.submitted_at);
    row.bind(5, sweep.program);
    row.bind(6, to_json(sweep.policy).dump());
    row.bind(7, std::string(name_of(sweep.state)));
    row.bind(8, sweep.reason);
    row.bind(9, sweep.priority);
    row.bind(10, sweep.stamp.dump());
    row.exec();

    const std::vector<int64_t> numbers = put(*database_, *statements_, sweep.runs);
    Statement place(*statements_,
                    "INSERT OR REPLACE INTO sweep_runs (sweep, place, run, coordinates, seed, rank) "
                    "VALUES (?, ?, ?, ?, ?, ?)");
    for (size_t i = 0; i < sweep.runs.size(); ++i) {
      const Run& run = sweep.runs[i];
      place.bind(1, sweep.id);
      place.bind(2, static_cast<int64_t>(i));
      place.bind(3, numbers[i]);
      place.bind(4, to_json(run.coordinates).dump());
      place.bind(5, run.seed);
      place.bind(6, run.rank);
      place.exec();
      place.reset();
    }
    cancel_superseded(sweep);
  });
}

void Store::set_sweep_state(const std::string& id, SweepState state, const std::string& reason) {
  in_transaction([&] {
    Statement update(*statements_, "UPDATE sweeps SET state = ?, reason = ? WHERE id = ?");
    update.bind(1, std::string(name_of(state)));
    update.bind(2, reason);
    update.bind(3, id);
    if (update.exec() != 1) throw std::logic_error("no sweep " + id + " in the store");
  });
}

void Store::set_priority(const std::string& id, int64_t priority) {
  in_transaction([&] {
    Statement update(*statements_, "UPDATE sweeps SET priority = ? WHERE id = ?");
    update.bind(1, priority);
    update.bind(2, id);
    if (update.exec() != 1) throw std::logic_error("no sweep " + id + " in the store");
  });
}

// Once its corpus is there, a run gets its final id and nothing refers to the provisional one any more.
void Store::cancel_superseded(const Sweep& sweep) {
  Question superseded(
      *statements_,
      "SELECT id FROM runs WHERE state = 'waiting_data' AND canonical = '' "
      "AND number IN (SELECT run FROM sweep_runs JOIN sweeps ON sweeps.id = sweep WHERE grid_file = ?1) "
      "AND number NOT IN (SELECT run FROM sweep_runs WHERE sweep = ?2)");
  superseded.bind(1, sweep.grid_file);
  superseded.bind(2, sweep.id);
  for (const std::string& id : text_column(superseded)) {
    move(id, RunState::kWaitingData, RunState::kCancelled, FailureClass::kNone,
         "the grid has changed, or its corpus is now there");
  }
}

void Store::move(const std::string& id, RunState from, RunState to, FailureClass failure, const std::string& reason,
                 std::optional<int64_t> step) {
  if (!is_legal(from, to)) {
    throw std::logic_error(fmt::format("run {}: no change from {} to {} is allowed", id, name_of(from), name_of(to)));
  }
  in_transaction([&] {
    Statement update(
        *statements_,
        "UPDATE runs SET state = ?, class = ?, reason = ?, step = ?, changed_at = ? WHERE id = ? AND state = ?");
    update.bind(1, std::string(name_of(to)));
    update.bind(2, std::string(name_of(failure)));
    update.bind(3, reason);
    update.bind(4, step);
    update.bind(5, utc_now());
    update.bind(6, id);
    update.bind(7, std::string(name_of(from)));
    if (update.exec() != 1) throw std::logic_error(fmt::format("run {} is not {}", id, name_of(from)));
    if (!has_result(from)) return;
    Statement forget(*statements_, "DELETE FROM results WHERE run = ?");
    forget.bind(1, run_number(id));
    forget.exec();
  });
}

void Store::set_reason(const std::string& id, const std::string& reason) {
  in_transaction([&] {
    Statement update(*statements_, "UPDATE runs SET reason = ? WHERE id = ?");
    update.bind(1, reason);
    update.bind(2, id);
    if (update.exec() != 1) throw std::logic_error("no run " + id + " in the store");
  });
}

void Store::requeue(const std::string& id, const std::string& reason) {
  const std::optional<RunRecord> record = run(id);
  if (!record) throw std::logic_error("no run " + id + " in the store");
  in_transaction([&] {
    move(id, record->state, RunState::kQueued, FailureClass::kNone, reason);
    Statement forgive(
        *statements_,
        "UPDATE runs SET tries_from = coalesce((SELECT max(attempt) FROM attempts WHERE run = number), 0) "
        "WHERE id = ?");
    forgive.bind(1, id);
    forgive.exec();
  });
}

void Store::forget_attempts(const std::string& id) {
  in_transaction([&] {
    const int64_t number = run_number(id);
    for (const char* sql : {"DELETE FROM attempts WHERE run = ?", "DELETE FROM metrics WHERE run = ?",
                            "UPDATE runs SET tries_from = 0, metrics_bytes = 0 WHERE number = ?"}) {
      Statement forget(*statements_, sql);
      forget.bind(1, number);
      forget.exec();
    }
  });
}

void Store::forget(const std::string& sweep, const std::vector<std::string>& runs) {
  in_transaction([&] {
    Statement whole(*statements_, "DELETE FROM sweeps WHERE id = ?");
    whole.bind(1, sweep);
    whole.exec();
    Statement one(*statements_, "DELETE FROM runs WHERE id = ?");
    for (const std::string& run : runs) {
      one.bind(1, run);
      one.exec();
      one.reset();
    }
  });
}

void Store::put_attempt(const std::string& id, const AttemptRecord& attempt) {
  Statement row(
      *statements_,
      "INSERT OR REPLACE INTO attempts (run, attempt, outcome, reason, code, signal, started_at, ended_at, host, "
      "device, processor, version, numerics, measured, checkpoint, lost_updates, lost_seconds, arithmetic) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  row.bind(1, run_number(id));
  row.bind(2, attempt.number);
  row.bind(3, attempt.outcome);
  row.bind(4, attempt.reason);
  row.bind(5, attempt.code);
  row.bind(6, attempt.signal);
  row.bind(7, attempt.started_at);
  row.bind(8, attempt.ended_at);
  row.bind(9, attempt.host);
  row.bind(10, attempt.device);
  row.bind(11, attempt.processor);
  row.bind(12, attempt.version);
  row.bind(13, attempt.numerics);
  row.bind(14, attempt.measured.dump());
  row.bind(15, attempt.checkpoint);
  if (attempt.lost) {
    row.bind(16, attempt.lost->updates);
    row.bind(17, attempt.lost->seconds);
  }
  row.bind(18, attempt.arithmetic);
  row.exec();
}

void Store::put_result(const std::string& id, const RecordedResult& result) {
  Statement row(*statements_, "INSERT OR REPLACE INTO results (run, done, scores) VALUES (?, ?, ?)");
  row.bind(1, run_number(id));
  row.bind(2, result.done);
  if (result.scores) row.bind(3, *result.scores);
  row.exec();
}

int64_t Store::metrics_bytes(const std::string& id) const {
  Statement row(*statements_, "SELECT metrics_bytes FROM runs WHERE id = ?");
  row.bind(1, id);
  return row.executeStep() ? row.getColumn(0).getInt64() : 0;
}

void Store::put_metrics(const std::string& id, int64_t from_byte, const std::vector<MetricLine>& lines,
                        int64_t to_byte) {
  const int64_t number = run_number(id);
  Statement forget(*statements_, "DELETE FROM metrics WHERE run = ? AND position >= ?");
  forget.bind(1, number);
  forget.bind(2, from_byte);
  forget.exec();

  Statement name(*statements_, "INSERT OR IGNORE INTO metric_names (name) VALUES (?)");
  Statement row(*statements_,
                "INSERT INTO metrics (run, position, step, name, value) "
                "VALUES (?, ?, ?, (SELECT number FROM metric_names WHERE name = ?), ?)");
  std::set<std::string> known;
  for (const MetricLine& line : lines) {
    if (known.insert(line.name).second) {
      name.bind(1, line.name);
      name.exec();
      name.reset();
    }
    row.bind(1, number);
    row.bind(2, line.position);
    row.bind(3, line.step);
    row.bind(4, line.name);
    row.bind(5, line.value);
    row.exec();
    row.reset();
  }

  Statement reached(*statements_, "UPDATE runs SET metrics_bytes = ? WHERE number = ?");
  reached.bind(1, to_byte);
  reached.bind(2, number);
  reached.exec();
}

void Store::in_transaction(const std::function<void()>& writes) {
  const bool inside_another = sqlite3_get_autocommit(database_->getHandle()) == 0;
  if (inside_another) return writes();
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

}  // namespace tearless::harness
