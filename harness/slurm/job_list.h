// The newest list of jobs, shared by the executors of a workspace: one squeue in 30 seconds at most, however many
// workers there are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/slurm/commands.h"
#include "harness/slurm/squeue.h"

namespace tearless::harness {

class JobList {
 public:
  static constexpr double kBetween = 30;  // seconds

  /// `now`: seconds of a steady clock.
  JobList(std::unique_ptr<SlurmCommands> commands, std::function<double()> now);

  /// Has a later poll() ask, when its time has come. To be called as long as somebody needs the list.
  void want() { wanted_ = true; }
  void poll();

  /// How many lists squeue has given; with the first there are jobs.
  int64_t answers() const { return answers_; }
  /// When the squeue of the newest list was started.
  double asked_at() const { return asked_at_; }
  const std::vector<SlurmJob>& jobs() const { return jobs_; }

  /// Why squeue's last call gave no list, one phrase; "" if it did.
  const std::string& fault() const { return fault_; }

 private:
  void note(const Said& said, double started_at);

  std::unique_ptr<SlurmCommands> commands_;
  std::function<double()> now_;
  bool wanted_ = false, asking_ = false;
  double next_at_ = 0;
  int64_t answers_ = 0;
  double asked_at_ = 0;
  std::vector<SlurmJob> jobs_;
  std::string fault_;
};

}  // namespace tearless::harness
