// Removes a sweep, and the runs that no other sweep has, from the database and the disk. The workspace is consistent
// after a kill between any two steps, and a repetition finishes what was begun:
//
//   1. The sweep is cancelled.
//   2. Each run's folder is renamed to forgotten/<sweep>/<run>, then the sweep's to forgotten/<sweep>/sweep.
//   3. One transaction deletes the sweep and its runs from the database. Before it, forgotten/ explains to verify
//      why folders are missing; after it nothing refers to them.
//   4. remove_forgotten() deletes forgotten/<sweep>. This takes long for large checkpoints, so the process that asked
//      for it does it, not the service.
//
// If the sweep is submitted again in between, it gets a new folder, and its runs are trained again.
#pragma once

#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

enum class Results { kDelete, kKeep };

/// The runs of these sweeps that no other sweep has.
std::vector<std::string> runs_of_no_other(const Store& store, const std::vector<std::string>& sweeps);

/// UserError if one of runs_of_no_other() is running, or if an earlier tearless or a person is training it by hand.
void require_nothing_running(const Store& store, const Workspace& workspace, const std::vector<std::string>& sweeps);

/// Steps 1 to 3; nothing for a sweep that is not in the store. kKeep: only those runs go that have no folder, that is,
/// that never began; the others are not queued any more. REQUIRES: `store` is open for writing, no scheduler knows the
/// sweep, require_nothing_running().
void forget_sweep(Store& store, const Workspace& workspace, const std::string& sweep, Results results);

/// Step 4, for each sweep in forgotten/ that is not in the store: also what a killed process left there.
void remove_forgotten(const Store& store, const Workspace& workspace);

}  // namespace tearless::harness
