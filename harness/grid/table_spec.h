// Reads a grid file's [table]. For .cc files of this room only.
#pragma once

#include "harness/grid/grid.h"
#include "harness/grid/table_reader.h"

namespace tearless::harness {

/// Fills grid.table. Everything else in `grid` must be complete; `table` is null where the file has no [table].
void load_table_spec(const toml::table* table, const std::string& file, Grid& grid);

}  // namespace tearless::harness
