// A grid and its base files as one text. Internal to harness/grid.
#pragma once

#include <string>

#include "base/toml.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// Grid::merged of the grid that was read from `root`. REQUIRES: the rest of `grid` is complete.
std::string merged_text(const Grid& grid, toml::table root);

}  // namespace tearless::harness
