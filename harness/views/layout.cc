#include "harness/views/layout.h"

#include <set>

namespace tearless::harness {
Coordinates project(const Combination& combination, const std::vector<size_t>& axes) {
  Coordinates coordinates;
  for (const size_t axis : axes) coordinates.push_back(combination.index[axis]);
  return coordinates;
}

Layout layout_of(const Grid& grid, const Arrangement& arrangement) {
  std::set<Coordinates> rows, columns;  // in the order of the axes' points
  for_each_cell(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (excluded || !arrangement.where.has_point(grid, combination.index)) return;
    rows.insert(project(combination, arrangement.rows));
    columns.insert(project(combination, arrangement.columns));
  });
  return {.rows = {rows.begin(), rows.end()}, .columns = {columns.begin(), columns.end()}};
}

std::vector<std::string> labels_at(const Grid& grid, const std::vector<size_t>& axes, const Coordinates& coordinates) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < axes.size(); ++i) labels.push_back(grid.axes[axes[i]].points[coordinates[i]].label);
  return labels;
}

std::vector<std::string> names_of_axes(const Grid& grid, const std::vector<size_t>& axes) {
  std::vector<std::string> names;
  for (const size_t axis : axes) names.push_back(grid.axes[axis].name);
  return names;
}

}  // namespace tearless::harness
