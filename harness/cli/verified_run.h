// A finished run, and what has to be trained to verify that it can be stopped and resumed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct VerifiedRun {
  std::string id;
  std::string label;  // label_of() the run
  Sweep sweep;        // the newest that has it; without its runs
  Run trained;        // the run, unless settings are changed
};

/// A run that has a result. `changes`: KEY=VALUE, settings that are changed; its training program then makes the
/// settings again, from the grid of the sweep. UserError if the result is damaged, the sweep's training program is
/// gone, or the program refuses the changes.
VerifiedRun verified_run(const Store& store, const Workspace& workspace, const std::string& id,
                         const std::vector<std::string>& changes);

}  // namespace tearless::harness
