// Parts of a grid file that files of their own read and write. Internal to harness/grid.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/table_reader.h"
#include "base/toml.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// How tables, plans and messages call a value: a text as it is, anything else as TOML has it.
std::string label_of(const nlohmann::json& value);
/// The labels that a value or a list of values, the key `key` of `file`, names.
std::vector<std::string> labels_in(const toml::node& node, const std::string& key, const std::string& file);

/// Reads the keys base, unset and set of a section: base files and the base files that they name, then what is unset of
/// them and of `below`, then settings of the file itself. `unset` gets the keys of `below`; both are null for the
/// file's root. In Grid::merged, `folders` names those folders from which relative paths start that are not the grid's.
/// The names in print that base files have are added to the grid's.
void read_settings(TableReader& reader, Grid& grid, const Settings* below, Settings& settings,
                   std::vector<std::string>* unset);

/// A text, or { text = …, latex = … }. UserError, after "LOCATION: KEY", for anything else, and for LaTeX that would
/// break the table: braces or $ without their other one, and an &, %, # or line break that is not escaped.
Name read_name(const toml::node& node, const std::string& key, const std::string& location);

/// The lines of a section [names] that read_name() reads as these.
std::string names_text(const Names& names);

/// A number, a text, or { value = …, source = … }. A text that begins with a number and then has marks alone
/// ("20.91‡*") is that number; "" is none. UserError for anything else.
PublishedNumber read_published(const toml::node& node, const TableReader& reader);

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
/// matches none, and if all are excluded. REQUIRES: the rest of `grid` but its views is complete.
void count_and_draw(Grid& grid);

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
