// Slurm's commands as child processes with a time limit. Nothing here waits for one, but say(): slurmctld may be slow
// for minutes, and the service has other things to do.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tearless::harness {

/// How a command ended.
struct Said {
  int code = -1;  // its exit code; 128 + signal where a signal ended it
  std::string output = {}, errors = {};
  bool timed_out = false;  // it was killed: what it was to do may have been done
  bool missing = false;    // there is no such program: nothing was done; `errors` is one sentence that says so
};

class SlurmCommands {
 public:
  virtual ~SlurmCommands() = default;
  using Then = std::function<void(const Said& said)>;

  /// Starts a command, words[0] of Slurm's programs. poll() calls `then` when it has ended, or is killed after
  /// `most_seconds`. Several may run at once.
  virtual void ask(std::vector<std::string> words, double most_seconds, Then then) = 0;
  /// Call it every second or two. Throws what a `then` throws; the others are called by the next poll().
  virtual void poll() = 0;
};

/// Those of this machine. Destroying it kills what runs; what that was to do may have been done.
class SlurmPrograms : public SlurmCommands {
 public:
  /// Looks for the programs in $PATH. `now`: seconds of a steady clock.
  explicit SlurmPrograms(std::function<double()> now);
  /// `path`: the folders to look in, as in $PATH.
  SlurmPrograms(std::string path, std::function<double()> now);
  ~SlurmPrograms() override;
  SlurmPrograms(const SlurmPrograms&) = delete;
  SlurmPrograms& operator=(const SlurmPrograms&) = delete;

  void ask(std::vector<std::string> words, double most_seconds, Then then) override;
  void poll() override;

 private:
  class Running;
  struct Ended {
    Said said;
    Then then;
  };

  std::string path_;
  std::function<double()> now_;
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<Ended> ended_;  // of which `then` has not been called
};

/// Runs a command to its end; for commands of `tearless` that a person waits for. REQUIRES: no other runs there.
Said say(SlurmCommands& commands, const std::vector<std::string>& words, double most_seconds);

/// What a failed command said, one phrase: without "sbatch: error:" and the like; at most a few hundred columns.
std::string complaint_of(const Said& said);

}  // namespace tearless::harness
