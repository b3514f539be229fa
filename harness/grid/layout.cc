#include "harness/grid/layout.h"

namespace tearless::harness {
namespace {

/// Returns the keys of `index` and assigns each its position. The map's order is the order of the axes' points.
std::vector<Coordinates> number(std::map<Coordinates, size_t>& index) {
  std::vector<Coordinates> ordered;
  for (auto& [coordinates, position] : index) {
    position = ordered.size();
    ordered.push_back(coordinates);
  }
  return ordered;
}

}  // namespace

Coordinates project(const GridPoint& point, const std::vector<size_t>& axes) {
  Coordinates coordinates;
  for (const size_t axis : axes) coordinates.push_back(point.index[axis]);
  return coordinates;
}

Layout layout_of(const Grid& grid, const TableSpec& table) {
  Layout layout;
  for_each_cell(grid, [&](const GridPoint& point, const Exclusion* excluded) {
    if (excluded) return;
    layout.row_index.emplace(project(point, table.rows), 0);
    layout.column_index.emplace(project(point, table.columns), 0);
  });
  layout.rows = number(layout.row_index);
  layout.columns = number(layout.column_index);
  return layout;
}

}  // namespace tearless::harness
