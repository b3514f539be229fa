#include "harness/grid/conditions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/grid/computed.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

bool changes(const AxisPoint& point, const std::string& key) {
  return point.set.contains(key) || std::ranges::find(point.unset, key) != point.unset.end();
}

/// The value of a setting at a point of the only axis that changes it; null if it is not set.
json value_at(const Grid& grid, const AxisPoint& point, const std::string& key) {
  if (const auto it = point.set.find(key); it != point.set.end()) return it->second.value;
  const auto it = grid.base.find(key);
  return it == grid.base.end() || changes(point, key) ? json() : it->second.value;
}

/// What a condition is about: the axis called `key`, or the axes that change the setting `key`.
struct Subject {
  std::vector<size_t> axes;
  bool is_name = false;  // of the only axis
};

Subject subject_of(const Grid& grid, const std::string& key, std::optional<size_t> earlier_axes,
                   const std::string& location) {
  std::set<std::string> names;
  std::optional<size_t> called;
  Subject subject;
  for (size_t i = 0; i < earlier_axes.value_or(grid.axes.size()); ++i) {
    const Axis& axis = grid.axes[i];
    if (axis.name == key) called = i;
    if (std::ranges::any_of(axis.points, [&](const AxisPoint& point) { return changes(point, key); }))
      subject.axes.push_back(i);
    names.insert(axis.name);
    for (const AxisPoint& point : axis.points) {
      for (const auto& [name, setting] : point.set) names.insert(name);
    }
  }
  for (const Computed& one : grid.computed) names.insert(one.key);
  if (is_computed(grid, key) || subject.axes.size() > 1) return subject;
  if (called) return {.axes = {*called}, .is_name = true};
  if (!subject.axes.empty()) return subject;
  if (grid.base.contains(key))
    fail("{}: {} is the same in every run; `when` can only name what an axis changes", location, key);
  const std::string neighbour = did_you_mean(key, std::vector<std::string>(names.begin(), names.end()));
  if (earlier_axes) {
    fail(
        "{}: no axis above this one is called {} or sets it{}; the axes of [axis] come first, in the order of the "
        "file, then those of the sub-grids",
        location, key, neighbour);
  }
  fail("{}: no axis is called {} or sets it{}", location, key, neighbour);
}

std::vector<json> alternatives(const json& wanted) {
  return wanted.is_array() ? wanted.get<std::vector<json>>() : std::vector<json>{wanted};
}

bool is_among(const json& value, const std::vector<json>& values) {
  return std::ranges::find(values, value) != values.end();
}

/// The labels of an axis, or the values that its points give a setting, for a message.
std::vector<std::string> values_there(const Grid& grid, const Axis& axis, bool is_name, const std::string& key) {
  std::set<std::string> seen;
  std::vector<std::string> there;
  for (const AxisPoint& point : axis.points) {
    const json value = value_at(grid, point, key);
    const std::string label = is_name ? point.label : value.is_null() ? "" : label_of(value);
    if (!label.empty() && seen.insert(label).second) there.push_back(label);
  }
  return there;
}

/// A word that is a label means that point, and otherwise the points that have it as the value of `key`.
PointCondition on_axis(const Grid& grid, size_t index, bool is_name, const std::string& key,
                       const std::vector<json>& wanted, const std::string& location) {
  const Axis& axis = grid.axes[index];
  // While axes are read, those before this one have not got their point "–" yet.
  const bool may_be_absent =
      !axis.absent && std::ranges::all_of(axis.points, [](const AxisPoint& point) { return !point.when.empty(); });
  const auto base = grid.base.find(key);
  PointCondition condition{.axis = index, .points = std::vector<bool>(axis.points.size()), .key = key, .values = {}};
  for (const json& one : wanted) {
    const std::string label = label_of(one);
    const bool is_label = is_name && (std::ranges::find(axis.points, label, &AxisPoint::label) != axis.points.end() ||
                                      (may_be_absent && label == kAbsentLabel));
    bool is_met = false;
    for (size_t i = 0; i < axis.points.size(); ++i) {
      const AxisPoint& point = axis.points[i];
      if (is_label ? point.label != label : value_at(grid, point, key) != one) continue;
      condition.points[i] = is_met = true;
    }
    if (may_be_absent && (is_label ? label == kAbsentLabel : base != grid.base.end() && base->second.value == one))
      condition.where_absent = is_met = true;
    if (is_met) continue;
    const std::vector<std::string> there = values_there(grid, axis, is_name, key);
    fail("{}: {} = {} is not a value of the axis {}{}; it has: {}", location, key, toml_value(one), axis.name,
         did_you_mean(label, there), fmt::join(there, ", "));
  }
  return condition;
}

/// Of a setting that several axes change, or that is computed.
PointCondition on_value(const Grid& grid, const std::vector<size_t>& axes, const std::string& key,
                        std::vector<json> wanted, const std::string& location) {
  std::vector<std::string> there;
  bool is_met = is_computed(grid, key);
  for (const size_t axis : axes) {
    for (const AxisPoint& point : grid.axes[axis].points) {
      const json value = value_at(grid, point, key);
      if (value.is_null()) continue;
      is_met |= is_among(value, wanted);
      there.push_back(label_of(value));
    }
  }
  if (!is_met) {
    fail("{}: {} = {} is not a value that any axis sets{}; there are: {}", location, key, toml_value(wanted.front()),
         did_you_mean(label_of(wanted.front()), there), fmt::join(there, ", "));
  }
  return {.axis = std::nullopt, .points = {}, .key = key, .values = std::move(wanted)};
}

PointCondition load_condition(const Grid& grid, const std::string& key, const json& wanted,
                              std::optional<size_t> earlier_axes, const std::string& location) {
  if (wanted.is_array() && wanted.empty()) fail("{}: {} = [] is true for no run", location, key);
  const Subject subject = subject_of(grid, key, earlier_axes, location);
  if (needs_seed(grid, key)) {
    fail("{}: {} is computed from the seed, and a condition is of a point with all its seeds", location, key);
  }
  if (subject.axes.size() != 1 || is_computed(grid, key))
    return on_value(grid, subject.axes, key, alternatives(wanted), location);
  const size_t axis = subject.axes.front();
  const bool is_list_value =
      wanted.is_array() && std::ranges::any_of(grid.axes[axis].points, [&](const AxisPoint& one) {
        return value_at(grid, one, key) == wanted;
      });
  return on_axis(grid, axis, subject.is_name, key, is_list_value ? std::vector<json>{wanted} : alternatives(wanted),
                 location);
}

}  // namespace

std::vector<PointCondition> read_conditions(TableReader& reader, const Grid& grid, std::optional<size_t> earlier_axes) {
  std::vector<PointCondition> conditions;
  if (const toml::table* when = reader.table("when")) {
    const WrittenSettings written = flatten_toml(*when, reader.file());
    for (const auto& [key, value] : written.values) {
      conditions.push_back(load_condition(grid, key, value, earlier_axes, written.location_of(key)));
    }
  }
  if (!reader.has("on_labels")) return conditions;
  const toml::table& table = *reader.table("on_labels");
  TableReader labels(table, "on_labels", reader.file());
  for (const auto& [name, node] : in_written_order(table)) {
    const std::vector<std::string> texts = labels.texts(name);
    const size_t axis = grid.axis_index(name, labels.location(name));
    conditions.push_back(
        on_axis(grid, axis, /*is_name=*/true, name, {texts.begin(), texts.end()}, labels.location(name)));
  }
  return conditions;
}

bool holds(const Grid& grid, PointIndex index, const PointCondition& condition) {
  if (condition.axis) return condition.has(index[*condition.axis]);
  return is_among(value_of(grid, index, condition.key), condition.values);
}

bool all_hold(const Grid& grid, PointIndex index, const std::vector<PointCondition>& conditions) {
  return std::ranges::all_of(conditions, [&](const PointCondition& one) { return holds(grid, index, one); });
}

json value_of(const Grid& grid, PointIndex index, const std::string& key) {
  if (is_computed(grid, key)) return computed_value(grid, index, key);
  for (size_t axis = index.size(); axis-- > 0;) {
    const AxisPoint& point = grid.axes[axis].points[index[axis]];
    if (const auto it = point.set.find(key); it != point.set.end()) return it->second.value;
    if (changes(point, key)) return {};
  }
  const auto it = grid.base.find(key);
  return it == grid.base.end() ? json() : it->second.value;
}

bool stands(const Grid& grid, PointIndex index, size_t axis, uint32_t point) {
  const std::vector<AxisPoint>& points = grid.axes[axis].points;
  const PointIndex earlier = index.first(axis);
  if (point != grid.axes[axis].absent) return all_hold(grid, earlier, points[point].when);
  return std::none_of(points.begin(), points.end() - 1,
                      [&](const AxisPoint& other) { return all_hold(grid, earlier, other.when); });
}

}  // namespace tearless::harness
