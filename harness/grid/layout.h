// The rows and columns of one table of a grid, and the mapping from points to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// One row (or column): an index into the points of each row (or column) axis.
using Coordinates = std::vector<uint32_t>;

struct Layout {
  /// In the order of the axes' points, the first axis outermost. Rows and columns without any point that is not
  /// excluded are left out.
  std::vector<Coordinates> rows;
  std::vector<Coordinates> columns;

  std::map<Coordinates, size_t> row_index;
  std::map<Coordinates, size_t> column_index;
};

Layout layout_of(const Grid& grid, const TableSpec& table);

/// The coordinates of a point on the given axes (indices into Grid::axes).
Coordinates project(const GridPoint& point, const std::vector<size_t>& axes);

}  // namespace tearless::harness
