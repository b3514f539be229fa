// Makes a lost or damaged database anew from the run and sweep folders.
#pragma once

#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct RebuildReport {
  int64_t runs = 0, sweeps = 0;
  std::string kept = {};                 // where the old database lies now; "" where there was none
  std::vector<std::string> passed_over;  // one sentence for each folder or record that could not be understood
};

/// Fills an empty store from the folders.
RebuildReport restore(Store& store, const Workspace& workspace);

/// Takes the writer's lock, fills a new database beside the old one, and puts it in its place; the old one is kept as
/// tearless.db.before-rebuild, or with a number behind that. UserError where another process writes.
RebuildReport rebuild(const Workspace& workspace);

}  // namespace tearless::harness
