// Reads what a report says of a grid's runs and sweeps.
#pragma once

#include <string>
#include <vector>

#include "harness/report/report.h"
#include "harness/results/result_set.h"
#include "harness/runs/workspace.h"
#include "harness/views/views.h"

namespace tearless::harness {

/// What is printed of a grid.
struct PrintedGrid {
  const Grid& grid;
  const std::vector<View>& views;
  const ResultSet& results;
  std::vector<Table> tables;
  std::vector<Figure> figures;
  GridChecks checks;
};

/// The metrics that the views of a grid are made of, as names and patterns; those that readers look for come first.
std::vector<std::string> metrics_of(const Grid& grid, const std::vector<View>& views);

/// Adds the grid, its runs, with the curves of the metrics that its views use, train.loss and dev.*, and the sweeps
/// that have them. Of the environment it says the names of variables, of paths the last part, of machines the kind.
/// UserError for metrics that are not what was recorded.
void add_grid(PrintedGrid printed, const Workspace& workspace, bool all_curves, Report& report);

}  // namespace tearless::harness
