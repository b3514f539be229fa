// Where a service puts its socket: $XDG_RUNTIME_DIR, else /tmp/tearless-<uid>, under a hash of the workspace's path,
// because the path of a socket may have 107 bytes at most. Clients find it by the writer's file (store/writer.h).
#pragma once

#include <filesystem>

#include "harness/runs/workspace.h"

namespace tearless::harness {

/// Makes the folder if it is missing. UserError if the folder belongs to another user or lets others in.
std::filesystem::path socket_path(const Workspace& workspace);

}  // namespace tearless::harness
