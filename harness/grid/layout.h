// Where each point of a grid lies in its table: the rows and columns there are, in order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// One row (or column): a point on each of the row (or column) axes.
using Coordinates = std::vector<uint32_t>;

struct Layout {
  /// In the order of the axes' points, the first axis outermost. What an exclusion empties wholly is not among them.
  std::vector<Coordinates> rows;
  std::vector<Coordinates> columns;

  std::map<Coordinates, size_t> row_index;
  std::map<Coordinates, size_t> column_index;
};

Layout layout_of(const Grid& grid);

/// The part of a point that lies on some axes.
Coordinates project(const GridPoint& point, const std::vector<size_t>& axes);

}  // namespace tearless::harness
