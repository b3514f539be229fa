#include "harness/results/lay_over.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/grid/expand.h"

namespace tearless::harness {
namespace {

std::vector<std::string> names_of_axes(const Grid& grid) {
  std::vector<std::string> names;
  for (const Axis& axis : grid.axes) names.push_back(axis.name);
  return names;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

void require_same_axes(const Grid& layout, const Grid& frozen, const std::string& id) {
  const std::vector<std::string> ours = names_of_axes(layout), theirs = names_of_axes(frozen);
  for (const Axis& axis : layout.axes) {
    if (has(theirs, axis.name)) continue;
    fail("{}: sweep {} has no axis {}{}; a layout has the axes of the sweep: {}", axis.location, id, axis.name,
         did_you_mean(axis.name, theirs), fmt::join(theirs, ", "));
  }
  for (const Axis& axis : frozen.axes) {
    if (has(ours, axis.name)) continue;
    fail("{}: there is no axis {}{}, which sweep {} has; a layout has the axes of the sweep: {}", layout.file.string(),
         axis.name, did_you_mean(axis.name, ours), id, fmt::join(theirs, ", "));
  }
}

uint32_t point_of(const Axis& axis, const std::string& label, const std::string& id) {
  const auto point = std::ranges::find(axis.points, label, &AxisPoint::label);
  if (point != axis.points.end()) return static_cast<uint32_t>(point - axis.points.begin());
  std::vector<std::string> labels;
  for (const AxisPoint& known : axis.points) labels.push_back(known.label);
  fail("{}: the axis {} has no \"{}\"{}, which sweep {} has", axis.location, axis.name, label,
       did_you_mean(label, labels), id);
}

std::vector<uint32_t> points_of(const Grid& layout, const Row& row, const std::string& id) {
  std::vector<uint32_t> points;
  for (const Axis& axis : layout.axes) points.push_back(point_of(axis, label_on(row.run.coordinates, axis.name), id));
  return points;
}

std::set<std::vector<uint32_t>> points_of(const Grid& layout) {
  std::set<std::vector<uint32_t>> points;
  for_each_cell(layout, [&](const Combination& combination, const Exclusion* excluded) {
    if (!excluded) points.insert(combination.index);
  });
  return points;
}

}  // namespace

Grid lay_over(Grid layout, const Grid& frozen, const std::string& id, std::vector<Row>& rows) {
  require_same_axes(layout, frozen, id);
  const std::set<std::vector<uint32_t>> points = points_of(layout);
  const int64_t all = std::ranges::count_if(rows, &Row::is_trained);
  std::erase_if(rows, [&](const Row& row) {
    return !points.contains(points_of(layout, row, id)) ||
           std::ranges::find(layout.seeds, row.run.seed) == layout.seeds.end();
  });
  const int64_t left_out = all - std::ranges::count_if(rows, &Row::is_trained);
  if (left_out > 0) {
    notice(
        fmt::format("{} of the {} of sweep {} left out: {} excludes or does not draw their points, or has other seeds",
                    left_out, counted(all, "run"), id, layout.file.string()));
  }
  layout.file = frozen.file;  // what commands to type next are about, and whose --set the runs have
  layout.set_options = frozen.set_options;
  return layout;
}

}  // namespace tearless::harness
