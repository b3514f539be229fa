#include <sstream>

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

}  // namespace

std::string merged_text(const Grid& grid, toml::table root) {
  // What is known better from `grid`, and the policy, which changes no result.
  for (const char* key : {"title", "base", "set", "folders", "axis", "policy", "submitted"}) root.erase(key);

  std::ostringstream text;
  text << "title = " << toml_value(grid.title) << "\n" << text_of(grid.base, grid.folder);
  text << toml::toml_formatter(root, toml::format_flags::allow_unicode_strings) << "\n";
  // All axes are written as bundles: [[axis]] tables, unlike the values of one [axis], can be in the grid's order.
  for (const Axis& axis : grid.axes) {
    for (const AxisPoint& point : axis.points) {
      text << "\n[[axis." << toml_value(axis.name) << "]]\nlabel = " << toml_value(point.label) << "\n"
           << text_of(point.set, grid.folder);
    }
  }
  return text.str();
}

}  // namespace tearless::harness
