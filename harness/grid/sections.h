// Parts of a grid file that files of their own read and write. Internal to harness/grid.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/table_reader.h"
#include "base/toml.h"
#include "harness/grid/grid.h"
#include "harness/grid/labels.h"

namespace tearless::harness {

/// Reads the keys base, unset and set of a section: base files and the base files that they name, then what is unset of
/// them and of `below`, then settings of the file itself. `unset` gets the keys of `below`; both are null for the
/// file's root. In Grid::merged, `folders` names those folders from which relative paths start that are not the grid's.
/// The names in print that base files have are added to the grid's.
void read_settings(TableReader& reader, Grid& grid, const Settings* below, Settings& settings,
                   std::vector<std::string>* unset);

/// The lines of a section [names] that read_name() reads as these.
std::string names_text(const Names& names);

/// Adds the entries of a section [names] of `file`; later ones win. `table` may be null.
void add_names(const toml::table* table, const std::string& file, Names& names);

/// Adds settings of the command line, "key=value", each with the location "--set key". UserError for one of another
/// form, and for one of the `words` that a grid file itself has.
void add_set_options(const std::vector<std::string>& options, const std::string& seed_key,
                     const std::vector<std::string>& words, Settings& settings);

/// Adds the axes of a table [axis], in the order of the file. `subgrid`: the index of the sub-grid that alone has them.
void load_axes(const toml::table& table, std::optional<size_t> subgrid, Grid& grid);

/// Adds the axis of the sub-grids, if there are any, and reads their settings.
void load_subgrids(const std::vector<const toml::table*>& tables, Grid& grid);
/// Then, after the axes that all have, those of each.
void load_axes_of_subgrids(const std::vector<const toml::table*>& tables, Grid& grid);

/// Takes from bundles the settings of their base files that another axis, --set or, if the file has them, `seeds` sets,
/// and gives conditional axes their last point. UserError if two axes change a setting in the same run.
void complete_axes(Grid& grid, bool has_seeds);

/// Fills grid.excludes, with those of the sub-grids last.
void load_exclusions(const std::vector<const toml::table*>& tables, const std::vector<const toml::table*>& subgrids,
                     Grid& grid);

/// Reads `sample = { count, seed }`; count_and_draw() draws it.
void load_sample(const toml::table* table, const std::string& file, Grid& grid);

/// Counts the combinations and draws the sample. UserError for too many, for an exclusion that
/// matches none, and if all are excluded. REQUIRES: the rest of `grid` is complete.
void count_and_draw(Grid& grid);

/// Reads [policy]. `table` may be null: an empty policy. UserError with file and line for every mistake in it.
GridPolicy load_policy(const toml::table* table, const std::string& file);

/// Reads [claims] of a grid with these seeds. `table` may be null. UserError with file and line for every mistake in
/// it.
ClaimTests load_claim_tests(const toml::table* table, const std::string& file, size_t seeds);

/// Fills grid.derivations with the sections [derived.NAME], which may decode the sets [test.NAME]. Both may be null.
/// REQUIRES: grid.axes is complete.
void load_derivations(const toml::table* derivations, const toml::table* tests, const std::string& file, Grid& grid);

/// The sections of [score]; `table` may be null. UserError with file and line for every mistake.
std::vector<DefinedScore> read_defined_scores(const toml::table* table, const std::string& file);

/// Grid::merged of the grid that was read from `root`. REQUIRES: the rest of `grid` is complete.
std::string merged_text(const Grid& grid, toml::table root);

}  // namespace tearless::harness
