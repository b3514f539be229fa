// The rows and columns of one table of a grid.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// One row (or column): an index into the points of each row (or column) axis.
using Coordinates = std::vector<uint32_t>;

/// Sorted: in the order of the axes' points, the first axis outermost. Rows and columns without any combination that is
/// not excluded are left out.
struct Layout {
  std::vector<Coordinates> rows, columns;
};

Layout layout_of(const Grid& grid, const TableSpec& table);

/// The coordinates of a combination on the given axes (indices into Grid::axes).
Coordinates project(const Combination& combination, const std::vector<size_t>& axes);

}  // namespace tearless::harness
