// Checkpoints that nothing needs any more: those of runs that have ended with a result. Such a run is not resumed, and
// its scores, metrics and outputs are files of their own. Only `tearless-engine decode` still reads a checkpoint, the
// selected one: the trained model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/run_directory.h"

namespace tearless::harness {

struct KeptCheckpoints {
  int64_t newest = 0;    // this many of the newest
  bool selected = true;  // that of the score selected_step, of a run that is done
};

struct OldCheckpoints {
  std::vector<std::filesystem::path> folders;  // also those that an interrupted removal left
  int64_t bytes = 0;
  int64_t selected_bytes = 0;  // of the selected checkpoint, if it is kept
};

/// REQUIRES: the run has a DONE that is intact.
OldCheckpoints old_checkpoints(const RunDirectory& run, const KeptCheckpoints& keep);

/// Deletes them. A kill in between leaves no half checkpoint. REQUIRES: the caller holds the run's lock.
void remove_checkpoints(const OldCheckpoints& old);

}  // namespace tearless::harness
