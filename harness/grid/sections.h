// Parts of a grid file that files of their own read and write. Internal to harness/grid.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/toml.h"
#include "harness/grid/grid.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {

/// Reads [policy]. `table` may be null: an empty policy. UserError with file and line for every mistake in it.
GridPolicy load_policy(const toml::table* table, const std::string& file);

/// Fills grid.derivations with the sections [derived.NAME], which may decode the sets [test.NAME]. Both may be null.
/// REQUIRES: grid.axes is complete.
void load_derivations(const toml::table* derivations, const toml::table* tests, const std::string& file, Grid& grid);

/// The name of a kind of view → its sections: one [table], or any number of [[table]].
using ViewSections = std::map<std::string, std::vector<const toml::table*>>;
ViewSections view_sections(TableReader& root);

/// Fills grid.views, with a table of all axes if there are no sections. REQUIRES: the rest of `grid` is complete.
void load_views(const ViewSections& sections, const std::string& file, Grid& grid);

/// Grid::merged of the grid that was read from `root`. REQUIRES: the rest of `grid` is complete.
std::string merged_text(const Grid& grid, toml::table root);

}  // namespace tearless::harness
