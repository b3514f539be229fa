// Parts of a grid file that files of their own read and write. Internal to harness/grid.
#pragma once

#include <string>
#include <vector>

#include "base/toml.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// Reads [policy]. `table` may be null: an empty policy. UserError with file and line for every mistake in it.
GridPolicy load_policy(const toml::table* table, const std::string& file);

/// Fills grid.derivations with the sections [derived.NAME], which may decode the sets [test.NAME]. Both may be null.
/// REQUIRES: grid.axes is complete.
void load_derivations(const toml::table* derivations, const toml::table* tests, const std::string& file, Grid& grid);

/// Fills grid.views with the sections [table] or [[table]], or with the default one if there are none. REQUIRES: the
/// rest of `grid` is complete.
void load_views(const std::vector<const toml::table*>& tables, const std::string& file, Grid& grid);

/// Grid::merged of the grid that was read from `root`. REQUIRES: the rest of `grid` is complete.
std::string merged_text(const Grid& grid, toml::table root);

}  // namespace tearless::harness
