#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

/// One line for each item of a list: parse_toml() limits the dots of a line.
std::string text_of(const nlohmann::json& value) {
  if (!value.is_array()) return toml_value(value);
  std::string text = "[\n";
  for (const nlohmann::json& item : value) text += fmt::format("  {},\n", text_of(item));
  return text + "]";
}

std::string text_of(const Settings& settings, const std::filesystem::path& folder_of_grid) {
  std::string text;
  for (const auto& [key, setting] : settings) {
    const std::string quoted = toml_value(key);
    text += fmt::format("set.{} = {}\n", quoted, text_of(setting.value));
    if (!setting.may_be_path() || setting.folder == folder_of_grid) continue;
    const std::string folder = std::filesystem::path(setting.folder).lexically_relative(folder_of_grid);
    text += fmt::format("folders.{} = {}\n", quoted, toml_value(folder));
  }
  return text;
}

/// One line for each axis or setting: the labels, or the values, that all conditions on it have in common.
std::string text_of(const Grid& grid, const std::vector<PointCondition>& conditions) {
  std::map<std::pair<bool, std::string>, std::vector<nlohmann::json>> lines;  // of an axis?, its name or the key
  for (const PointCondition& one : conditions) {
    std::vector<nlohmann::json> values = one.values;
    for (size_t i = 0; one.axis && i < grid.axes[*one.axis].points.size(); ++i) {
      if (one.has(i)) values.emplace_back(grid.axes[*one.axis].points[i].label);
    }
    const std::string& name = one.axis ? grid.axes[*one.axis].name : one.key;
    const auto [line, is_new] = lines.emplace(std::pair(one.axis.has_value(), name), values);
    if (is_new) continue;
    std::erase_if(line->second, [&](const auto& value) { return std::ranges::find(values, value) == values.end(); });
  }
  std::string text;
  for (const auto& [name, values] : lines) {
    text += fmt::format("{}.{} = {}\n", name.first ? "on_labels" : "when", toml_value(name.second),
                        text_of(nlohmann::json(values)));
  }
  return text;
}

}  // namespace

std::string merged_text(const Grid& grid, toml::table root) {
  // What is known better from `grid`, and the policy, which changes no result.
  for (const char* key :
       {"title", "base", "unset", "set", "folders", "axis", "subgrid", "policy", "tag", "note", "submitted", "names"})
    root.erase(key);
  const bool has_subgrids = !grid.axes.empty() && grid.axes.front().name == kSubgridAxis;
  if (has_subgrids) root.erase("exclude");  // those of the sub-grids are of the whole grid here

  std::ostringstream text;
  text << "title = " << toml_value(grid.title) << "\n" << text_of(grid.base, grid.folder) << names_text(grid.names);
  text << toml::toml_formatter(root, toml::format_flags::allow_unicode_strings) << "\n";
  // All axes are written as bundles: [[axis]] tables, unlike the values of one [axis], can be in the grid's order.
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      if (&point - axis.points.data() == axis.absent) continue;  // the conditions of the others say where it is
      text << "\n[[axis." << toml_value(axis.name) << "]]\nlabel = " << toml_value(point.label) << "\n"
           << text_of(grid, point.when) << text_of(point.set, grid.folder);
      if (!point.unset.empty()) text << "unset = " << text_of(nlohmann::json(point.unset)) << "\n";
    }
  }
  for (const Exclusion& one : has_subgrids ? grid.excludes : std::vector<Exclusion>()) {
    text << "\n[[exclude]]\nwhy = " << toml_value(one.why) << "\n" << text_of(grid, one.when);
  }
  return text.str();
}

}  // namespace tearless::harness
