// Recreates a lost or damaged database from the run and sweep folders. The folders hold every result; the database is
// derived from them.
#pragma once

#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct RebuildReport {
  int64_t runs = 0, sweeps = 0;          // restored
  std::string kept = {};                 // the new path of the old database; "" if there was none
  std::vector<std::string> passed_over;  // one sentence for each folder or file that could not be read
};

/// Fills an empty store from the folders, in one transaction.
RebuildReport restore(Store& store, const Workspace& workspace);

/// Recreates the workspace's database:
///   1. takes the writer lock (UserError if another process holds it);
///   2. fills a new database beside the old one;
///   3. renames the old one to tearless.db.before-rebuild (-2, -3 … if that name is taken);
///   4. moves the new one into its place.
RebuildReport rebuild(const Workspace& workspace);
/// If it is gone, though there are runs, and says so.
void rebuild_if_lost(const Workspace& workspace);
/// If has_earlier_database(), and says so. Waits for another process that does. UserError while a service of that build
/// works here, and if the new one would lack a sweep or a result of the old one. Does nothing for an index of another
/// machine.
void rebuild_if_earlier(const Workspace& workspace);

}  // namespace tearless::harness
