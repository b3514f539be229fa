// Reads the sections [table] or [[table]] of a grid file. Internal to harness/grid.
#pragma once

#include <array>

#include "harness/grid/grid.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {

/// The words of `cell.show`, in the order of TableSpec::Show.
inline constexpr std::array<const char*, 3> kShowWords = {"mean ± std (n)", "mean ± std", "mean"};

/// Fills grid.views with the sections, or with the default one if there are none. REQUIRES: the rest of `grid` is
/// complete.
void load_views(const std::vector<const toml::table*>& tables, const std::string& file, Grid& grid);

}  // namespace tearless::harness
