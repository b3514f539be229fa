// The section [computed]: settings that are calculated from others. Internal to harness/grid.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/toml.h"
#include "harness/grid/conditions.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// Fills grid.computed. `table` may be null. REQUIRES: grid.base and grid.axes are complete. UserError for an
/// expression with a mistake, for a setting that the grid does not have, and for settings that need each other.
void load_computed(const toml::table* table, const std::string& file, Grid& grid);

/// The keys that runs of the grid may have.
std::set<std::string> keys_of(const Grid& grid);

/// The expression `text` that `key` is set to, or compared by, as `written`; `keys`: those that it may name. UserError
/// with `location`.
Expression read_expression(const std::string& text, const std::string& key, const std::string& written,
                           const std::string& location, const std::set<std::string>& keys);

bool is_computed(const Grid& grid, const std::string& key);

/// True for a computed setting that needs the seed, itself or through others.
bool needs_seed(const Grid& grid, const std::string& key);

/// The value of a computed setting in a combination. UserError if it has none there. REQUIRES: is_computed().
nlohmann::json computed_value(const Grid& grid, PointIndex index, const std::string& key);

/// Adds the computed settings to those of a run, which has all others, and to the folders where paths start.
void add_computed(const Grid& grid, nlohmann::json::object_t& settings, std::map<std::string, std::string>& folders);

}  // namespace tearless::harness
