// attempts/<n>/phase: what an attempt is doing, in one word. For people and tests: nothing depends on it.
#pragma once

#include <cstdint>

#include "base/run_directory.h"

namespace tearless::engine {

enum class Phase {
  kPreparing,   // reading the settings and the corpus, or going back to a checkpoint
  kTraining,    // updates
  kEvaluating,  // dev scores, or the final ones
  kPublishing,  // writing a checkpoint, or the results
};

/// Replaces the file. That it cannot be written is no reason to stop, and is not told.
void tell_phase(const RunDirectory& run, int64_t attempt, Phase phase);

}  // namespace tearless::engine
