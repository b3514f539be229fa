// The sections [[table.row]] and [[table.column]]: rows and columns that the grid does not have. Internal to
// harness/grid.
#pragma once

#include "base/table_reader.h"
#include "harness/grid/grid.h"
#include "harness/views/layout.h"
#include "harness/views/table_spec.h"

namespace tearless::harness {

/// Reads these sections and the key `baseline`. UserError with file and line for every mistake in them.
void load_added_lines(TableReader& reader, const Grid& grid, const Layout& layout, TableSpec& spec);

}  // namespace tearless::harness
