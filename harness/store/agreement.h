// Whether the store and the run folders tell the same story, as far as a few small files show it: what is asked before
// any number is printed. All of it, with the large files: verify.h.
#pragma once

#include <optional>
#include <string>

#include "harness/runs/run_result.h"
#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// A run's result for people. UserError, naming the run and what to type, where the store's entry was changed, where
/// the run's folder says something else of its end, and where the store has never heard of a run that its folder shows
/// at work or ended. With `numerics_now` (Probe::numerics) older results are stale.
RunResult checked_result(const Store& store, const Workspace& workspace, const std::string& id,
                         std::optional<int64_t> numerics_now = std::nullopt);

/// True where a run has a result in its folder that the store does not have yet, and nobody is at work who would write
/// it down.
bool is_unrecorded(const Workspace& workspace, const RunResult& result);

}  // namespace tearless::harness
