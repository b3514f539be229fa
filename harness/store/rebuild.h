// Makes a lost or damaged database anew from the run and sweep folders.
#pragma once

#include <string>
#include <vector>

#include "harness/runs/workspace.h"

namespace tearless::harness {

struct RebuildReport {
  int64_t runs = 0, sweeps = 0;
  std::vector<std::string> passed_over;  // one sentence for each folder that could not be understood
};

/// Takes the writer's lock, fills a new database beside the old one, and puts it in its place; the old one is kept as
/// tearless.db.before-rebuild. UserError where another process writes.
RebuildReport rebuild(const Workspace& workspace);

}  // namespace tearless::harness
