// The format of a workspace: of its database and of the folders of its sweeps. Run folders are the contract with
// training programs and have none (docs/run_directory.md). There are no migrations: a workspace of another format is
// refused and left as it is.
#pragma once

#include "harness/runs/workspace.h"

namespace tearless::harness {

/// The database's user_version, and "format" in each sweep.json. Increase it with every change that an earlier build
/// does not read, or that makes what an earlier build wrote unreadable.
inline constexpr int kWorkspaceFormat = 8;

/// UserError if the workspace is of another format: by its sweeps, which have a checksum, or if it has none, by its
/// database. Writes nothing, unlike SQLite, which may change a file when it opens it. Damaged files are left to those
/// who read them.
void require_this_format(const Workspace& workspace);

}  // namespace tearless::harness
