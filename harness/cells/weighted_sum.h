// Cells that are made of other cells: means over rows, columns or the points of an axis, and differences.
#pragma once

#include <utility>
#include <vector>

#include "harness/cells/cell.h"

namespace tearless::harness {

/// Cell → weight.
using Terms = std::vector<std::pair<const Cell*, double>>;

/// The sum of numbers as people would write it: what is 0 but for rounding errors is 0.
class Total {
 public:
  void add(double value);
  double sum() const;

 private:
  double sum_ = 0, sizes_ = 0;
};

/// The sum of each seed that all of the cells have a value of; a cell may be there several times. A seed without a sum
/// has the gravest reason of its cells, or is missing where one of them still waits for it. Without runs if one of the
/// cells has none in the grid.
Cell weighted_sum(const Terms& terms);

}  // namespace tearless::harness
