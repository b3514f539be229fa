// What `tearless delete` deletes, single runs or sweeps with the runs that no other sweep has, and `tearless clean`,
// what nothing needs. All of it is first renamed into WORKSPACE/deleted/, by the service; then the process that asked
// removes that folder, which takes long for large checkpoints. The workspace is consistent after a kill between any two
// steps, and a repetition finishes what was begun. For a sweep:
//
//   1. It is cancelled.
//   2. Each run's folder is renamed to deleted/<sweep>/<run>, then the sweep's to deleted/<sweep>/sweep.
//   3. One transaction deletes the sweep and its runs from the database. Before it, deleted/ explains to verify why
//      folders are missing; after it nothing refers to them.
//   4. remove_deleted() removes deleted/<sweep>.
//
// If the sweep is submitted again in between, it gets a new folder, and its runs are trained again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// The runs of these sweeps that no other sweep has.
std::vector<std::string> runs_of_no_other(const Store& store, const std::vector<std::string>& sweeps);

/// UserError if one of the runs is running, or if an earlier tearless or a person is training it by hand; and if a
/// folder of the workspace is a link out of it.
void require_deletable(const Store& store, const Workspace& workspace, const std::vector<std::string>& runs);

/// Steps 1 to 3; nothing for a sweep that is not in the store. `keep_results`: only those runs go that never began; the
/// others are not queued any more. REQUIRES: `store` is open for writing, no scheduler knows the sweep,
/// require_deletable() for runs_of_no_other().
void delete_sweep(Store& store, const Workspace& workspace, const std::string& sweep, bool keep_results);

/// Takes away what a run has left, so that it can be trained again: renames its folder to deleted/again/<run>, durably.
/// The database is the caller's: a run with a result and no folder is queued again when its grid is submitted.
/// REQUIRES: no attempt of the run is alive.
void take_folder_away(const Workspace& workspace, const std::string& run);

struct Freed {
  int64_t runs = 0, checkpoints = 0;  // checkpoints: with FreeOptions::all models too
  int64_t programs = 0;               // copies that no sweep needs, unfinished ones too
  int64_t bytes = 0;                  // of these, and of what was renamed before and is not removed yet
  std::vector<std::string> skipped;   // one sentence for each thing that could not be looked at
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Freed, runs, checkpoints, programs, bytes, skipped)

struct FreeOptions {
  bool all = false;      // the models, too
  bool dry_run = false;  // nothing is renamed
};

/// Renames what nothing needs any more to deleted/unneeded/:
///   - the checkpoints of runs that have a result. Such a run is not resumed, and its scores, metrics and outputs are
///     files of their own. `tearless-engine decode` reads model.safetensors, or of a run without this file the
///     checkpoint of the score selected_step, which then stays;
///   - copies of programs that no sweep names (program_copies.h).
/// UserError if deleted/ is a link out of the workspace; what else is elsewhere is skipped.
Freed free_unneeded(const Store& store, const Workspace& workspace, FreeOptions options);

/// Removes what was renamed to deleted/, also what a killed process left there. What belongs to a sweep that is still
/// in the store stays: step 3 is missing. UserError if deleted/ is a link out of the workspace.
void remove_deleted(const Store& store, const Workspace& workspace);

}  // namespace tearless::harness
