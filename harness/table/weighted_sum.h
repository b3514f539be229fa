// Cells that are made of other cells: means over rows, columns or the points of an axis, and differences. Internal to
// harness/table.
#pragma once

#include <utility>
#include <vector>

#include "harness/table/table.h"

namespace tearless::harness {

/// Cell → weight.
using Terms = std::vector<std::pair<const Cell*, double>>;

/// The sum of each seed that all of the cells have a value of; a cell may be there several times. A seed without a sum
/// has the gravest reason of its cells, or is missing where one of them still waits for it. The published number is the
/// same sum, if all of them have one. Without runs if one of the cells has none in the grid.
Cell weighted_sum(const Terms& terms);

}  // namespace tearless::harness
