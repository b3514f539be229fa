// From a run directory into the store: what the files say, the database says too.
#pragma once

#include <string>

#include "harness/runs/verdict.h"
#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// Adds what metrics.jsonl has gained (or, where it was cut, forgets what it lost), and returns it.
std::vector<MetricLine> record_new_metrics(Store& store, const Workspace& workspace, const std::string& id);

/// Notes that an attempt has begun.
void record_start(Store& store, const Workspace& workspace, const std::string& id, int64_t attempt);

/// Notes how an attempt ended, reads its metrics to the end, and the scores of a verdict that has any. In one step.
/// A run that was cut back and went on may have written other lines over old positions: all its metrics are read anew.
void record_end(Store& store, const Workspace& workspace, const std::string& id, int64_t attempt,
                const Verdict& verdict);

}  // namespace tearless::harness
