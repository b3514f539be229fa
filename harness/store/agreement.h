// A quick consistency check between the store and the run folders, made before any number is printed. It reads only
// DONE and scores.json; the full check, with checkpoints and metrics, is verify.h.
#pragma once

#include <optional>
#include <string>

#include "harness/runs/run_result.h"
#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// A run's result from the store, checked against its folder. If `numerics_now` (Probe::numerics) is given, results of
/// other numerics are marked stale. UserError, with the command to type, if
///   - the store's entry fails its checksum,
///   - DONE or scores.json in the run's folder disagree with the store, or
///   - the folder has attempts, the store does not know the run, and no `tearless run` is active.
RunResult checked_result(const Store& store, const Workspace& workspace, const std::string& id,
                         std::optional<int64_t> numerics_now = std::nullopt);

/// True if the run's folder holds a valid result that the store lacks, and no running process is going to record it.
bool is_unrecorded(const Workspace& workspace, const RunResult& result);

}  // namespace tearless::harness
