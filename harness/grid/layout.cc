#include "harness/grid/layout.h"

#include <set>

namespace tearless::harness {
Coordinates project(const GridPoint& point, const std::vector<size_t>& axes) {
  Coordinates coordinates;
  for (const size_t axis : axes) coordinates.push_back(point.index[axis]);
  return coordinates;
}

Layout layout_of(const Grid& grid, const TableSpec& table) {
  std::set<Coordinates> rows, columns;  // in the order of the axes' points
  for_each_cell(grid, [&](const GridPoint& point, const Exclusion* excluded) {
    if (excluded) return;
    rows.insert(project(point, table.rows));
    columns.insert(project(point, table.columns));
  });
  return {.rows = {rows.begin(), rows.end()}, .columns = {columns.begin(), columns.end()}};
}

}  // namespace tearless::harness
