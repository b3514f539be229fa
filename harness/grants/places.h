// Where grants, claims and workers have their files in a workspace.
#pragma once

#include <filesystem>

#include "harness/runs/workspace.h"

namespace tearless::harness {

inline std::filesystem::path queue_of(const Workspace& workspace) { return workspace.root() / "queue"; }
inline std::filesystem::path board_of(const Workspace& workspace) { return queue_of(workspace) / "board"; }
/// Which machines runs blame, for a later service.
inline std::filesystem::path blame_file_of(const Workspace& workspace) { return queue_of(workspace) / "blame.json"; }
inline std::filesystem::path workers_of(const Workspace& workspace) { return queue_of(workspace) / "workers"; }

}  // namespace tearless::harness
