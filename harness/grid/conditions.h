// Conditions on a combination's points and settings: the tables `when` of exclusions and of points. Internal to
// harness/grid.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/toml.h"
#include "harness/grid/grid.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {

/// Axis → index of its point: Combination::index, or the beginning of one.
using PointIndex = std::span<const uint32_t>;

/// Reads a table `when`: { axis = label or value, setting = value }, where a list is alternatives. `axes`: the number
/// of the grid's first axes that it may be about. UserError for what is no value of an axis.
enum class About { kAllAxes, kEarlierAxes };
std::vector<PointCondition> load_conditions(const Grid& grid, const toml::table& when, size_t axes,
                                            About about = About::kEarlierAxes);

/// Reads the key `labels` of a point or an exclusion of Grid::merged, which a person does not write: axis → labels.
std::vector<PointCondition> load_conditions_on_labels(const Grid& grid, TableReader& reader);

/// REQUIRES: `index` has the axes that the condition is about.
bool holds(const Grid& grid, PointIndex index, const PointCondition& condition);
bool all_hold(const Grid& grid, PointIndex index, const std::vector<PointCondition>& conditions);

/// The value of a setting in a combination, [computed] included; null if it is not set.
nlohmann::json value_of(const Grid& grid, PointIndex index, const std::string& key);

/// True if a point of an axis stands in the combination that `index` begins.
bool stands(const Grid& grid, PointIndex index, size_t axis, uint32_t point);

}  // namespace tearless::harness
