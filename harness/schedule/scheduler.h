// Decides: which run is tried next and where, what became of each attempt, and what follows from it. It starts nothing
// itself (launcher.h), knows no clock but the one it is given, and waits for nothing: its owner calls it when something
// happened.
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

/// A run that the sweep wants done.
struct Job {
  std::string id;
  std::string canonical;  // text of run.toml
  std::string local;      // text of local.toml
  std::string label;      // for people
  int64_t updates = 0;
  std::string device = "cpu";
  int threads = 1;
};

/// Something that a person or a log should hear of.
struct SchedulerEvent {
  std::string what;  // "started", "adopted", "done", "diverged", "failed", "queued again", "held", "paused", "warning"
  std::string id;    // "" for the whole sweep
  std::string label;
  std::string text;
};

struct SchedulerOptions {
  double stall_seconds = 1800;  // 0: never
  // After a request to stop; longer than the supervisor's grace time. Then the supervisor itself is killed.
  double give_up_seconds = 45;
  bool retry_failed = false;  // failed runs are tried again, their failures forgiven
};

class Scheduler {
 public:
  /// Seconds of a steady clock.
  using Now = std::function<double()>;
  using Listener = std::function<void(const SchedulerEvent&)>;

  /// All are borrowed. Sets `launcher.on_end`.
  Scheduler(Store& store, const Workspace& workspace, Launcher& launcher, Slots slots, SchedulerOptions options,
            Now now, Listener listener);

  /// Brings the store up to what the run folders say, adopts what is alive, and starts what there is room for. Each
  /// job's run is in the store. Call once.
  void begin(std::vector<Job> jobs);

  /// Looks at the running attempts: metrics, signs of life. Every second or two.
  void tick();

  /// Asks all attempts of this sweep to stop; starts no more.
  void stop();

  /// Nothing of this sweep runs, and nothing more is going to.
  bool finished() const;

  /// Not empty once something ended the sweep early: one sentence.
  const std::string& paused() const { return paused_; }

  std::vector<Progress> progress() const;
  int64_t settled() const;  ///< jobs that are done, diverged or failed
  int64_t waiting() const { return static_cast<int64_t>(queue_.size()); }
  /// Seconds to the end of the sweep at the present speed, where that can be told.
  std::optional<double> seconds_left() const;

 private:
  struct Running {
    Slot slot;
    bool alone = false;
    bool ours = true;                // a job of this sweep
    std::optional<StopReason> stop;  // asked for
    double stop_asked_at = 0;
    bool start_recorded = false;
    int64_t attempts_before = 0;  // an attempt of a higher number is the one that was launched
    double since = 0;
    double last_sign = 0;    // of life
    int64_t size_seen = -1;  // of metrics and log, together
    int64_t log_seen = 0;
    bool log_is_full = false;
    int64_t checkpoint_before = 0;
    Progress progress;
  };
  struct Queued {
    std::string id;
    bool alone = false;
    double not_before = 0;
  };

  void reconcile(const Job& job);
  void adopt_or_judge(const std::string& id);
  void take_up(const std::string& id);
  bool record_done(const std::string& id);
  /// The store knows how this attempt, the newest, ended.
  bool is_judged(const std::string& id, int64_t attempt) const;
  void fill();
  bool launch(const Queued& queued, const Slot& slot);
  void ended(const std::string& id, LaunchEnd end);
  void not_started(const std::string& id, const Running& running, LaunchEnd end);
  void conclude(const std::string& id, int64_t attempt, Verdict verdict, const Running* running);
  void queue_again(const std::string& id, const Verdict& verdict, bool alone, const Running* running);
  void note_crash(const std::string& id, const std::string& reason);
  bool has_made_progress(const std::string& id, const Running& running) const;
  void note_outside_end(const std::string& id, const Verdict& verdict, const Running* running);
  void ask_to_stop(const std::string& id, Running& running, StopReason why);
  bool gives_sign_of_life(const RunDirectory& run, int64_t attempt, Running& running);
  void look_at(const std::string& id, Running& running);
  void pause(std::string why);
  void tell(std::string what, const std::string& id, std::string text) const;
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
  std::map<std::string, std::set<std::string>> crashes_;  // signature → runs
  std::map<std::string, int> quick_ends_;                 // run → free failures in a row that came at once
  std::map<std::string, int> outside_ends_;               // run → kills and losses in a row without progress
  std::string paused_;
  bool stopping_ = false;
};

}  // namespace tearless::harness
