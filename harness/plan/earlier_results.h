// Results of earlier sweeps of a grid file that its table no longer shows because a setting was changed since, in the
// grid file or in a base file: the runs have other ids then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "harness/console/globals.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// For runs that have no result: compares each with the newest finished run that has the same coordinates and seed in a
/// sweep of the same grid file. Prints one line on standard error for each difference between their settings: "24
/// finished runs of this grid differ in decode.beam (1 → 4); tearless table demo-89abcdef shows them".
void report_earlier_results(const Store& store, const std::filesystem::path& grid_file,
                            const std::vector<Run>& without_result, const Globals& globals);

}  // namespace tearless::harness
