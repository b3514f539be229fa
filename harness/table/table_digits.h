// How many digits the numbers of a table have. Internal to harness/table.
#pragma once

#include "harness/table/table.h"

namespace tearless::harness {

/// Those that the grid file gives the score, else those that its cells ask for (Digits::of()).
Digits digits_of(const TableSpec& spec, const Table& table, const std::string& score);

/// The most digits after the point among the published numbers of a column's score. TOML drops trailing zeros: a
/// printed 29.50 is read as 29.5.
int published_decimals(const Table& table, size_t column);

}  // namespace tearless::harness
