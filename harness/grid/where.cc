#include "harness/grid/where.h"

#include "harness/grid/grid.h"

namespace tearless::harness {

bool Where::has_point(const Grid& grid, const std::vector<uint32_t>& index) const {
  for (size_t axis = 0; !labels.empty() && axis < index.size(); ++axis) {
    if (!has(grid.axes[axis].name, grid.axes[axis].points[index[axis]].label)) return false;
  }
  return true;
}

}  // namespace tearless::harness
