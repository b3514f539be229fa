// What the harness remembers: runs with their states, attempts, metrics, scores, sweeps. SQLite below; no other room
// speaks SQL. The const methods are all that a reader has. The database can always be made again from the run and sweep
// folders (rebuild.h); SQL as an interface for people is docs/sql.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/run_result.h"
#include "harness/runs/states.h"
#include "harness/runs/workspace.h"

namespace SQLite {
class Database;
}

namespace tearless::harness {

/// A run's place in its grid for people: "layer_norm · pre · seed 1".
std::string place_label(const nlohmann::ordered_json& coordinates, int64_t seed);

/// A run as a sweep asks for it.
struct RunRequest {
  std::string id;
  std::string canonical;    // text of run.toml; "" while its corpus is missing
  std::string waiting_for;  // not empty: which file the run waits for; its id is then provisional
  std::optional<int64_t> parameters;
  std::optional<int64_t> memory_bytes;
  int64_t updates = 0;
  nlohmann::ordered_json coordinates;  // {"axis": "label", …} in the order of the axes
  int64_t seed = 0;
};

/// One submission of a grid. The same grid with the same runs is the same sweep.
struct Sweep {
  std::string id;
  std::string title;
  std::string grid_file;  // absolute
  std::string submitted_at;
  std::vector<RunRequest> runs;  // in the grid's order
};

struct RunRecord {
  std::string id;
  RunState state = RunState::kQueued;
  FailureClass failure = FailureClass::kNone;
  std::string reason;
  std::string canonical;
  std::optional<int64_t> parameters;
  std::optional<int64_t> step;  // the update at which it ended or diverged
  int64_t updates = 0;
  std::map<std::string, std::string> coordinates;  // axis name → label; only where asked for by sweep
  int64_t seed = 0;                                // likewise
  std::string label;                               // likewise: coordinates and seed for people
};

struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::json>> rows;
};

class Store {
 public:
  /// Makes the workspace and the database where there is none, and brings an older one up to date. UserError where
  /// another process writes (naming its pid), on a network file system, for a database of a newer tearless, or one that
  /// is damaged.
  static std::unique_ptr<Store> open_writer(const Workspace& workspace);
  /// Null where nothing has been run; makes and changes nothing. UserError where the database is gone from beside its
  /// runs, of another schema, or damaged; the reading below throws that too.
  static std::unique_ptr<const Store> open_reader(const Workspace& workspace);
  /// Over a database that is open (database.h); with a lock it is the writer's.
  Store(std::unique_ptr<SQLite::Database> database, std::optional<LockFile> lock);
  ~Store();

  // --- reading -----------------------------------------------------------------------------------------------------
  /// `state` is empty for a run the store has never heard of. With `numerics_now` (Probe::numerics) older results are
  /// stale. UserError where the result is no longer what was recorded.
  RunResult result_of(const std::string& id, std::optional<int64_t> numerics_now = std::nullopt) const;
  /// False where an end (done, diverged, failed) is no longer what was recorded: a bit has flipped, or someone has
  /// written to the database.
  bool is_as_recorded(const std::string& id) const;
  std::optional<RunRecord> run(const std::string& id) const;
  std::vector<AttemptRecord> attempts_of(const std::string& id) const;
  std::vector<std::string> ids_starting_with(const std::string& prefix) const;
  std::vector<std::string> ids_in(RunState state) const;
  /// Newest first, without their runs.
  std::vector<Sweep> sweeps() const;
  /// In the grid's order, with coordinates.
  std::vector<RunRecord> runs_of(const std::string& sweep) const;
  /// As they are stored, whether or not they are as recorded.
  std::map<std::string, double> scores_of(const std::string& id) const;
  /// All lines of metrics.jsonl that were read, in its order.
  std::vector<MetricLine> metrics_of(const std::string& id) const;
  /// The newest value of each metric.
  std::map<std::string, MetricLine> newest_metrics(const std::string& id) const;
  /// How many attempts of a run ended with this class since it was last queued on request, and since it last made
  /// progress: with no newer checkpoint than the newest attempt left.
  int64_t failures_of(const std::string& id, FailureClass failure) const;
  /// One SELECT (query.h); UserError for what SQLite refuses, and for what could change or make a file.
  QueryResult query(const std::string& sql) const;

  // --- writing (SQLite's own errors become UserErrors inside in_one_step) ------------------------------------------
  /// Adds the sweep and those of its runs that are new (queued or waiting_data); states of known runs stay as they are,
  /// but what earlier sweeps of the same grid file still wait for under a provisional id is cancelled.
  void submit(const Sweep& sweep);
  /// The one way in which a state changes; a move that is not legal, or not from this state, is a logic error.
  void move(const std::string& id, RunState from, RunState to, FailureClass failure = FailureClass::kNone,
            const std::string& reason = "", std::optional<int64_t> step = std::nullopt);
  /// From any state that allows it, on request: earlier failures no longer count.
  void requeue(const std::string& id, const std::string& reason);
  void put_run(const RunRequest& run);  ///< queued or waiting_data; of a known run it only fills in what was unknown
  void put_attempt(const std::string& id, const AttemptRecord& attempt);  ///< replaces the one of that number
  void put_scores(const std::string& id, const std::map<std::string, double>& scores);  ///< replaces all

  /// How far metrics.jsonl has been read.
  int64_t metrics_bytes(const std::string& id) const;
  /// Forgets what lay at or past `from_byte`, adds `lines`, and notes that `to_byte` is reached.
  void put_metrics(const std::string& id, int64_t from_byte, const std::vector<MetricLine>& lines, int64_t to_byte);

  /// All of `writes` or nothing, with one wait for the disk. May stand inside another one. UserError where the disk is
  /// full or cannot be written; what was committed before stays.
  void in_one_step(const std::function<void()>& writes);

 private:
  int64_t run_number(const std::string& id) const;
  std::string seal_of(const std::string& id) const;
  void cancel_superseded(const Sweep& sweep);

  std::optional<LockFile> lock_;  // the writer's; released after the database is closed
  std::unique_ptr<SQLite::Database> database_;
};

}  // namespace tearless::harness
