// Conditions on a combination's points and settings: the tables `when` of exclusions and of points. Internal to
// harness/grid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/table_reader.h"
#include "base/toml.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// Axis → index of its point: Combination::index, or the beginning of one.
using PointIndex = std::span<const uint32_t>;

/// Reads the key `when` of a section, { axis = label or value, setting = value or "> 8" }, where a list is
/// alternatives, and the key `on_labels` of Grid::merged, axis → labels, which a person does not write. `earlier_axes`:
/// of an axis, how many of the grid's first axes come before it; its conditions are on these. UserError for what is no
/// value of an axis.
std::vector<PointCondition> read_conditions(TableReader& reader, const Grid& grid,
                                            std::optional<size_t> earlier_axes = std::nullopt);

/// REQUIRES: `index` has the axes that the condition is about.
bool holds(const Grid& grid, PointIndex index, const PointCondition& condition);
bool all_hold(const Grid& grid, PointIndex index, const std::vector<PointCondition>& conditions);

/// The value of a setting in a combination, [computed] included; null if it is not set.
nlohmann::json value_of(const Grid& grid, PointIndex index, const std::string& key);

/// True if a point of an axis stands in the combination that `index` begins.
bool stands(const Grid& grid, PointIndex index, size_t axis, uint32_t point);

}  // namespace tearless::harness
