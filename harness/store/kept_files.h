// What a workspace keeps for its sweeps: copies of training programs, programs/<hash>/, and of input files,
// data/<hash>/. A program is needed as long as the folder of a sweep names it, so that an old run can be repeated; data
// are needed until the sweep that names them has ended. `tearless gc` deletes the others.
//
// A submission first makes its copies, then writes the sweep's folder, and then the database learns that the sweep has
// not ended. Until then nothing shows that the copies are needed. So a submission holds a shared lock on the folder
// sweeps/ from before it looks for copies until the database knows the sweep, and gc holds the exclusive lock while it
// looks for what is not needed and deletes it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// The lock of a submission. Waits while gc deletes.
LockFile lock_for_submission(const Workspace& workspace);

/// The lock of gc. Nullopt while a grid is being submitted.
std::optional<LockFile> lock_out_submissions(const Workspace& workspace);

/// True until the sweep has ended: until none of its runs is queued, running, held or waiting for data. True for a
/// sweep that is not in the store.
bool may_train(const Store& store, const std::string& sweep);

struct UnneededFiles {
  std::vector<std::filesystem::path> programs, data;  // folders
  std::vector<std::filesystem::path> partial;         // what submissions that were killed had begun to copy
};

/// UserError if it cannot be read from the folder of a sweep what that needs. REQUIRES: lock_out_submissions() is held.
UnneededFiles unneeded_files(const Store& store, const Workspace& workspace);

}  // namespace tearless::harness
