// A grid's runs with what the training program says of each: where plan, run and table all begin.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/schedule/program.h"

namespace tearless::harness {

struct PlannedRun {
  GridPoint point;
  std::map<std::string, std::string> coordinates;  // axis name → label
  CheckAnswer answer;
};

/// The runs that are neither excluded nor outside `only`, in the grid's order, each checked by `program` (one process
/// for all).
std::vector<PlannedRun> plan_runs(const Grid& grid, const Only& only, const Program& program, bool smoke = false);

/// The distinct errors of a plan, one sentence each, led by the place in the grid that wrote the offending key; empty
/// where every run is accepted.
std::vector<std::string> errors_of(const Grid& grid, const std::vector<PlannedRun>& plan);

}  // namespace tearless::harness
