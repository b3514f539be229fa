// The formats of a workspace: of its database, and of the folders of its sweeps. Run folders are the contract with
// training programs and have none (docs/run_directory.md). There are no migrations: the database is made from the
// folders, and one of an earlier format is made again (rebuild.h); a workspace whose sweeps are of another format is
// refused and left as it is.
#pragma once

#include "harness/runs/workspace.h"

namespace tearless::harness {

/// "format" in each sweep.json. Increase it with every change that an earlier build does not read, or that makes what
/// an earlier build wrote unreadable.
inline constexpr int kWorkspaceFormat = 9;
/// The database's user_version. Increase it with every change of its tables. The first one of kWorkspaceFormat was 9.
inline constexpr int kDatabaseFormat = 10;

/// Whether the database is of an earlier build that wrote sweeps of this format.
bool has_earlier_database(const Workspace& workspace);

/// UserError if the workspace is of another format: by its sweeps, which have a checksum, or if it has none, by its
/// database; has_earlier_database() is usable. And if another machine has its index, or the index is another
/// workspace's. Writes nothing, unlike SQLite, which may change a file when it opens it. Damaged files are left to
/// those who read them.
void require_usable(const Workspace& workspace);

// An index apart from its folders and the folders name each other: ROOT/index.json has the machine and an id, and
// INDEX/workspace.json the same id. Who opens one of them looks at both.

/// Writes both, if the index is apart and they are not there. REQUIRES: the writer's lock is held, require_usable().
void claim_index(const Workspace& workspace);
/// Both are there and name each other.
bool is_own_index(const Workspace& workspace);
/// The machine that index.json names; "" if the file is damaged or not there.
std::string machine_of_index(const Workspace& workspace);
/// Removes index.json, and what this machine has of an index, which the next writer rebuilds.
void give_up_index(const Workspace& workspace);
/// The root of the workspace whose index is in this folder.
std::filesystem::path root_of_index(const std::filesystem::path& index);

}  // namespace tearless::harness
