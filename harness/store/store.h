// The database of a workspace: runs with their states, attempts, metrics, results and sweeps, in SQLite. Other
// rooms call its functions; `tearless sql` passes on what a user types. One process writes (open_writer), any number
// read (open_reader, const methods only).
//
// Results live in the run folders first: a lost database is recreated from the run and sweep folders (rebuild.h). A
// result is the bytes of two files, DONE and scores.json, which the table `results` keeps; the view of scores reads
// them. Metrics are the file metrics.jsonl, which the database indexes. The views that users query are described in
// docs/sql.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/environment.h"
#include "harness/runs/run.h"
#include "harness/runs/run_result.h"
#include "harness/runs/states.h"
#include "harness/runs/workspace.h"

namespace SQLite {
class Database;
}

namespace tearless::harness {

class Statements;

/// Of a sweep that is trained until its claims are decided: the runs that it begins with. Others are in it once a look
/// has asked for them (folders/looks.h).
struct UntilDecided {
  std::vector<int64_t> first_seeds;
  std::optional<double> max_hours = {};  // after its submission, in which looks ask for more runs; unset: no limit
};
TEARLESS_JSON(UntilDecided, (first_seeds), (max_hours))

/// What a sweep asks of the scheduler, beyond its runs.
struct SweepPolicy {
  double stall_seconds = 1800;  // an attempt without sign of life for that long is stopped; 0: never
  int grace_seconds = 30;       // between SIGTERM and SIGKILL when a program is stopped
  int64_t memory_bytes = 0;     // that a run needs, of the GPU for a run on "cuda"; 0: the program's estimate counts
  std::map<std::string, int> tries = {};  // class of failure → failures after which a run fails; others: policy.h
  std::optional<SubmittedEnvironment> environment = {};  // unset, of a sweep of an older build: runs have the service's
  std::string executor = {};                             // whose machines train its runs; "": the service's machine
  nlohmann::json executor_section = {};  // what is known of it, as it was at the submission; null: it is built in
  bool same_device = false;              // all its runs on one kind of GPU or processor, that of its first attempt
  std::optional<UntilDecided> until_decided = {};  // unset: all its runs are wanted from the beginning
};
TEARLESS_JSON(SweepPolicy, (stall_seconds, grace_seconds, memory_bytes, tries),
              (environment, executor, executor_section, same_device, until_decided))

/// The submissions of all sweeps of a workspace are numbered in their order, whatever the clock says.
struct SubmissionNumbers {
  int64_t newest = 0;  // of the sweep's newest submission; 0: not numbered yet
  int64_t queued = 0;  // its place in the queue: of its first submission since it was over last
};

/// One submission of a grid. The same grid text with the same runs is the same sweep.
struct Sweep {
  std::string id;  // sweep_id()
  std::string title;
  std::string name = {};     // by which people call it, no part of the id: --name, else the title
  std::string grid_file;     // absolute; of a copy of results alone its name
  std::string submitted_at;  // UTC
  std::vector<Run> runs;     // in the grid's order
  std::string program = {};  // path of the training program, absolute or relative to the workspace
  nlohmann::json stamp = nlohmann::json::object();  // the program's name, version and numerics, for start.json
  SweepPolicy policy = {};
  SweepState state = SweepState::kActive;
  std::string reason = {};  // of the state, one sentence
  int64_t priority = 0;     // sweeps of higher priority go first
  SubmissionNumbers submission = {};
  // Names and patterns of the scores that its runs can have, and of their metrics that are of windows
  // (ResultSet::windows); unset: not known, or read from the database.
  std::optional<std::vector<std::string>> scores = {}, windows = {};
  // The user's own words, no part of the id; empty where it was read from the database.
  std::vector<std::string> tags = {};
  std::string note = {};
  std::string engine = {};  // what was typed as --engine, absolute; likewise
  // When each of its claims was first submitted, UTC: ClaimSpec::hash → time; likewise.
  std::map<std::string, std::string> declared = {};
  nlohmann::json commit = {};  // of its newest submission (plan/commit.h), null if there was none; likewise
};

/// The failures of a class after which a run of these sweeps fails: as runs/policy.h says, or the most patient of them.
int tries_of(const std::vector<Sweep>& sweeps, FailureClass failure);

/// A run with its state. Coordinates, seed, rank and place are of one sweep, and unset where no sweep was named.
struct RunRecord : Run {
  RunState state = RunState::kQueued;
  FailureClass failure = FailureClass::kNone;  // of the last attempt, if that failed
  std::string reason = {};                     // of state and failure, one phrase
  std::optional<int64_t> step = {};            // the update at which it ended or diverged
  int64_t place = 0;                           // in the grid's order
};

/// How long a run that is done took, in all its attempts.
struct Timing {
  std::string id = {};
  std::string resource_class;
  int64_t updates = 0;  // maximum number
  double seconds = 0;
  // What the program measured of these seconds; 0 if it did not.
  double training_seconds = 0;  // of updates_made
  int64_t updates_made = 0;
  double evaluation_seconds = 0;  // of `evaluations`
  int64_t evaluations = 0;
};

/// What a run left as its result: the bytes of these files.
struct RecordedResult {
  std::string done;                   // DONE
  std::optional<std::string> scores;  // scores.json; unset if there is none
};
/// The first of these files that is another in the run's folder, or "".
std::string changed_file(const RecordedResult& result, const RunDirectory& folder);

/// The command that recreates a lost or damaged database: "tearless rebuild --workspace …".
std::string rebuild_command(const std::filesystem::path& root);

struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::json>> rows;
};

class Store {
 public:
  /// Opens the database for writing and takes the writer lock. Creates the workspace and the database if needed.
  /// UserError if another process writes (naming its pid), on a network file system, for a workspace of another format,
  /// and for a damaged or changed database.
  static std::unique_ptr<Store> open_writer(const Workspace& workspace);

  /// Opens the database read-only. Null if nothing has been run in the workspace. UserError if there are runs but no
  /// database, and for a database of another format, a damaged one, or one whose rows are not those that were recorded
  /// (metrics aside). The reading methods throw for a damaged one too.
  static std::unique_ptr<const Store> open_reader(const Workspace& workspace);

  /// Makes a database `file` of what `fill` writes: one file without side files. REQUIRES: the caller holds the writer
  /// lock, and no such file is there.
  static void make(const std::filesystem::path& file, const std::function<void(Store&)>& fill);

  /// Wraps an open database (database.h). Pass the writer lock if the database is open for writing.
  Store(std::unique_ptr<SQLite::Database> database, std::optional<LockFile> lock);
  ~Store();

  // --- reading -----------------------------------------------------------------------------------------------------

  /// Of the workspace.
  const std::filesystem::path& root() const;

  /// A run's result. `state` is unset for a run that the store does not know. It is stale if it was made with another
  /// training program than `program`, or is_outdated(). UserError, with the command to type, if the run has a folder
  /// and
  ///   - its DONE or scores.json is not what was recorded, or
  ///   - it has attempts, the store does not know the run, and no process writes the database.
  RunResult result_of(const std::string& id, const ProgramNow& program = {}) const;

  /// Whether a derived run has a result that was made from another one than that which the run from which it derives
  /// has now, or from an outdated one: DONE of the derived run names its inputs with their checksums.
  bool is_outdated(const RunRecord& derived) const;

  /// Nullopt for a run without a result.
  std::optional<RecordedResult> recorded_result(const std::string& id) const;

  /// The ids of the runs that derive from it.
  std::vector<std::string> derived_from(const std::string& id) const;

  /// The kind of GPU, or of processor where it has none, of the first attempt on any of the sweep's runs, as
  /// Needs::kind; "" if none has begun.
  std::string first_kind_in(const std::string& sweep) const;
  std::optional<RunRecord> run(const std::string& id) const;
  /// A run that was there before. UserError if it was deleted since.
  RunRecord known_run(const std::string& id) const;

  /// In ascending order of their numbers.
  std::vector<AttemptRecord> attempts_of(const std::string& id) const;
  /// The work that the attempts of a sweep's runs have lost together.
  LostWork lost_in(const std::string& sweep) const;
  /// How many of its runs without a result will start from the beginning, as no attempt at them left a checkpoint.
  int64_t restarts_in(const std::string& sweep) const;
  std::vector<std::string> ids_starting_with(const std::string& prefix) const;
  std::vector<std::string> ids_in(RunState state) const;

  /// Newest submission first, without their runs.
  std::vector<Sweep> sweeps() const;
  /// Without its runs.
  std::optional<Sweep> sweep(const std::string& id) const;
  /// The ids of the sweeps that are active, in the order of their places in the queue.
  std::vector<std::string> active_sweeps() const;
  /// True if no run of the sweep is queued, running, held or waiting for data, and for one that was cancelled or is not
  /// known.
  bool is_over(const std::string& sweep) const;
  /// The numbers of a new submission of the sweep. One that is not over keeps its place.
  SubmissionNumbers numbers_for(const std::string& sweep) const;

  StateCounts counts_of(const std::string& sweep) const;
  /// label_axes() of a sweep's runs.
  std::string label_axes_of(const std::string& sweep) const;
  /// The ids of the sweeps that have the run, the one that was submitted last at the end.
  std::vector<std::string> sweeps_of(const std::string& run) const;
  /// The id of each run that sweeps have → these, with the times at which they were submitted last.
  std::map<std::string, std::map<std::string, std::string>> submissions() const;

  /// Of the runs that are done, those whose resource class is known.
  std::vector<Timing> timings() const;

  /// The measured peak of memory of each resource class of which one is known, in bytes.
  std::map<std::string, int64_t> memory_peaks() const;
  /// True if a sweep that is not cancelled has the run.
  bool is_wanted(const std::string& run) const;

  /// The ids of the queued runs with exactly these input files.
  std::vector<std::string> queued_with(const InputFiles& files) const;

  /// The runs of a sweep in the grid's order. `states`: only those that are in one of them; empty: all.
  std::vector<RunRecord> runs_of(const std::string& sweep, const std::vector<RunState>& states = {}) const;
  /// The same, but each run once, at its first place: two rows of a grid may be one run.
  std::vector<RunRecord> each_run_of(const std::string& sweep, const std::vector<RunState>& states = {}) const;
  /// One of them. REQUIRES: the sweep has the run.
  RunRecord run_of(const std::string& sweep, const std::string& run) const;

  /// Calls `read` for each recorded line of metrics.jsonl, in the order of the file. UserError at the end if they are
  /// not those that were recorded.
  void read_metrics(const std::string& id, const std::function<void(const MetricLine&)>& read) const;
  /// All of them.
  std::vector<MetricLine> metrics_of(const std::string& id) const;

  /// The names of all metrics that some run has reported; those of a run.
  std::vector<std::string> metric_names() const;
  std::vector<std::string> metric_names_of(const std::string& id) const;

  /// Metric name → its last line.
  std::map<std::string, MetricLine> newest_metrics(const std::string& id) const;

  /// The number of a run's attempts that ended with this class, counting only attempts since the last requeue() and
  /// since the run last made progress, that is, reached the newest checkpoint.
  int64_t failures_of(const std::string& id, FailureClass failure) const;

  /// Runs one SELECT of a user. UserError if SQLite rejects it, for statements that do more than read (query.h), and
  /// for one that reads metrics if those of a run are not what was recorded.
  QueryResult query(const std::string& sql) const;

  /// Runs `reads`. They see the database as it is when the first of them begins, whatever another process writes
  /// meanwhile, and take one lock together instead of one each.
  void in_snapshot(const std::function<void()>& reads) const;

  // --- writing -----------------------------------------------------------------------------------------------------
  // REQUIRES: opened by open_writer(). Inside in_transaction() errors of SQLite become UserErrors.

  /// Adds the sweep as it is, and those of its runs that are new, as queued or waiting_data. Known runs keep their
  /// states, and a known sweep keeps its priority. A sweep without numbers gets the next. Cancels runs that earlier
  /// sweeps of the same grid file left in waiting_data and that this sweep does not contain.
  void submit(const Sweep& sweep);

  /// `reason`: one sentence.
  void set_sweep_state(const std::string& id, SweepState state, const std::string& reason);
  void set_priority(const std::string& id, int64_t priority);

  /// Changes a run's state. All state changes go through this function. A run that is queued again because its folder
  /// was deleted loses its result. std::logic_error if the move is not legal or
  /// the run is not in state `from`.
  void move(const std::string& id, RunState from, RunState to, FailureClass failure = FailureClass::kNone,
            const std::string& reason = "", std::optional<int64_t> step = std::nullopt);

  /// Changes the reason of a run's state alone.
  void set_reason(const std::string& id, const std::string& reason);

  /// Queues a run again, from any state that allows it, and resets its count of failures.
  void requeue(const std::string& id, const std::string& reason);

  /// Deletes a sweep, and runs that no other sweep has, with their attempts, metrics and results.
  void forget(const std::string& sweep, const std::vector<std::string>& runs);

  /// Adds a run as queued or waiting_data. For a known run, fills in values that were unknown, and replaces those that
  /// are not part of its id: local, data, device and threads.
  void put_run(const Run& run);
  /// Deletes the attempts and metrics of a run whose folder was deleted.
  void forget_attempts(const std::string& id);
  void put_attempt(const std::string& id, const AttemptRecord& attempt);  ///< replaces the attempt of that number
  void put_result(const std::string& id, const RecordedResult& result);   ///< replaces the one before

  void put_memory_peak(const std::string& resource_class, int64_t bytes);  ///< replaces the one before

  /// The number of bytes of metrics.jsonl that have been recorded.
  int64_t metrics_bytes(const std::string& id) const;

  /// Deletes the metrics at byte offsets >= `from_byte`, adds `lines`, and sets metrics_bytes() to `to_byte`. REQUIRES:
  /// `from_byte` is 0 or metrics_bytes().
  void put_metrics(const std::string& id, int64_t from_byte, const std::vector<MetricLine>& lines, int64_t to_byte);

  /// Runs `writes` in one transaction, which is durable when this returns. A nested call joins the outer transaction.
  /// MachineError if the disk is full or fails, UserError if it cannot be written for another reason, or is_gone();
  /// earlier transactions are unaffected.
  void in_transaction(const std::function<void()>& writes);
  /// Runs `writes` as a part of the transaction that is undone alone if it throws a UserError. REQUIRES: inside
  /// in_transaction().
  void in_savepoint(const std::function<void()>& writes);

  /// True if the database is no longer at its path: nobody will see what is recorded.
  bool is_gone() const;
  /// UserError, with the command that rebuilds it, if is_gone().
  void require_there() const;

 private:
  int64_t run_number(const std::string& id) const;
  void cancel_superseded(const Sweep& sweep);

  std::optional<LockFile> lock_;  // the writer's; released after the database is closed
  std::unique_ptr<SQLite::Database> database_;
  std::unique_ptr<Statements> statements_;  // of `database_`, destroyed before it
  Workspace workspace_;                     // found once: there may be 200,000 results to compare with its folders
};

/// What a database file is found to be when all of it is read.
struct Examined {
  std::vector<std::string> damage = {};          // by SQLite's integrity_check; the rest is unknown then
  std::vector<std::string> changed = {};         // tables whose rows are not those that were recorded
  std::set<std::string> with_result = {};        // ids of runs
  std::unique_ptr<const Store> store = nullptr;  // null if it is damaged or changed
};
/// UserError for a file that is not a database of tearless.
Examined examine_database(const std::filesystem::path& file);

/// Sweeps of the database `before` that `now` lacks, and runs of which it has another result or none. `before` may be
/// of an earlier format. UserError if one of them cannot be read.
std::vector<std::string> lost_between(const std::filesystem::path& before, const std::filesystem::path& now);

}  // namespace tearless::harness
