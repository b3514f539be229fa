#include "harness/grid/conditions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/spelling.h"
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
      names.insert(point.unset.begin(), point.unset.end());
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

/// A number may be written as a text, in another spelling.
bool is_meant(const json& value, const json& wanted) {
  return value == wanted ||
         (value.is_number() && wanted.is_string() && is_same_value(label_of(value), wanted.get<std::string>()));
}

bool is_among(const json& value, const std::vector<json>& values) {
  return std::ranges::any_of(values, [&](const json& one) { return is_meant(value, one); });
}

using ValueOf = std::function<json(const std::string&)>;

/// False where one of its settings is no number.
bool is_true(const Expression& comparison, const ValueOf& value_of) {
  const auto is_number = [&](const std::string& name) { return value_of(name).is_number(); };
  return std::ranges::all_of(comparison.names(), is_number) && comparison.value(value_of) == true;
}
bool is_one_true(const std::vector<Expression>& comparisons, const ValueOf& value_of) {
  return std::ranges::any_of(comparisons, [&](const Expression& one) { return is_true(one, value_of); });
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

/// A word that is a label means that point, and otherwise the points that have it as the value of `key`. `comparisons`
/// are with constants.
PointCondition on_axis(const Grid& grid, size_t index, bool is_name, const std::string& key,
                       const std::vector<json>& wanted, const std::string& location,
                       const std::vector<Expression>& comparisons = {}) {
  const Axis& axis = grid.axes[index];
  // While axes are read, those before this one have not got their point "–" yet.
  const bool may_be_absent =
      !axis.absent && std::ranges::all_of(axis.points, [](const AxisPoint& point) { return !point.when.empty(); });
  const auto base = grid.base.find(key);
  PointCondition condition{.axis = index, .points = std::vector<bool>(axis.points.size()), .key = key, .values = {}};
  for (const json& one : wanted) {
    std::string label = label_of(one);
    const auto called = find_spelled(axis.points, label, &AxisPoint::label);
    if (is_name && called != axis.points.end()) label = called->label;
    const bool is_label = is_name && (called != axis.points.end() || (may_be_absent && label == kAbsentLabel));
    bool is_met = false;
    for (size_t i = 0; i < axis.points.size(); ++i) {
      const AxisPoint& point = axis.points[i];
      if (is_label ? point.label != label : !is_meant(value_at(grid, point, key), one)) continue;
      condition.points[i] = is_met = true;
    }
    if (may_be_absent && (is_label ? label == kAbsentLabel : base != grid.base.end() && base->second.value == one))
      condition.where_absent = is_met = true;
    if (is_met) continue;
    const std::vector<std::string> there = values_there(grid, axis, is_name, key);
    fail("{}: {} = {} is not a value of the axis {}{}; it has: {}", location, key, toml_value(one), axis.name,
         did_you_mean(label, there), fmt::join(there, ", "));
  }
  const auto compare = [&](const json& value) {
    return is_one_true(comparisons, [&](const std::string&) { return value; });
  };
  for (size_t i = 0; i < axis.points.size(); ++i) {
    if (compare(value_at(grid, axis.points[i], key))) condition.points[i] = true;
  }
  if (may_be_absent && base != grid.base.end() && compare(base->second.value)) condition.where_absent = true;
  return condition;
}

/// Of a setting that several axes change, or that is computed.
PointCondition on_value(const Grid& grid, const std::vector<size_t>& axes, const std::string& key,
                        std::vector<json> wanted, std::vector<Expression> comparisons, const std::string& location) {
  std::vector<std::string> there;
  bool is_met = is_computed(grid, key) || !comparisons.empty();
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
  return {.axis = std::nullopt,
          .points = {},
          .key = key,
          .values = std::move(wanted),
          .comparisons = std::move(comparisons)};
}

/// Whether a word of a condition is a value or a label, and so no comparison.
bool is_value(const Grid& grid, const Subject& subject, const std::string& key, const json& word) {
  return std::ranges::any_of(subject.axes, [&](size_t axis) {
    return std::ranges::any_of(grid.axes[axis].points, [&](const AxisPoint& point) {
      return value_at(grid, point, key) == word || (subject.is_name && word == point.label);
    });
  });
}

/// Those of the alternatives that compare the setting: "> 8", "<= 2 * model.depth".
std::vector<Expression> comparisons_in(const Grid& grid, const Subject& subject, const std::string& key,
                                       const std::vector<json>& wanted, const std::string& location) {
  std::vector<Expression> comparisons;
  for (const json& one : wanted) {
    const std::string text = one.is_string() ? one.get<std::string>() : "";
    if (text.empty() || is_value(grid, subject, key, one)) continue;
    if (std::string_view("=!~").find(text.front()) != std::string_view::npos) {
      fail(
          "{}: {} = \"{}\" is no condition: write a value, a list of values, or as in \"> 8\" <, ≤, > or ≥ and what "
          "the setting is compared with",
          location, key, text);
    }
    if (comparison_at(text).empty()) continue;
    const std::set<std::string> keys = keys_of(grid);
    if (!keys.contains(key)) fail("{}: {} has no numbers to compare; name a setting that has", location, key);
    comparisons.push_back(read_expression(fmt::format("'{}' {}", key, text), key, text, location, keys));
    for (const std::string& name : comparisons.back().names()) {
      if (name != grid.seed_key && !needs_seed(grid, name)) continue;
      fail("{}: {} = \"{}\" needs the seed, and a condition is of a point with all its seeds", location, key, text);
    }
  }
  return comparisons;
}

PointCondition load_condition(const Grid& grid, const std::string& key, const json& wanted,
                              std::optional<size_t> earlier_axes, const std::string& location) {
  if (wanted.is_array() && wanted.empty()) fail("{}: {} = [] is true for no run", location, key);
  const Subject subject = subject_of(grid, key, earlier_axes, location);
  if (needs_seed(grid, key)) {
    fail("{}: {} is computed from the seed, and a condition is of a point with all its seeds", location, key);
  }
  const std::vector<Expression> comparisons = comparisons_in(grid, subject, key, alternatives(wanted), location);
  const bool is_constant = std::ranges::all_of(comparisons, [](const auto& one) { return one.names().size() == 1; });
  if (subject.axes.size() != 1 || is_computed(grid, key) || !is_constant) {
    if (earlier_axes && !comparisons.empty())
      fail("{}: in the `when` of an axis a setting of one other axis is compared with a number, as in {} = \"> 8\"",
           location, key);
    return on_value(grid, subject.axes, key, alternatives(wanted), comparisons, location);
  }
  const size_t axis = subject.axes.front();
  const bool is_list_value =
      wanted.is_array() && std::ranges::any_of(grid.axes[axis].points, [&](const AxisPoint& one) {
        return value_at(grid, one, key) == wanted;
      });
  std::vector<json> values = is_list_value ? std::vector<json>{wanted} : alternatives(wanted);
  if (!comparisons.empty()) {
    const auto has_number = [&](const AxisPoint& point) { return value_at(grid, point, key).is_number(); };
    if (std::ranges::none_of(grid.axes[axis].points, has_number))
      fail("{}: {} has no numbers to compare; name a setting that has", location, key);
    std::erase_if(values, [&](const json& one) {
      return one.is_string() && !comparison_at(one.get<std::string>()).empty() && !is_value(grid, subject, key, one);
    });
  }
  return on_axis(grid, axis, subject.is_name, key, values, location, comparisons);
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
  const json value = value_of(grid, index, condition.key);
  return is_among(value, condition.values) ||
         is_one_true(condition.comparisons, [&](const std::string& name) { return value_of(grid, index, name); });
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
