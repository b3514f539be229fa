// Decides which run is tried next and where, how each attempt ended, and what follows from it (retry, fail, pause
// the sweep). It starts no process itself (launcher.h), reads no clock but the one it is given, and never blocks: its
// owner (foreground.h) calls begin() once and tick() regularly, and the launcher calls on_end.
//
// The life of a job:
//   1. begin(): a job with a result in its folder is recorded, one with a live attempt is adopted, others are queued.
//   2. As soon as a slot is free: run.toml and local.toml are written, and the launcher starts an attempt.
//   3. tick(): new metrics are recorded; an attempt without sign of life is stopped.
//   4. The attempt ends: the verdict (runs/verdict.h) and the retry policy (policy.h) decide whether the run is done,
//      has failed, or is queued again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/runs/verdict.h"
#include "harness/runs/workspace.h"
#include "harness/schedule/launcher.h"
#include "harness/schedule/progress.h"
#include "harness/schedule/slots.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// A run that the sweep requests.
struct Job {
  std::string id;
  std::string canonical;       // text of run.toml
  std::string local;           // text of local.toml
  std::string label;           // coordinates and seed, run_label()
  int64_t updates = 0;         // the most updates that it can make
  std::string device = "cpu";  // or "cuda"
  int threads = 1;             // CPU threads
};

/// An event for the display and the sweep's log.
struct SchedulerEvent {
  std::string what;   // "started", "adopted", "done", "diverged", "failed", "queued again", "held", "paused", "warning"
  std::string id;     // of the run; "" for an event of the whole sweep
  std::string label;  // of the run
  std::string text;   // details, may be ""
};

struct SchedulerOptions {
  double stall_seconds = 1800;  // an attempt without sign of life for that long is stopped; 0: never
  double give_up_seconds = 45;  // from a request to stop to killing the supervisor; longer than its grace time
  bool retry_failed = false;    // failed runs are queued again, and their earlier failures no longer count as tries
};

class Scheduler {
 public:
  /// Returns the time in seconds of a steady clock.
  using Now = std::function<double()>;
  using Listener = std::function<void(const SchedulerEvent&)>;

  /// Borrows `store` and `launcher`, which must outlive the scheduler. Sets `launcher.on_end`.
  Scheduler(Store& store, const Workspace& workspace, Launcher& launcher, Slots slots, SchedulerOptions options,
            Now now, Listener listener);

  /// Updates the store from the run folders, adopts live attempts (those of other sweeps too), queues the other jobs
  /// and starts as many as there are free slots. Call once. REQUIRES: each job's run is in the store.
  void begin(std::vector<Job> jobs);

  /// Polls the running attempts for metrics and signs of life, and starts queued runs. Call every second or two.
  void tick();

  /// Asks all running attempts of this sweep to stop, and starts no more.
  void stop();

  /// True when no attempt of this sweep is running and none will be started.
  bool finished() const;

  /// Why the sweep ended early, one sentence; "" if it did not. A paused sweep starts no more attempts, but those that
  /// are running continue.
  const std::string& paused() const { return paused_; }

  /// The running attempts of this sweep, sorted by label.
  std::vector<Progress> progress() const;

  int64_t finished_jobs() const;                                           ///< jobs neither queued nor running
  int64_t waiting() const { return static_cast<int64_t>(queue_.size()); }  ///< queued jobs

  /// Seconds until all jobs have made all their updates at the present speed; unset while a speed is unknown.
  std::optional<double> seconds_left() const;

 private:
  struct Running {
    Slot slot;
    bool alone = false;              // no other run may start meanwhile
    bool ours = true;                // a job of this sweep
    std::optional<StopReason> stop;  // set once it was asked to stop
    double stop_asked_at = 0;        // time of the last request
    bool start_recorded = false;     // its start is in the store
    int64_t attempts_before = 0;     // the launched attempt has a higher number than this
    double since = 0;                // time of the launch
    double last_sign = 0;            // time of the last sign of life
    int64_t size_seen = -1;          // bytes of metrics.jsonl and log.txt together, at the last poll
    int64_t log_seen = 0;            // bytes of log.txt at the last poll
    bool log_is_full = false;        // output is no longer a sign of life
    int64_t checkpoint_before = 0;   // newest checkpoint at the launch
    Progress progress;
  };
  struct Queued {
    std::string id;
    bool alone = false;     // start it only when nothing else runs
    double not_before = 0;  // earliest time of its start
  };

  // Start of the sweep.
  void reconcile(const Job& job);
  void adopt_or_conclude(const std::string& id);
  void take_up(const std::string& id);
  bool record_done(const std::string& id);
  bool end_is_recorded(const std::string& id, int64_t attempt) const;  // the newest attempt's end is in the store

  // Start of attempts.
  void fill();
  bool launch(const Queued& queued, const Slot& slot);

  // End of attempts.
  void ended(const std::string& id, LaunchEnd end);
  void not_started(const std::string& id, const Running& running, LaunchEnd end);
  void conclude(const std::string& id, int64_t attempt, Verdict verdict, const Running* running);
  void queue_again(const std::string& id, const Verdict& verdict, bool alone, const Running* running);
  void note_crash(const std::string& id, const std::string& reason);
  bool has_made_progress(const std::string& id, const Running& running) const;
  void note_outside_end(const std::string& id, const Verdict& verdict, const Running* running);

  // Running attempts.
  void ask_to_stop(const std::string& id, Running& running, StopReason why);
  bool gives_sign_of_life(const RunDirectory& run, int64_t attempt, Running& running);
  void poll(const std::string& id, Running& running);
  void pause(std::string why);
  void notify(std::string what, const std::string& id, std::string text) const;
  std::string label_of(const std::string& id) const;

  Store& store_;
  Workspace workspace_;
  Launcher& launcher_;
  Slots slots_;
  SchedulerOptions options_;
  Now now_;
  Listener listener_;

  std::map<std::string, Job> jobs_;
  std::deque<Queued> queue_;
  std::map<std::string, Running> running_;
  std::map<std::string, std::set<std::string>> crashes_;  // crash signature → runs
  std::map<std::string, int> quick_ends_;                 // run → quick ends in a row without progress (kQuickEnd)
  std::map<std::string, int> outside_ends_;               // run → kills and losses in a row without progress
  std::string paused_;
  bool stopping_ = false;
};

}  // namespace tearless::harness
