// What a cluster does to jobs that are preempted, as `scontrol show config` and `scontrol show partition` say. Reading
// is pure. For `tearless plan`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/slurm/commands.h"

namespace tearless::harness {

struct ClusterFacts {
  std::string partition;                            // its name; "" if it is not known
  std::string preempt_type;                         // "preempt/none"; "" if it is not known
  std::string preempt_mode;                         // of the partition: "REQUEUE", "CANCEL", "SUSPEND", "OFF", …
  bool warns = false;                               // a preempted job gets the signal of --signal
  std::optional<int64_t> grace_seconds = {};        // GraceTime of the partition: between warning and end
  std::optional<int64_t> kill_wait_seconds = {};    // between SIGTERM and SIGKILL
  std::optional<int64_t> min_job_age_seconds = {};  // after which squeue forgets a job that has ended
  std::optional<int64_t> max_array_size = {};       // MaxArraySize: the largest index of an array, plus one
};

/// Of the two answers, as far as they are understood. `partition`: its name, "": the default partition.
ClusterFacts facts_of(const Said& config, const Said& partitions, const std::string& partition);

/// Asks scontrol twice, for half a minute at most.
ClusterFacts ask_for_facts(SlurmCommands& commands, const std::string& partition);

/// What a preemption costs there, one sentence. `program_seconds`: what a run's program may take to write a checkpoint
/// ([policy] grace).
std::string cost_of_preemption(const ClusterFacts& facts, int program_seconds);

}  // namespace tearless::harness
