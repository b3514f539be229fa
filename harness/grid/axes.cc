// The axes of a grid file, in each of the forms that a person writes:
//
//   [axis]
//   "model.placement" = ["post", "pre"]                                     values
//   "train.lr"        = { from = 1e-4, to = 1e-2, count = 5, scale = "log" }  a range of them
//   [axis.size]                                                             settings that move together
//   zip = { "model.d_model" = [256, 512], "model.heads" = [4, 8] }
//   [axis."train.momentum"]                                                 with a condition
//   values = [0.9, 0.99]
//   when   = { "train.optimiser" = "sgd" }
//   [[axis.system]]                                                         bundles
//   label = "post"
//   set   = { "model.placement" = "post" }
#include <algorithm>
#include <map>

#include "base/error.h"
#include "harness/grid/conditions.h"
#include "harness/grid/range.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr size_t kMaxAxes = 100;

std::string location_of(const toml::node& node, const Grid& grid) {
  return fmt::format("{}:{}", grid.file.string(), node.source().begin.line);
}

// --- values ---------------------------------------------------------------------------------------------------------

struct Value {
  json value;
  std::string label;
  std::string location;
};

/// An item of a list: a value, or { value = …, label = "…" }.
Value read_value(const std::string& key, const toml::node& node, const Grid& grid) {
  const std::string location = location_of(node, grid), file = grid.file.string();
  const toml::table* table = node.as_table();
  if (!table) {
    const json value = toml_to_json(node, key, file);
    return {value, label_of(value), location};
  }
  TableReader reader(*table, fmt::format("a value of the axis {}", key), file);
  const toml::node* inner = reader.any("value");
  const std::optional<std::string> label = reader.text("label");
  reader.refuse_leftovers();
  if (!inner || !label) {
    fail(
        "{}: a value with a label is written {{ value = 1e-3, label = \"large\" }}; for several settings together, "
        "write {{ label = \"…\", set = {{ … }} }}",
        location);
  }
  return {toml_to_json(*inner, key, file), *label, location};
}

/// 1 and 1.0, or 0.001 and 1e-3 under two labels, would be one run in two rows.
void refuse_equal_values(const std::string& key, const std::vector<Value>& values) {
  std::map<json, const Value*> first;
  for (const Value& one : values) {
    const auto [it, is_new] = first.emplace(one.value, &one);
    if (!is_new && it->second->label != one.label) {
      fail("{}: the axis {} has {} twice, here and as {} at {}; remove one of them", one.location, key,
           toml_value(one.value), toml_value(it->second->value), it->second->location);
    }
  }
}

/// A list of values, or a range.
std::vector<Value> read_values(const std::string& key, const toml::node& node, const Grid& grid) {
  std::vector<Value> values;
  if (const toml::table* range = node.as_table()) {
    for (const json& value : range_of(key, *range, grid.file.string())) {
      values.push_back({value, label_of(value), location_of(node, grid)});
    }
  } else if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) values.push_back(read_value(key, item, grid));
    refuse_equal_values(key, values);
  } else {
    fail("{}: the values of {} must be a list, or a range such as {{ from = 1, to = 12, step = 2 }}",
         location_of(node, grid), key);
  }
  if (values.empty()) fail("{}: the axis {} has no values", location_of(node, grid), key);
  return values;
}

std::vector<AxisPoint> value_points(const std::string& key, const toml::node& node, const Grid& grid) {
  std::vector<AxisPoint> points;
  for (Value& one : read_values(key, node, grid)) {
    points.push_back({.label = std::move(one.label),
                      .set = {{key, {std::move(one.value), grid.folder.string(), one.location}}},
                      .unset = {},
                      .when = {},
                      .location = one.location});
  }
  return points;
}

/// zip = { a = [1, 2], b = [3, 4] }: the points (1, 3) and (2, 4).
std::vector<AxisPoint> zipped_points(const std::string& name, const toml::table& table, const std::string& prefix,
                                     const Grid& grid, std::vector<AxisPoint> points) {
  for (const auto& [key, node] : in_written_order(table)) {
    const std::string dotted = prefix + key;
    const toml::table* inner = node->as_table();
    if (inner && !is_range(*inner)) {
      points = zipped_points(name, *inner, dotted + ".", grid, std::move(points));
      continue;
    }
    std::vector<AxisPoint> own = value_points(dotted, *node, grid);
    if (points.empty()) {
      points = std::move(own);
      continue;
    }
    if (own.size() != points.size()) {
      fail("{}: the axis {} zips lists of equal length: {} has {} values, and those before it have {}",
           location_of(*node, grid), name, dotted, own.size(), points.size());
    }
    for (size_t i = 0; i < own.size(); ++i) {
      points[i].label += ", " + own[i].label;
      if (!points[i].set.insert(*own[i].set.begin()).second)
        fail("{}: the axis {} zips {} twice", location_of(*node, grid), name, dotted);
    }
  }
  return points;
}

/// An item of [[axis.NAME]].
AxisPoint bundle_point(const std::string& name, const toml::table& table, Grid& grid, size_t axes_before) {
  TableReader reader(table, fmt::format("[[axis.{}]]", name), grid.file.string());
  const std::optional<std::string> label = reader.text("label");
  if (!label) {
    fail("{}: a point of the axis {} needs a label, as in {{ label = \"…\", set = {{ … }} }}", reader.location(), name);
  }
  AxisPoint point{.label = *label, .set = {}, .unset = {}, .when = {}, .location = reader.location()};
  point.when = read_conditions(reader, grid, axes_before);
  read_settings(reader, grid, &grid.base, point.set, &point.unset);
  reader.refuse_leftovers();
  return point;
}

std::vector<AxisPoint> listed_points(const std::string& name, const toml::array& list, Grid& grid, size_t axes_before) {
  const auto is_bundle = [](const toml::node& item) { return item.is_table() && !item.as_table()->contains("value"); };
  if (list.empty() || !is_bundle(list.front())) {
    for (const toml::node& item : list) {
      if (is_bundle(item) && item.as_table()->contains("set"))
        fail("{}: the axis {} mixes values and bundles", location_of(list, grid), name);
    }
    return value_points(name, list, grid);
  }
  std::vector<AxisPoint> points;
  for (const toml::node& item : list) {
    if (!is_bundle(item)) fail("{}: the axis {} mixes values and bundles", location_of(list, grid), name);
    points.push_back(bundle_point(name, *item.as_table(), grid, axes_before));
  }
  return points;
}

// --- axes -----------------------------------------------------------------------------------------------------------

bool is_same(const Settings& a, const Settings& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.value == y.second.value && x.second.folder == y.second.folder;
  });
}

bool is_same(const std::vector<PointCondition>& a, const std::vector<PointCondition>& b) {
  return std::ranges::equal(a, b, [](const PointCondition& x, const PointCondition& y) {
    bool same = x.axis == y.axis && x.key == y.key && x.values == y.values;
    for (size_t i = 0; i < std::max(x.points.size(), y.points.size()); ++i) same &= x.has(i) == y.has(i);
    return same;
  });
}

/// Adds the points that a further sub-grid gives an axis that another one has already.
void add_points(Axis& axis, std::vector<AxisPoint> points, size_t subgrid) {
  for (AxisPoint& point : points) {
    const auto there = std::ranges::find(axis.points, point.label, &AxisPoint::label);
    if (there == axis.points.end()) {
      axis.points.push_back(std::move(point));
      continue;
    }
    const auto own_conditions = [](const AxisPoint& one) { return std::vector(one.when.begin() + 1, one.when.end()); };
    if (!is_same(there->set, point.set) || there->unset != point.unset ||
        !is_same(own_conditions(*there), own_conditions(point))) {
      fail("{}: the axis {} has \"{}\" with other settings at {}; give one of them another label", point.location,
           axis.name, point.label, there->location);
    }
    there->when.front().points[subgrid] = true;
  }
}

void refuse_repeated_labels(const std::string& name, const std::vector<AxisPoint>& points) {
  std::map<std::string, std::string> first;
  for (const AxisPoint& point : points) {
    const auto [it, is_new] = first.emplace(point.label, point.location);
    if (!is_new) fail("{}: the axis {} has \"{}\" twice (first at {})", point.location, name, point.label, it->second);
  }
}

struct AxisLoader {
  Grid& grid;
  std::optional<size_t> subgrid;  // the sub-grid that alone has the axes

  /// Where the axis `name` is, or will be.
  size_t place_of(const std::string& name, const std::string& location) const {
    const auto found = std::ranges::find(grid.axes, name, &Axis::name);
    if (found == grid.axes.end()) {
      if (grid.axes.size() == kMaxAxes) fail("{}: the grid has more than {} axes; split it", location, kMaxAxes);
      return grid.axes.size();
    }
    const auto is_of_others = [&](const AxisPoint& point) {
      return !point.when.empty() && point.when.front().key == kSubgridAxis && !point.when.front().has(*subgrid);
    };
    if (!subgrid || !std::ranges::all_of(found->points, is_of_others))
      fail("{}: the axis {} is defined twice (first at {}){}", location, name, found->location, advice_on(*found));
    return static_cast<size_t>(found - grid.axes.begin());
  }

  /// How an axis that all sub-grids have is restricted to the others.
  std::string advice_on(const Axis& axis) const {
    const std::vector<PointCondition>& when = axis.points.front().when;
    if (!subgrid || grid.axes.front().points.size() == 1 || (!when.empty() && when.front().key == kSubgridAxis))
      return "";
    json others = json::array();
    for (const AxisPoint& point : grid.axes.front().points) others.push_back(point.label);
    others.erase(*subgrid);
    return fmt::format("; for other values in this sub-grid, give the first when = {{ subgrid = {} }}",
                       toml_value(others.size() == 1 ? others.front() : others));
  }

  void add(const std::string& name, size_t place, std::vector<AxisPoint> points, const std::string& location) {
    refuse_repeated_labels(name, points);
    if (subgrid) {
      PointCondition own{
          .axis = 0, .points = std::vector<bool>(grid.axes.front().points.size()), .key = kSubgridAxis, .values = {}};
      own.points[*subgrid] = true;
      for (AxisPoint& point : points) point.when.insert(point.when.begin(), own);
    }
    if (place < grid.axes.size()) {
      add_points(grid.axes[place], std::move(points), *subgrid);
    } else {
      grid.axes.push_back({.name = name, .points = std::move(points), .location = location});
    }
  }

  void add_list(const std::string& name, const toml::array& list) {
    const std::string location = location_of(list, grid);
    refuse_seeds(name, location);
    if (list.empty()) fail("{}: the axis {} has no values", location, name);
    const size_t place = place_of(name, location);
    add(name, place, listed_points(name, list, grid, place), location);
  }

  /// [axis.NAME] with `values` or `zip`, and `when`.
  void add_section(const std::string& name, const toml::table& table) {
    TableReader reader(table, fmt::format("[axis.{}]", name), grid.file.string());
    const std::string location = reader.location();
    refuse_seeds(name, location);
    const size_t place = place_of(name, location);
    const toml::node* values = reader.any("values");
    const toml::table* zip = reader.table("zip");
    const std::vector<PointCondition> conditions = read_conditions(reader, grid, place);
    for (const char* of_a_bundle : {"label", "set", "base", "unset"}) {
      if (reader.has(of_a_bundle))
        fail("{}: [axis.{}] has {}, as a bundle has; bundles are written [[axis.{}]], with double brackets",
             reader.location(of_a_bundle), name, of_a_bundle, name);
    }
    reader.refuse_leftovers();
    if ((values != nullptr) == (zip != nullptr)) fail("{}: [axis.{}] needs either `values` or `zip`", location, name);
    std::vector<AxisPoint> points = !values              ? zipped_points(name, *zip, "", grid, {})
                                    : values->is_array() ? listed_points(name, *values->as_array(), grid, place)
                                                         : value_points(name, *values, grid);
    if (points.empty()) fail("{}: the axis {} zips nothing", location, name);
    for (AxisPoint& point : points) point.when.insert(point.when.end(), conditions.begin(), conditions.end());
    add(name, place, std::move(points), location);
  }

  void add_range(const std::string& name, const toml::table& table) {
    const std::string location = location_of(table, grid);
    refuse_seeds(name, location);
    const size_t place = place_of(name, location);
    add(name, place, value_points(name, table, grid), location);
  }

  void refuse_seeds(const std::string& name, const std::string& location) const {
    if (name != grid.seed_key && name != "seed") return;
    fail("{}: {} cannot be an axis; write the replicates as seeds = 3 or seeds = [1, 2, 3]", location, name);
  }

  /// True for [axis.NAME] with keys of its own. Without values and texts among them it is a part of a dotted key.
  static bool is_section(const toml::table& table) {
    const auto is_value = [](const auto& entry) { return !entry.second.is_table() && !entry.second.is_array(); };
    return table.contains("values") || table.contains("zip") || table.contains("when") ||
           std::any_of(table.begin(), table.end(), is_value);
  }

  /// An unquoted dotted key is parsed as nested tables and means the same as a quoted one.
  void add_all(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : in_written_order(table)) {
      const std::string name = prefix + key;
      const toml::table* inner = node->as_table();
      if (const toml::array* list = node->as_array()) {
        add_list(name, *list);
      } else if (!inner) {
        fail(
            "{}: the axis {} must be a list of values, as in [1, 2], a range, as in {{ from = 1, to = 9, count = 3 }}, "
            "or "
            "bundles, as in [[axis.{}]]",
            location_of(*node, grid), name, name);
      } else if (is_range(*inner)) {
        add_range(name, *inner);
      } else if (is_section(*inner)) {
        add_section(name, *inner);
      } else {
        add_all(*inner, name + ".");
      }
    }
  }
};

// --- what two axes do to one setting --------------------------------------------------------------------------------

struct Change {
  size_t axis;
  const AxisPoint* point;
  std::string location;
};

/// True if conditions keep the points out of each other's combinations.
bool are_apart(const Grid& grid, const Change& a, const Change& b) {
  const auto number_of = [&](const Change& change) {
    return static_cast<size_t>(change.point - grid.axes[change.axis].points.data());
  };
  for (const PointCondition& one : b.point->when) {
    if (one.axis == a.axis && !one.has(number_of(a))) return true;
    for (const PointCondition& other : a.point->when) {
      if (!one.axis || one.axis != other.axis) continue;
      bool both = false;
      for (size_t i = 0; i < one.points.size(); ++i) both |= one.has(i) && other.has(i);
      if (!both) return true;
    }
  }
  return false;
}

/// Whether, in each combination with a point of another axis, a point stands that sets `key`, not by a base file.
bool always_sets(const Axis& axis, const std::string& key, size_t other, size_t point_of_other) {
  bool one_stands = false;
  for (const AxisPoint& point : axis.points) {
    const auto is_of_other = [&](const PointCondition& one) { return one.axis == other; };
    if (!std::ranges::all_of(point.when, is_of_other)) return false;
    const auto holds = [&](const PointCondition& one) { return one.has(point_of_other); };
    if (!std::ranges::all_of(point.when, holds)) continue;
    const auto set = point.set.find(key);
    if (set == point.set.end() || set->second.is_of_base_file) return false;
    one_stands = true;
  }
  return one_stands;
}

/// What the base files of a bundle set are defaults: they yield to an axis that always sets the key, to --set, and to
/// the seeds. REQUIRES: no axis has its absent point yet.
void let_defaults_yield(Grid& grid, bool has_seeds) {
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    std::vector<AxisPoint>& points = grid.axes[axis].points;
    for (size_t i = 0; i < points.size(); ++i) {
      std::erase_if(points[i].set, [&](const auto& entry) {
        const auto& [key, setting] = entry;
        if (!setting.is_of_base_file) return false;
        const auto wins = [&, name = &key](const Axis& other) { return always_sets(other, *name, axis, i); };
        const auto base = grid.base.find(key);
        return (has_seeds && key == grid.seed_key) || std::ranges::any_of(grid.axes, wins) ||
               (base != grid.base.end() && base->second.location.starts_with("--set "));
      });
    }
  }
}

/// At most one axis may change a setting of a run: two would overwrite each other.
void refuse_shared_keys(const Grid& grid) {
  std::map<std::string, std::vector<Change>> changes;
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    for (const AxisPoint& point : grid.axes[axis].points) {
      const auto add = [&](const std::string& key, const std::string& location) {
        if (key == grid.seed_key) fail("{}: {} is set by seeds, no axis can set it", location, key);
        std::vector<Change>& all = changes[key];
        const Change change{.axis = axis, .point = &point, .location = location};
        for (const Change& other : all) {
          if (other.axis == axis || are_apart(grid, other, change)) continue;
          fail("{}: {} is already set by the axis {}", location, key, grid.axes[other.axis].name);
        }
        all.push_back(change);
      };
      for (const auto& [key, setting] : point.set) add(key, setting.location);
      for (const std::string& key : point.unset) add(key, point.location);
    }
  }
  for (const auto& [key, setting] : grid.base) {
    const auto change = changes.find(key);
    if (change == changes.end() || !setting.location.starts_with("--set ")) continue;
    const Axis& axis = grid.axes[change->second.front().axis];
    fail("{}: the axis {} sets it (at {}); choose points of the axis with --only, or edit the file", setting.location,
         axis.name, axis.location);
  }
}

}  // namespace

void load_axes(const toml::table& table, std::optional<size_t> subgrid, Grid& grid) {
  AxisLoader{grid, subgrid}.add_all(table, "");
}

void complete_axes(Grid& grid, bool has_seeds) {
  let_defaults_yield(grid, has_seeds);
  for (Axis& axis : grid.axes) {
    const auto has_condition = [](const AxisPoint& point) { return !point.when.empty(); };
    axis.is_conditional = std::ranges::any_of(axis.points, has_condition);
    if (!std::ranges::all_of(axis.points, has_condition)) continue;
    const auto taken = std::ranges::find(axis.points, kAbsentLabel, &AxisPoint::label);
    if (taken != axis.points.end()) {
      fail("{}: \"{}\" is the label that the axis {} has where its conditions do not hold; choose another",
           taken->location, kAbsentLabel, axis.name);
    }
    axis.absent = static_cast<uint32_t>(axis.points.size());
    axis.points.push_back({.label = kAbsentLabel, .set = {}, .unset = {}, .when = {}, .location = axis.location});
  }
  refuse_shared_keys(grid);
}

}  // namespace tearless::harness
