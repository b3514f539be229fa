// A grid as JSON: all that load_grid() read from the grid file and its base files. A sweep keeps it, so that its table
// can be printed after these files were edited or deleted.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/grid/grid.h"

namespace tearless::harness {

nlohmann::json to_json(const Grid& grid);

/// Reads what to_json() wrote. UserError or nlohmann::json::exception for anything else.
Grid grid_from(const nlohmann::json& json);

/// True if both grids have the same settings, axes, seeds, exclusions and table. Where their files are, and in which
/// lines of them something was written, may differ.
bool have_same_content(const Grid& a, const Grid& b);

}  // namespace tearless::harness
