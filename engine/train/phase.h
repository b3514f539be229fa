// The file attempts/<n>/phase: what an attempt is doing, in one word. People read it, and the harness does: an
// attempt that is silent for unusually long while it trains is stopped (docs/run_directory.md). No result depends on
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/run_directory.h"

namespace tearless::engine {

enum class Phase {
  kPreparing,   // reading the settings and the corpus, or restoring a checkpoint
  kTraining,    // making updates
  kEvaluating,  // dev scores, or the final ones
  kPublishing,  // writing a checkpoint, or the results
};

/// Writes the file. Errors are ignored.
void write_phase(const RunDirectory& run, int64_t attempt, Phase phase);
/// The phase that this process wrote last; none if it works on no run.
std::optional<Phase> phase_of_process();
/// The sentence for a process that ran out of memory: what to do depends on what it was doing.
std::string out_of_memory(std::optional<Phase> phase);

}  // namespace tearless::engine
