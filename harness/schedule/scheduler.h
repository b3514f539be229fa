// Decides which run is tried next, how each attempt ended, and what follows from it (retry, fail, pause the sweep), for
// any number of sweeps. What may run at the same time, and where, the launcher decides (runs/launcher.h). It reads no
// clock but the one it is given, and waits for no attempt: its owner calls tick() regularly, and the launcher calls
// on_end.
//
// The life of a job, which is a run and the work to be done on it:
//   1. begin(): runs with a live attempt are adopted; the ends of attempts that nobody saw are recorded.
//   2. add(): a job of the sweep with a result in its folder is recorded; any other is queued, if Add allows that.
//   3. As soon as the launcher takes it: run.toml and local.toml are written, and the launcher starts an attempt.
//   4. tick(): new metrics are recorded; an attempt without sign of life is stopped.
//   5. The attempt ends: the verdict (runs/verdict.h) and the retry policy (policy.h) decide whether the run is done,
//      has failed, or is queued again; or it waits for its data (data_watch.h).
//
// A run that derives from another waits until that has a result. If its origin is set aside (it has failed, is held,
// was cancelled, waits for its data), so is the derived run; both return together.
//
// A run that several sweeps want is one job. It waits while any of these sweeps is active, in the best place that one
// of them gives it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/folders/program_copies.h"
#include "harness/runs/launcher.h"
#include "harness/runs/progress.h"
#include "harness/runs/verdict.h"
#include "harness/runs/workspace.h"
#include "harness/schedule/attempt_watch.h"
#include "harness/schedule/data_watch.h"
#include "harness/schedule/jobs.h"
#include "harness/store/paces.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// An event for the display and the sweeps' logs.
struct SchedulerEvent {
  std::string what;                 // "started", "adopted", "done", "failed", "queued again", "held", "paused" …
  std::string id;                   // of the run; "" for an event of a whole sweep
  std::string label;                // of the run
  std::string text;                 // details, may be ""
  std::vector<std::string> sweeps;  // that want the run; or the sweep that the event is about
};

/// "0c95df28  pre · seed 1  queued again: stalled", or "paused: interrupted" for an event of a whole sweep.
std::string sentence_of(const SchedulerEvent& event);

/// What the jobs of a sweep amount to.
struct SweepCounts {
  int64_t total = 0;    // runs, without those whose data are missing
  int64_t waiting = 0;  // queued, also while the sweep is paused
  int64_t running = 0;
  int64_t held = 0;
};

/// What happens to a sweep's running attempts when it is paused.
enum class OnPause { kContinue, kStop };

/// The reason of a run that a user holds.
inline constexpr const char* kHeldOnRequest = "held on request";

class Scheduler {
 public:
  /// Returns the time in seconds of a steady clock.
  using Now = std::function<double()>;
  using Listener = std::function<void(const SchedulerEvent&)>;

  /// Borrows `store` and `launcher`, which must outlive the scheduler. Sets `launcher.on_end`.
  Scheduler(Store& store, const Workspace& workspace, Launcher& launcher, Now now, Listener listener);

  /// Adopts live attempts, of any sweep, because they use the machine and no other process will record how they end;
  /// records the ends of the others that the store knows as running; cancels what is left of cancelled sweeps. Call
  /// once, before add().
  void begin();

  /// How add() treats jobs that ended, or that wait for a user.
  enum class Add {
    kRestart,  // leaves them alone: the sweep was added by an earlier process
    kSubmit,   // queues those again whose result is gone or outdated, or whose device is there now, and those that were
               // cancelled
    kRetry     // as kSubmit, and failed runs, whose earlier failures no longer count as tries
  };

  /// True if add() was called for the sweep.
  bool knows(const std::string& sweep) const { return jobs_.sweeps().contains(sweep); }

  /// Works on the sweep from now on, unless the store has it as paused. Again for a known sweep: reads it again.
  /// REQUIRES: the sweep is in the store.
  void add(const std::string& sweep, Add how);

  /// Adds all sweeps that are active in the store, as an earlier process left them.
  void add_active();

  /// Starts no more attempts of the sweep, and tells the store. Runs that another active sweep wants go on. Does
  /// nothing if it is paused. `why`: one sentence.
  void pause(const std::string& sweep, const std::string& why, OnPause running);
  /// Does nothing if it is not paused, or was cancelled.
  void resume(const std::string& sweep);

  /// Cancels the sweep's queued and running jobs that no other sweep wants. Its results stay.
  void cancel(const std::string& sweep);

  /// Keeps the values of secrets that a submission of the sweep had, in memory alone, in place of earlier ones.
  void keep_secrets(const std::string& sweep, const Variables& secrets);

  /// Works on the sweep no more, as if it had never been added. Running attempts continue.
  void drop(const std::string& sweep);

  /// Cancel, hold or release one run, whichever sweeps want it. False if its state does not allow that.
  bool cancel_run(const std::string& id);
  bool hold(const std::string& id);
  bool release(const std::string& id);
  /// Queues a failed or cancelled run again, unless all its sweeps are cancelled. Its earlier failures no longer count
  /// as tries.
  bool retry(const std::string& id);

  /// Takes away what a run has left: result, checkpoints, attempts. It is then cancelled, and is trained again when one
  /// of its sweeps is submitted. False for a run that is running or not known.
  bool discard(const std::string& id);

  /// Higher goes first. Running attempts are not touched.
  void set_priority(const std::string& sweep, int64_t priority);

  /// Polls the running attempts for metrics and signs of life, and starts queued runs. Call every second or two.
  void tick();

  /// Whether attempts may be started; at first they may.
  void let_start(bool allowed);
  /// Starts no more attempts, and asks all running ones to stop. The sweeps keep their states.
  void stop();

  /// Starts no more attempts, and kills those that run on this machine: the workspace is gone, or another service's.
  void abandon();

  /// True while a run is running, or queued so that it will be started without a request.
  bool is_busy() const { return !running_.empty() || jobs_.are_queued(); }
  /// True while an attempt that was asked to stop has not ended, and its grace time is not long over: a worker may be
  /// gone, which shows after ten minutes.
  bool is_stopping_any() const;
  /// True when no attempt of the sweep is running and none will be started without a request; and for a sweep that was
  /// not added.
  bool idle(const std::string& sweep) const;

  /// Why the sweep is paused, one sentence; "" if it is not.
  std::string paused(const std::string& sweep) const;

  /// The running attempts of a sweep, or all of them, sorted by label.
  std::vector<Progress> progress(const std::optional<std::string>& sweep = std::nullopt) const;

  SweepCounts counts(const std::string& sweep) const;
  int64_t priority(const std::string& sweep) const;

  struct TimeLeft {
    std::optional<double> seconds = {};  // unset: not known of any
    int64_t untimed = 0;                 // jobs that it does not count: nothing tells how long they take
  };
  /// Until all jobs of the sweep have ended, if as many are in work all the time as now. Each takes as long as ended
  /// runs of its resource class did, or as its calibration suggests; of a class without either, as long as the present
  /// speed of one in work makes it; else as the others do for each update and parameter.
  TimeLeft time_left(const std::string& sweep) const;

  /// Why queued runs are not running, and what goes before them, or where running ones run and why there, one phrase
  /// each; "" for any other run.
  std::map<std::string, std::string> why(const std::vector<std::string>& ids) const;
  /// Of each sweep with queued runs, why the next of them does not start, one phrase; "" if it may.
  std::map<std::string, std::string> why_idle() const;

 private:
  struct RequestedEnd {
    RunState state;  // held or cancelled
    std::string reason;
  };
  struct Running {
    AttemptWatch watch;
    std::optional<Stop> stop = {};               // set once it was asked to stop
    double asked_at = 0;                         // when that was
    std::optional<RequestedEnd> requested = {};  // what follows the stop, unless the attempt brings a result
    FileStamps data_before = {};                 // of its input files, at the start
    SweepPolicy policy = {.stall_seconds = 0};   // of the sweep that named it last
    std::optional<double> looked_at = {};        // time of the last look at its files
  };

  // What an earlier process left (scheduler.cc).
  void adopt_or_conclude(const std::string& id);
  bool adopt(const RunRecord& run, std::optional<RequestedEnd> requested);
  bool reconcile(const RunRecord& run, Add how);
  void record_done(const std::string& id, const Verdict& done);
  bool end_is_recorded(const std::string& id, int64_t attempt) const;

  // What users ask for (scheduler_requests.cc).
  void add_jobs(const std::string& sweep, Add how);
  void add_jobs_or_pause(const std::string& sweep, Add how);
  void attach_job(ActiveSweep& sweep, const RunRecord& record);
  void follow(Running& running, const ActiveSweep& sweep, const std::string& id) const;
  void detach_job(ActiveSweep& sweep, const std::string& id);
  void attach_again(const std::string& id);
  void requeue(const std::string& id, const std::string& reason);
  bool take_away_if_outdated(const RunRecord& derived);
  bool is_of_added_sweep(const std::string& id) const;
  void wait_for_origin(const RunRecord& record);
  void drop_job(const std::string& id);
  void follow_origin(const std::string& id);
  void start_if_wanted(const std::string& id);
  void enqueue_if_possible(const std::string& id);
  bool hold_if_impossible(const std::string& id);
  void cancel_unwanted(const std::string& sweep);
  void pause_sweeps_of(const Job& job, const std::string& why);
  void put_aside(const std::string& id, RunState state, const std::string& reason, RunState from = RunState::kQueued);
  bool put_aside_on_request(const std::string& id, RunState state, const std::string& reason);
  static std::optional<RequestedEnd> requested_end_of(const std::string& reason);
  void set_requested(const std::string& id, Running& running, std::optional<RequestedEnd> requested);

  // Attempts (scheduler_attempts.cc).
  Running* running(const std::string& id);
  Running& watch(const std::string& id, int64_t attempts_before, const ActiveSweep* sweep);
  void fill();
  void learn_kinds();
  std::optional<Launcher::Refusal> refusal_of(const Needs& needs) const;
  void launch(const std::string& id);
  bool write_settings(const std::string& id, const Job& job);
  void ask_to_stop(const std::string& id, Running& running, Stop why);
  void ended(const std::string& id, const Launcher::End& end);
  void not_started(const std::string& id, const Running& running, const Launcher::End& end);
  void conclude(const std::string& id, int64_t attempt, const Verdict& verdict, const Running& running);
  void queue_again(const std::string& id, const Verdict& verdict, const Running& running);
  void note_end_in_sweeps(const Job& job, const Verdict& verdict, bool again);
  void note_outside_end(const std::string& id, FailureClass failure, const Running& running);
  void wait_for_data(const std::string& id, const Running& running, const std::string& said);
  void look_for_data();
  void try_data_again(const std::string& id);

  const Paces& paces() const;
  void count_again();
  std::string why_waits(const Job& job, const std::map<std::string, int64_t>& before) const;
  std::string why_nobody_works_on(const std::string& id) const;
  std::string label_of(const std::string& id) const;
  void notify(std::string what, const std::string& id, std::string text) const;
  void notify_sweep(std::string what, const std::string& sweep, std::string text) const;

  Store& store_;
  Workspace workspace_;
  Launcher& launcher_;
  Now now_;
  Listener listener_;

  std::map<std::string, Running> running_;  // attempts, also of runs that are no jobs here
  Jobs jobs_;
  mutable std::optional<Paces> paces_;  // unset: to be read again
  DataWatch data_watch_;
  double looked_for_data_at_ = 0;
  ProgramCheck program_check_;
  std::map<std::string, Variables> secrets_;  // by sweep
  bool may_start_ = true;
  bool stopping_ = false;
};

}  // namespace tearless::harness
