// Calibration (`tearless run GRID --calibrate`): one run of each resource class that has not been timed yet is trained
// for a few updates, in the workspace of --smoke. `tearless plan` then estimates how long the whole grid takes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// Of the runs in workspace.smoke() that are done. Empty, with a warning on stderr, if they cannot be read.
std::vector<Timing> calibrations_in(const Workspace& workspace);

/// The resource classes of which a run or a calibration is done.
std::set<std::string> timed_classes(const Workspace& workspace);

}  // namespace tearless::harness
