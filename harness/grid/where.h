// Which part of a grid a view is about, and by which axes it is laid out. Internal to harness/grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/table_reader.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// `where = { axis = label or [labels] }`: axis → a flag for each of its points. Other axes have all. UserError for an
/// axis or a label that the grid does not have.
std::map<size_t, std::vector<bool>> read_where(TableReader& reader, const Grid& grid);

/// Whether it leaves one point of an axis.
bool leaves_one_point(const Grid& grid, const std::map<size_t, std::vector<bool>>& where, size_t axis);

/// The indices of the axes that a key names. UserError for one that the grid does not have.
std::vector<size_t> axes_named(TableReader& reader, const std::string& key, const Grid& grid);

/// The flags of the points that `labels` name. UserError, after "LOCATION: ", for a label that the axis does not have.
std::vector<bool> points_named(const Axis& axis, const std::vector<std::string>& labels, const std::string& location);

}  // namespace tearless::harness
