// Submissions of workers to sbatch, and how a lost answer of sbatch is found out.
//
//   1. A token is drawn and written to queue/jobs/<token>.json, durably: `asked`.
//   2. sbatch is called. The token is in the job's name.
//   3. Its id is written: `known`.
// Whoever is killed between 1 and 3, or waits for sbatch in vain, does not know whether the job exists. So while a
// token is `asked` nothing else is submitted, and the next lists of squeue are searched for the name. A job that is
// found is `known`; a name that two lists lack, 30 seconds apart, was never submitted, and its files are removed. A job
// that appears later all the same is one more worker: it may take runs, and harms nothing.
//
// queue/jobs/ also has the batch script, <token>.sh, and the workers' output, <token>-<task>.out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/slurm/commands.h"
#include "harness/slurm/executor.h"

namespace tearless::harness {

struct WorkerSubmission {
  enum class State { kAsked, kKnown, kOver };  // kOver: its jobs have ended, or left squeue's list
  std::string token;
  std::string executor;
  Allocation allocation;
  int64_t count = 0;  // workers
  State state = State::kAsked;
  std::string job = {};                     // the array's id; "" while it is asked
  std::string at = {};                      // when it was made, for people
  std::map<int64_t, int64_t> seconds = {};  // task → that its job has run, as far as was seen
  int64_t gpus = 0;                         // of each worker

  int64_t gpu_seconds() const;
};

/// 8 random hex digits.
std::string new_token();

/// Writes <token>.json into `folder`, durably. MachineError if the disk is full.
void write_submission(const std::filesystem::path& folder, const WorkerSubmission& submission);

/// Those of one executor. A file that is damaged is left out.
std::vector<WorkerSubmission> read_submissions(const std::filesystem::path& folder, const std::string& executor);

/// Removes what a submission has in `folder`, but for the record of one that used GPUs: what was used stays known.
void remove_submission(const std::filesystem::path& folder, const std::string& token);

/// Removes what is left of submissions that are over, but for those that came last, and scripts without a submission.
void clear_submissions(const std::filesystem::path& folder, size_t kept);

/// What came of a call of sbatch.
struct Outcome {
  enum class Kind {
    kSubmitted,
    kRefused,  // and nothing was submitted; the same call will be refused again
    kLimit,    // and nothing was submitted; fewer, or later, may pass
    kUnknown,  // it may have been submitted or not
  };
  Kind kind = Kind::kUnknown;
  std::string job = {};       // kSubmitted: its id
  std::string sentence = {};  // else: Slurm's, one phrase
};

/// True if slurmctld has not answered: what was asked may have been done.
bool is_silence(const Said& said);

/// Of `sbatch --parsable`.
Outcome outcome_of(const Said& said);

/// Of `sbatch --test-only`: kSubmitted if it would be. What it says else may hold now and not later ("nodes are busy"),
/// so known sentences alone refuse.
Outcome outcome_of_test(const Said& said);

}  // namespace tearless::harness
