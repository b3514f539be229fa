// Another grid's views of the frozen runs of a sweep: its tables are filled with the rows of the sweep, by their
// labels. Neither the settings nor the ids of the two need agree, so it is done without data and without the training
// program.
#pragma once

#include <string>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/results/row.h"

namespace tearless::harness {

/// The layout for the rows of the sweep `id`, of which `frozen` is the grid: with the views, seeds and exclusions of
/// `layout`, and the grid file and --set of the sweep. Leaves out the rows at points that the layout does not have, or
/// with a seed that it lacks, and prints a line on standard error that says how many. Points of the layout that the
/// sweep has no runs of stay empty. UserError for the first axis that only one of the two has, and for the first label
/// of a row that the layout lacks.
Grid lay_over(Grid layout, const Grid& frozen, const std::string& id, std::vector<Row>& rows);

}  // namespace tearless::harness
