// The differences of two sweeps, or of a grid's sweeps before and after an edit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/console/globals.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// In which settings the runs of two sweeps differ that have the same labels and seed, and in which cells their
/// scores. `where`: texts "axis=label" (Only), of the axes of either. UserError for an axis that only one of the two
/// has, unless one label of it is left.
std::string differences_of_sweeps(std::unique_ptr<const Store> store, const std::string& left, const std::string& right,
                                  const std::vector<std::string>& where, const Globals& globals);

}  // namespace tearless::harness
