// What `tearless copy` and `tearless artifact` say of what they have copied.
#pragma once

#include <string>
#include <vector>

#include "harness/archive/copy.h"
#include "harness/console/globals.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// Prints a line on standard error for each grid file that was edited since the newest of the copied sweeps of it was
/// submitted: the copy has its views as they were then. `sweeps`: ids of those that were copied; empty: all.
void report_edited_grids(const Store& store, const std::vector<std::string>& sweeps, const Globals& globals);

/// Prints which runs were left out, and in which files an absolute path stays.
void print_exceptions(const CopyReport& report);

}  // namespace tearless::harness
