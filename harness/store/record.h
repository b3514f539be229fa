// Copies what a run directory holds (attempts, metrics, its result) into the store.
#pragma once

#include <string>

#include "harness/runs/verdict.h"
#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// Records the lines that metrics.jsonl in `folder` (folder_of() its attempt) has gained since the last call, and
/// returns them. If the file was truncated, it is read from the beginning again.
std::vector<MetricLine> record_new_metrics(Store& store, const std::string& id, const RunDirectory& folder);

/// Records that an attempt has begun.
void record_start(Store& store, const Workspace& workspace, const std::string& id, int64_t attempt);

/// Records the end of an attempt in one transaction: its verdict, its metrics to the end and, unless it failed, its
/// result. `attempt` may be 0 for a run with a DONE but no attempt. From the second attempt on, metrics.jsonl is read
/// from the beginning: a resumed run truncates it and may write other lines at the same byte offsets.
void record_end(Store& store, const Workspace& workspace, const std::string& id, int64_t attempt,
                const Verdict& verdict);

}  // namespace tearless::harness
