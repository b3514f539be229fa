#include "harness/views/reading.h"

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/spelling.h"
#include "base/words.h"
#include "harness/grid/expand.h"
#include "harness/grid/labels.h"

namespace tearless::harness {

std::vector<size_t> axes_named(TableReader& reader, const std::string& key, const Grid& grid) {
  std::vector<size_t> axes;
  for (const std::string& name : reader.texts(key)) axes.push_back(grid.axis_index(name, reader.location(key)));
  return axes;
}

std::vector<uint32_t> points_named(const Axis& axis, const std::vector<std::string>& labels,
                                   const std::string& location) {
  constexpr size_t kMaxLabels = 12;  // in one sentence
  std::vector<uint32_t> points;
  std::vector<std::string> known;
  for (const AxisPoint& point : axis.points) known.push_back(point.label);
  for (const std::string& label : labels) {
    const auto found = find_spelled(known, label);
    if (found == known.end()) {
      fail("{}: the axis {} has no label \"{}\"{}; it has: {}", location, axis.name, label, did_you_mean(label, known),
           some_of(known, kMaxLabels));
    }
    points.push_back(static_cast<uint32_t>(found - known.begin()));
  }
  return points;
}

Where read_where(TableReader& reader, const Grid& grid) {
  Where where;
  const toml::table* table = reader.table("where");
  for (const auto& [name, node] : table ? *table : toml::table()) {
    const std::string location = reader.location("where"), axis_name(name.str());
    const Axis& axis = grid.axes[grid.axis_index(axis_name, location + ": where")];
    std::set<std::string>& labels = where.labels[axis.name];
    for (const uint32_t point : points_named(axis, labels_in(node, axis_name, reader.file()), location))
      labels.insert(axis.points[point].label);
  }
  return where;
}

std::optional<Name> name_at(TableReader& reader, const std::string& key) {
  const toml::node* node = reader.any(key);
  return node ? std::optional(read_name(*node, key, reader.location(key))) : std::nullopt;
}

std::optional<int64_t> whole_number(TableReader& reader, const std::string& key, int64_t least, int64_t most) {
  const std::optional<double> number = reader.number(key);
  if (!number) return std::nullopt;
  if (*number != std::floor(*number) || *number < static_cast<double>(least) || *number > static_cast<double>(most))
    fail("{}: {} must be a whole number from {} to {}", reader.location(key), key, least, most);
  return static_cast<int64_t>(*number);
}

bool leaves_one_point(const Grid& grid, const Where& where, size_t axis) {
  if (where.labels.empty()) return false;
  std::set<uint32_t> points;
  for_each_cell(grid, [&](const Combination& cell, const Exclusion*) {
    if (where.has_point(grid, cell.index)) points.insert(cell.index[axis]);
  });
  return points.size() == 1;
}

}  // namespace tearless::harness
