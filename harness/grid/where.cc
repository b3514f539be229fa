#include "harness/grid/where.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/spelling.h"
#include "base/words.h"
#include "harness/grid/expand.h"
#include "harness/grid/sections.h"

namespace tearless::harness {

std::vector<size_t> axes_named(TableReader& reader, const std::string& key, const Grid& grid) {
  std::vector<size_t> axes;
  for (const std::string& name : reader.texts(key)) axes.push_back(grid.axis_index(name, reader.location(key)));
  return axes;
}

std::vector<bool> points_named(const Axis& axis, const std::vector<std::string>& labels, const std::string& location) {
  constexpr size_t kMaxLabels = 12;  // in one sentence
  std::vector<bool> points(axis.points.size());
  std::vector<std::string> known;
  for (const AxisPoint& point : axis.points) known.push_back(point.label);
  for (const std::string& label : labels) {
    const auto found = find_spelled(known, label);
    if (found == known.end()) {
      fail("{}: the axis {} has no label \"{}\"{}; it has: {}", location, axis.name, label, did_you_mean(label, known),
           some_of(known, kMaxLabels));
    }
    points[static_cast<size_t>(found - known.begin())] = true;
  }
  return points;
}

std::map<size_t, std::vector<bool>> read_where(TableReader& reader, const Grid& grid) {
  std::map<size_t, std::vector<bool>> where;
  const toml::table* table = reader.table("where");
  for (const auto& [name, node] : table ? *table : toml::table()) {
    const std::string location = reader.location("where"), axis_name(name.str());
    const size_t axis = grid.axis_index(axis_name, location + ": where");
    where[axis] = points_named(grid.axes[axis], labels_in(node, axis_name, reader.file()), location);
  }
  return where;
}

bool leaves_one_point(const Grid& grid, const std::map<size_t, std::vector<bool>>& where, size_t axis) {
  if (where.empty()) return false;
  std::set<uint32_t> points;
  for_each_cell(grid, [&](const Combination& cell, const Exclusion*) {
    const bool is_admitted =
        std::ranges::all_of(where, [&](const auto& entry) { return entry.second[cell.index[entry.first]]; });
    if (is_admitted) points.insert(cell.index[axis]);
  });
  return points.size() == 1;
}

}  // namespace tearless::harness
