#include "harness/grid/grid_json.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "harness/grid/layout.h"
#include "harness/grid/table_spec.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

// --- settings and axes ---------------------------------------------------------------------------------------------

json settings_json(const Settings& settings) {
  json object = json::object();
  for (const auto& [key, setting] : settings) {
    object[key] = {{"value", setting.value}, {"folder", setting.folder}, {"location", setting.location}};
  }
  return object;
}

Settings settings_from(const json& object) {
  Settings settings;
  for (const auto& [key, setting] : object.items()) {
    settings[key] = {.value = setting.at("value"), .folder = setting.at("folder"), .location = setting.at("location")};
  }
  return settings;
}

json axis_json(const Axis& axis) {
  json points = json::array();
  for (const AxisPoint& point : axis.points) {
    points.push_back({{"label", point.label}, {"set", settings_json(point.set)}, {"location", point.location}});
  }
  return {{"name", axis.name}, {"points", points}, {"location", axis.location}};
}

Axis axis_from(const json& object) {
  Axis axis{.name = object.at("name"), .points = {}, .location = object.at("location")};
  for (const json& point : object.at("points")) {
    axis.points.push_back(
        {.label = point.at("label"), .set = settings_from(point.at("set")), .location = point.at("location")});
  }
  if (axis.points.empty()) fail("the axis {} has no values", axis.name);
  return axis;
}

json axis_names(const Grid& grid, const std::vector<size_t>& axes) {
  json names = json::array();
  for (const size_t axis : axes) names.push_back(grid.axes[axis].name);
  return names;
}

std::vector<size_t> axes_called(const Grid& grid, const json& names) {
  std::vector<size_t> axes;
  for (const json& name : names) axes.push_back(grid.axis_index(name, "the frozen grid"));
  return axes;
}

// --- exclusions ----------------------------------------------------------------------------------------------------

json exclusion_json(const Grid& grid, const Exclusion& exclusion) {
  json when = json::array();
  for (const Exclusion::Condition& condition : exclusion.when) {
    const Axis& axis = grid.axes[condition.axis];
    json labels = json::array();
    for (size_t i = 0; i < axis.points.size(); ++i) {
      if (condition.holds[i]) labels.push_back(axis.points[i].label);
    }
    when.push_back({{"axis", axis.name}, {"labels", labels}});
  }
  return {{"when", when}, {"why", exclusion.why}, {"location", exclusion.location}};
}

Exclusion exclusion_from(const Grid& grid, const json& object) {
  Exclusion exclusion{.when = {}, .why = object.at("why"), .location = object.at("location")};
  for (const json& condition : object.at("when")) {
    const size_t axis = grid.axis_index(condition.at("axis"), "the frozen grid");
    const std::vector<std::string> labels = condition.at("labels");
    std::vector<bool> holds;
    for (const AxisPoint& point : grid.axes[axis].points) {
      holds.push_back(std::find(labels.begin(), labels.end(), point.label) != labels.end());
    }
    exclusion.when.push_back({axis, std::move(holds)});
  }
  return exclusion;
}

// --- the table -----------------------------------------------------------------------------------------------------

json table_json(const Grid& grid) {
  const TableSpec& spec = grid.table;
  json object = {{"caption", spec.caption},
                 {"rows", axis_names(grid, spec.rows)},
                 {"columns", axis_names(grid, spec.columns)},
                 {"scores", spec.scores},
                 {"show", kShowWords[static_cast<size_t>(spec.show)]},
                 {"decimals", spec.decimals}};
  if (spec.fail_below) object["fail_below"] = *spec.fail_below;
  if (const auto& select = spec.select) {
    object["select"] = {{"over", axis_names(grid, select->over)}, {"by", select->by}, {"highest", select->highest}};
  }
  if (const auto& published = spec.published) {
    object["published"] = {{"source", published->source},
                           {"score", published->score},
                           {"values", published->values},
                           {"location", published->location}};
  }
  return object;
}

TableSpec table_from(const Grid& grid, const json& object) {
  const std::string show = object.at("show");
  const auto word = std::find(kShowWords.begin(), kShowWords.end(), show);
  if (word == kShowWords.end()) fail("\"{}\" is no way to show a cell", show);
  TableSpec spec{.caption = object.at("caption"),
                 .rows = axes_called(grid, object.at("rows")),
                 .columns = axes_called(grid, object.at("columns")),
                 .scores = object.at("scores"),
                 .show = static_cast<TableSpec::Show>(std::distance(kShowWords.begin(), word)),
                 .decimals = object.at("decimals"),
                 .fail_below = std::nullopt,
                 .select = std::nullopt,
                 .published = std::nullopt};
  if (object.contains("fail_below")) spec.fail_below = object.at("fail_below").get<double>();
  if (object.contains("select")) {
    const json& select = object.at("select");
    spec.select = TableSpec::Select{
        .over = axes_called(grid, select.at("over")), .by = select.at("by"), .highest = select.at("highest")};
  }
  if (object.contains("published")) {
    const json& published = object.at("published");
    spec.published = TableSpec::Published{.source = published.at("source"),
                                          .score = published.at("score"),
                                          .values = published.at("values"),
                                          .location = published.at("location")};
  }
  return spec;
}

// --- the policy ----------------------------------------------------------------------------------------------------

template <class Value>
json optional_json(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}
template <class Value>
void read_optional(const json& object, const char* key, std::optional<Value>& value) {
  if (const json& written = object.at(key); !written.is_null()) value = written.get<Value>();
}

json policy_json(const GridPolicy& policy) {
  return {{"stall_minutes", optional_json(policy.stall_minutes)},
          {"grace_seconds", optional_json(policy.grace_seconds)},
          {"memory_bytes", optional_json(policy.memory_bytes)},
          {"tries", policy.tries}};
}

GridPolicy policy_from(const json& object) {
  GridPolicy policy;
  read_optional(object, "stall_minutes", policy.stall_minutes);
  read_optional(object, "grace_seconds", policy.grace_seconds);
  read_optional(object, "memory_bytes", policy.memory_bytes);
  policy.tries = object.at("tries").get<std::map<std::string, int>>();
  return policy;
}

// REQUIRES: the rest of `grid` is complete.
void refuse_other_size_of_published(const Grid& grid) {
  if (!grid.table.published) return;
  const Layout layout = layout_of(grid);
  const auto& values = grid.table.published->values;
  const bool fits =
      values.size() == layout.rows.size() &&
      std::all_of(values.begin(), values.end(), [&](const auto& row) { return row.size() == layout.columns.size(); });
  if (!fits) fail("the published values do not have the size of the table");
}

void forget_origin(Settings& settings) {
  for (auto& [key, setting] : settings) setting.folder = setting.location = "";
}

Grid without_origins(Grid grid) {
  grid.file = grid.folder = "";
  grid.policy = {};  // it changes no result
  forget_origin(grid.base);
  for (Axis& axis : grid.axes) {
    axis.location = "";
    for (AxisPoint& point : axis.points) {
      point.location = "";
      forget_origin(point.set);
    }
  }
  for (Exclusion& exclusion : grid.excludes) exclusion.location = "";
  if (grid.table.published) grid.table.published->location = "";
  return grid;
}

}  // namespace

json to_json(const Grid& grid) {
  json object = {{"title", grid.title},
                 {"file", grid.file.string()},
                 {"folder", grid.folder.string()},
                 {"base", settings_json(grid.base)},
                 {"axes", json::array()},
                 {"seeds", grid.seeds},
                 {"seed_key", grid.seed_key},
                 {"exclude", json::array()},
                 {"table", table_json(grid)},
                 {"policy", policy_json(grid.policy)}};
  for (const Axis& axis : grid.axes) object["axes"].push_back(axis_json(axis));
  for (const Exclusion& exclusion : grid.excludes) object["exclude"].push_back(exclusion_json(grid, exclusion));
  if (grid.program) object["program"] = grid.program->string();
  return object;
}

Grid grid_from(const json& object) {
  Grid grid;
  grid.title = object.at("title");
  grid.file = object.at("file").get<std::string>();
  grid.folder = object.at("folder").get<std::string>();
  grid.base = settings_from(object.at("base"));
  for (const json& axis : object.at("axes")) grid.axes.push_back(axis_from(axis));
  grid.seeds = object.at("seeds").get<std::vector<int64_t>>();
  if (grid.seeds.empty()) fail("the frozen grid has no seed");
  grid.seed_key = object.at("seed_key");
  for (const json& exclusion : object.at("exclude")) grid.excludes.push_back(exclusion_from(grid, exclusion));
  grid.table = table_from(grid, object.at("table"));
  refuse_other_size_of_published(grid);
  grid.policy = policy_from(object.at("policy"));
  if (object.contains("program")) grid.program = object.at("program").get<std::string>();
  return grid;
}

bool have_same_content(const Grid& a, const Grid& b) { return without_origins(a) == without_origins(b); }

}  // namespace tearless::harness
