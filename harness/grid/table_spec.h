// Reads the section [table] of a grid file. Internal to harness/grid.
#pragma once

#include <array>

#include "harness/grid/grid.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {

/// The words of `cell.show`, in the order of TableSpec::Show.
inline constexpr std::array<const char*, 3> kShowWords = {"mean ± std (n)", "mean ± std", "mean"};

/// Fills grid.table with the section, or with defaults if `table` is null. REQUIRES: the rest of `grid` is complete.
void load_table_spec(const toml::table* table, const std::string& file, Grid& grid);

}  // namespace tearless::harness
