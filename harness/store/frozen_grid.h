// The grid of a sweep as it was submitted: sweeps/<id>/merged.toml. Tables of the sweep are printed from it, without
// the grid file, its base files and the training program.
#pragma once

#include <string>

#include "harness/grid/grid.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

/// Writes the file; replaces that of an earlier submission of the same sweep.
void freeze_grid(const Workspace& workspace, const std::string& sweep, const Grid& grid);

/// UserError if the file is missing or damaged, was changed, or is another sweep's.
Grid frozen_grid(const Workspace& workspace, const std::string& sweep);

}  // namespace tearless::harness
