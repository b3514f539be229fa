// Reads the list of jobs that squeue prints. Pure. The list is a hint: states may be old or go backwards, and a job
// that is not in it may run all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/runs/states.h"
#include "harness/slurm/commands.h"

namespace tearless::harness {

enum class JobState {
  kPending,
  kRunning,  // it has nodes: it starts, runs, is suspended or is being ended
  kEnded,
  kUnknown  // a word that is not known here: wait
};

/// What a word of Slurm for a job's state means.
struct StateWord {
  JobState state = JobState::kUnknown;
  FailureClass failure = FailureClass::kNone;  // kEnded: of an attempt that its worker had
  std::string_view phrase = {};                // kEnded: "was preempted"
};
StateWord meaning_of(std::string_view word);

struct SlurmJob {
  std::string array;            // the id of the array; of a job of its own, its id
  std::optional<int64_t> task;  // in the array
  std::string word;             // Slurm's for its state: "PENDING"
  std::string node;             // one or several; "" if it has none
  std::string name;
  std::string reason;   // why it waits or failed: "Priority"; "None" if there is none
  int64_t seconds = 0;  // that it has run, since it was queued again last

  JobState state() const { return meaning_of(word).state; }
  std::string id() const;  ///< as people write it: "17_3"
};

/// The words of the squeue whose answer jobs_in() reads: all jobs of this user, those that have just ended too.
std::vector<std::string> squeue_words();

/// The jobs of a list. A line that is not one of the list is left out. Nullopt if the answer is no list: squeue failed,
/// its answer is cut, or none of its lines is understood. An empty answer is a list.
std::optional<std::vector<SlurmJob>> jobs_in(const Said& said);

}  // namespace tearless::harness
