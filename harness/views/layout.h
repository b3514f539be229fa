// The rows and columns of an arrangement of a grid's runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/views/arrangement.h"

namespace tearless::harness {

/// One row (or column): an index into the points of each row (or column) axis.
using Coordinates = std::vector<uint32_t>;

/// Sorted: in the order of the axes' points, the first axis outermost. Rows and columns without any combination that is
/// not excluded are left out.
struct Layout {
  std::vector<Coordinates> rows, columns;
};

Layout layout_of(const Grid& grid, const Arrangement& arrangement);

/// The coordinates of a combination on the given axes (indices into Grid::axes).
Coordinates project(const Combination& combination, const std::vector<size_t>& axes);

/// The labels of these points, one for each of the axes.
std::vector<std::string> labels_at(const Grid& grid, const std::vector<size_t>& axes, const Coordinates& coordinates);

std::vector<std::string> names_of_axes(const Grid& grid, const std::vector<size_t>& axes);

}  // namespace tearless::harness
