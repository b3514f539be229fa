// Keeps workers submitted to Slurm while runs wait, and says how a worker's job ended. It knows runs by what they need
// alone, and workers by the jobs that they name; what a worker does, and whether it is alive, others know.
//
// How many: for each allocation, as many workers as the waiting runs fill, less those that are on their way; never
// more than `workers` of the section at the same time. Where nothing waits for a minute, pending jobs are cancelled;
// running ones end by themselves. Workers are submitted as arrays, and found again by the names of these
// (submission.h).
//
// What Slurm says is a hint. A job that is not in its list may run: only for counting does it end, after two such
// lists, and while its worker is alive it counts in any case. A state that is not known here is waited out.
//
// A run that ran out of memory waits to be alone (runs/policy.h). Then half as much memory again is asked for, for
// it and for all runs of its resource class. If sbatch refuses that, they are tried in the usual allocation.
//
// With --max-gpu-hours nothing is submitted once the jobs of all submissions have run so long, times their GPUs; what
// runs then, continues. Each submission's record says how long its jobs have run, as squeue has said.
//
// Where a job ended and its worker was never seen, its node may lack the folder, and would take each further job: the
// node is left out for an hour. Where no node is known, and after each refusal, the next submission is in five minutes.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/grants/machines.h"
#include "harness/grants/places.h"
#include "harness/runs/workspace.h"
#include "harness/slurm/commands.h"
#include "harness/slurm/executor.h"
#include "harness/slurm/job_list.h"
#include "harness/slurm/script.h"
#include "harness/slurm/submission.h"

namespace tearless::harness {

/// Where submissions are kept.
inline std::filesystem::path jobs_folder(const Workspace& workspace) { return queue_of(workspace) / "jobs"; }

/// Why sbatch would refuse workers of an executor, one phrase; "" if it would not, or does not say. Asks
/// `sbatch --test-only` for each gres of the section; for commands that a person waits for. UserError for a path
/// that Slurm does not take.
std::string refusal_by_test(SlurmCommands& commands, const Workspace& workspace, const Executor& executor);

class Slurm : public Machines {
 public:
  /// Makes queue/jobs/ in the workspace, and takes over what an earlier service has submitted. `tearless`: the program,
  /// absolute, which must stay as it is. `list`: shared by the executors of a workspace. `now`: seconds of a steady
  /// clock. UserError if the workspace's path is one that Slurm does not take.
  Slurm(const Workspace& workspace, Executor executor, std::filesystem::path tearless, std::shared_ptr<JobList> list,
        std::unique_ptr<SlurmCommands> commands, std::function<double()> now);

  void expect(const std::map<Needs, int64_t>& waiting, const std::vector<ClusterWorker>& alive,
              const std::set<std::string>& not_on) override;
  std::optional<Fate> fate_of(const ClusterWorker& worker) override;
  std::string never_fits(const Needs& needs) const override { return harness::never_fits(executor_, needs); }
  int64_t memory_above(const Needs& needs) const override;
  std::vector<std::string> notes() const override;
  std::string why_none() const override;

 private:
  // A worker that was asked for.
  struct Element {
    std::optional<SlurmJob> job = {};  // as the newest list has it
    int misses = 0;                    // lists without it, one after another
    double running_since = 0;          // when it was first seen to run; 0: it was not
    bool has_worker = false;           // one that is alive
    bool had_worker = false;
    bool is_cancelled = false;
    bool is_noted = false;  // that it ended without a worker

    bool is_over() const;
  };
  struct Tracked {
    WorkerSubmission record;
    std::vector<Element> elements;
    double answered_at = 0;  // when sbatch ended; lists of before do not count
    int misses = 0;          // lists without any of its jobs, while it is asked
    bool is_own = false;     // submitted by this service
    int64_t gpu_seconds_written = 0;
    double cancelled_at = 0;  // when its pending jobs were cancelled last; 0: never
  };
  using Demand = std::map<Allocation, int64_t>;  // → workers

  void note_workers(const std::vector<ClusterWorker>& alive);
  void read_list();
  void find_jobs(Tracked& tracked, const std::vector<const SlurmJob*>& jobs);
  void note_lost(Tracked& tracked);
  void note_use(Tracked& tracked);
  int64_t gpu_seconds() const;
  bool is_used_up() const;
  bool is_over(const Tracked& tracked) const;
  Demand demand_of(const std::map<Needs, int64_t>& waiting) const;
  Allocation allocation_of(const Needs& needs) const;
  int64_t occupied(const Allocation* allocation) const;
  void submit_if_needed(const Demand& demand);
  void begin(const Allocation& allocation, int64_t count);
  void call_sbatch();
  void on_test(const Said& said);
  void on_submitted(const Said& said);
  void take_back(const Outcome& outcome);
  void cancel_if_idle(const Demand& demand);
  void cancel(Tracked& tracked, std::vector<std::string> jobs);
  void rest(double seconds, std::string why);
  std::vector<std::string> nodes_left_out();
  std::filesystem::path script_of(const std::string& token) const { return folder_ / (token + ".sh"); }

  Executor executor_;
  std::filesystem::path root_, folder_, tearless_;
  std::shared_ptr<JobList> list_;
  std::unique_ptr<SlurmCommands> commands_;
  std::function<double()> now_;

  std::vector<Tracked> tracked_;          // that are not over
  std::deque<std::string> over_;          // tokens of those that are over and kept, oldest first
  int64_t gpu_seconds_of_over_ = 0;       // of all that are over
  std::map<std::string, SlurmJob> jobs_;  // of workers, by "17_3@1a2b3c4d": what the newest list says, or said of ends
  std::map<std::string, std::set<std::string>> alive_;  // names of the workers that are alive, by the same
  int64_t read_answers_ = 0;                            // of the list
  bool needs_list_ = false;  // before anything is submitted: what earlier services left is not known

  std::optional<Batch> batch_ = {};             // that sbatch is asked for now; its record is the last of tracked_
  std::set<Allocation> tested_;                 // for which sbatch has passed a test
  std::set<std::string> larger_ = {};           // resource classes of runs that ran out of memory
  bool has_larger_ = true;                      // sbatch has not refused them a larger allocation
  int64_t most_at_once_;                        // workers in one submission
  double rests_until_ = 0;                      // no submission before
  std::string problem_;                         // why, one phrase; "" if there is none
  std::map<Allocation, double> last_wanted_;    // → when runs waited for it last
  std::map<std::string, double> left_out_;      // node → until when
  bool excludes_ = true;                        // hosts of not_on_: sbatch has refused no such node
  std::map<std::string, std::string> node_of_;  // a worker's name for its host → Slurm's
  std::set<std::string> not_on_ = {};           // hosts on which workers are of no use
};

}  // namespace tearless::harness
