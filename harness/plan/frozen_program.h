// The training program of a submission, kept so that a build meanwhile does not change what its runs are trained with.
#pragma once

#include <filesystem>

#include "harness/plan/program.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

/// Copies the program, with the files that its probe names, to the workspace's folder `programs/<hash of their bytes>`,
/// unless they are there, and returns the path of the copy, relative to the workspace: that may be moved. The path of
/// its home, if the probe names one, is written to PROGRAM.home beside the copy. A program whose probe names no files
/// may need what lies beside it: then this returns its own path, absolute. A damaged copy is replaced. UserError if a
/// file is missing. REQUIRES: lock_programs() is held.
std::filesystem::path freeze_program(const Workspace& workspace, const Program& program, const Probe& probe);

}  // namespace tearless::harness
