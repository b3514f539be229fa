// The copy of `tearless` that jobs become: a file must not change under workers that run it, and jobs may wait for
// days.
#pragma once

#include <filesystem>

#include "harness/runs/workspace.h"

namespace tearless::harness {

/// Copies the running program to queue/bin/<hash>/ of the workspace, unless it is there, and removes copies of earlier
/// builds that no job can become any more. Returns its absolute path. REQUIRES: no other process of this workspace
/// calls it: the service alone does.
std::filesystem::path worker_program(const Workspace& workspace);

}  // namespace tearless::harness
