// The jobs of the sweeps that the scheduler works on: runs that wait or run, each for one sweep or several. Pure: knows
// neither store nor clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/schedule/job_queue.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct ActiveSweep {
  Sweep record;                                           // as in the store, without its runs
  std::string axes;                                       // what the parts of its runs' labels mean, label_axes()
  std::set<std::string> jobs;                             // waiting and running ones; none once it is cancelled
  std::map<std::string, std::set<std::string>> failures;  // failure_signature() → runs, since it was resumed
  std::string kind = {};                                  // Store::first_kind_in(), of one with same_device
  bool has_result = false;                                // one of its runs has left a result since it was submitted
  double updates_per_second = 0;                          // of the last attempt that ended; 0: none has
  struct Counted {
    int64_t total = 0, held = 0;
  };
  mutable std::optional<Counted> counted;  // of SweepCounts; unset: to be counted again

  bool is_active() const { return record.state == SweepState::kActive; }
  bool is_cancelled() const { return record.state == SweepState::kCancelled; }
  /// Why it is not active, one sentence.
  std::string why_paused() const { return is_cancelled() ? "it was cancelled" : record.reason; }
};

struct Job {
  Run run;  // as the sweep that named it first has it, but for what a later submission may change
  int64_t place = 0;
  std::vector<ActiveSweep*> sweeps = {};
  double not_before = 0;    // earliest time of its next attempt
  int quick_ends = 0;       // of attempts in a row, without progress
  int outside_ends = 0;     // kills and losses in a row, without progress
  std::string origin = {};  // the run from which it derives, while that has no result; "": it waits for none

  /// What it needs now: also what is known of the kind of device of its sweeps.
  Needs needs() const;
  /// Of its sweeps that are active, the one that goes first; null if none is.
  ActiveSweep* first_active() const;
};

class Jobs {
 public:
  /// `is_running`: whether an attempt of the run is alive. Such a job is not queued.
  explicit Jobs(std::function<bool(const std::string& id)> is_running) : is_running_(std::move(is_running)) {}

  std::map<std::string, ActiveSweep>& sweeps() { return sweeps_; }
  const std::map<std::string, ActiveSweep>& sweeps() const { return sweeps_; }
  /// Null if the run is no job.
  const Job* find(const std::string& id) const;
  Job* find(const std::string& id) { return const_cast<Job*>(std::as_const(*this).find(id)); }
  /// True if it waits and nothing but the launcher and its delay keep it from being started.
  bool is_queued(const std::string& id) const { return queue_.contains(id); }

  bool are_queued() const { return queue_.size() > 0; }
  std::map<Needs, int64_t> waiting() const { return queue_.waiting(); }
  /// As JobQueue::each().
  void each_queued(const std::function<void(const std::string& id)>& visit) const { queue_.each(visit); }

  /// Makes the run a job of the sweep.
  void attach(ActiveSweep& sweep, const RunRecord& record);
  /// Takes the job from the sweep. It is no job any more when no sweep is left.
  void detach(ActiveSweep& sweep, const std::string& id);
  /// The run has ended, or waits for a user or its data: it is no job any more.
  void drop(const std::string& id);

  /// The job waits for the result of the run `origin`; for none if that is "".
  void wait_for(const std::string& id, const std::string& origin);
  /// The jobs that wait for it.
  std::vector<std::string> waiting_for(const std::string& origin) const;

  /// Puts a job into its place in the queue, or takes it out while none of its sweeps is active or it waits for another
  /// run. Call when one of its sweeps, its needs, its delay or what it waits for have changed.
  void enqueue(const std::string& id);
  void enqueue_all(const ActiveSweep& sweep);

  /// As JobQueue::take().
  std::optional<std::string> take(double now, const JobQueue::RefusalOf& refusal_of) {
    return queue_.take(now, refusal_of);
  }

 private:
  std::function<bool(const std::string& id)> is_running_;
  std::map<std::string, ActiveSweep> sweeps_;        // by id
  std::unordered_map<std::string, Job> jobs_;        // by the run's id
  std::multimap<std::string, std::string> derived_;  // Job::origin → job
  JobQueue queue_;                                   // the jobs that may be started
};

}  // namespace tearless::harness
