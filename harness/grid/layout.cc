#include "harness/grid/layout.h"

#include <set>

namespace tearless::harness {
Coordinates project(const Combination& combination, const std::vector<size_t>& axes) {
  Coordinates coordinates;
  for (const size_t axis : axes) coordinates.push_back(combination.index[axis]);
  return coordinates;
}

Layout layout_of(const Grid& grid, const TableSpec& table) {
  std::set<Coordinates> rows, columns;  // in the order of the axes' points
  for_each_cell(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (excluded || !table.admits(combination.index)) return;
    rows.insert(project(combination, table.rows));
    columns.insert(project(combination, table.columns));
  });
  return {.rows = {rows.begin(), rows.end()}, .columns = {columns.begin(), columns.end()}};
}

}  // namespace tearless::harness
