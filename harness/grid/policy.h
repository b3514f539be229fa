// Reads the table [policy] of a grid file. Internal to harness/grid.
#pragma once

#include <string>

#include "base/toml.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// `table` may be null: an empty policy. UserError with file and line for every mistake in it.
GridPolicy load_policy(const toml::table* table, const std::string& file);

}  // namespace tearless::harness
