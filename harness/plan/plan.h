// The plan of a grid: its runs, each checked by the training program. First step of the commands plan, run and table.
#pragma once

#include <string>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/plan/program.h"

namespace tearless::harness {

/// A combination of a grid or a run derived from its run, and what the training program says of it.
struct PlannedRun {
  Combination combination;
  CheckAnswer answer;           // with the run's coordinates and seed
  std::string derivation = {};  // that makes it of the combination's run; "": it is that run
};

/// A grid, and which of its runs are planned.
struct PlannedGrid {
  const Grid* grid;
  Only only = {};
};

/// Of each grid the runs that are not excluded and that `only` admits, in the grid's order, and then those that each
/// derivation makes of them. `program` is started once and checks all of them. `smoke`: the same runs cut down to a few
/// updates.
std::vector<std::vector<PlannedRun>> plan_grids(const std::vector<PlannedGrid>& grids, const Program& program,
                                                bool smoke = false);

/// The plan of one grid.
std::vector<PlannedRun> plan_runs(const Grid& grid, const Only& only, const Program& program, bool smoke = false);

/// The distinct errors of a plan, one sentence each, starting with the location of the offending setting. Empty if the
/// program accepts every run.
std::vector<std::string> errors_of(const Grid& grid, const std::vector<PlannedRun>& plan);

}  // namespace tearless::harness
