// The looks that were taken of a sweep while it was trained, compared with what its runs have now; and new ones.
#pragma once

#include <string>
#include <vector>

#include "harness/check/check.h"
#include "harness/grid/grid.h"
#include "harness/results/result_set.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// check_grid(), with the looks that were recorded of the sweep whose rows these are; of a grid file, of its newest
/// sweep of these runs that has looks.
GridChecks check_with_looks(const Grid& grid, const std::vector<View>& views, const ResultSet& results);

/// Takes the looks for which all runs are there, of a sweep that is trained until its claims are decided, and records
/// them. With `may_ask` those that do not decide ask for the runs of the next look. Returns the new ones, and those
/// that ask now.
std::vector<LookTaken> take_looks(const Workspace& workspace, const std::string& sweep, bool may_ask);

/// Whether there is one to take, or one has asked for runs that the database does not have yet: a service that was
/// killed leaves it to the next.
bool is_look_due(const Store& store, const std::string& sweep);

/// The claim's text in quotes, " at corpus=b, look 2 with 5 seeds: held +0.48 (+0.10 … +0.86); 4 runs more".
std::string sentence_of(const LookTaken& look);

/// Of each claim that cannot be decided at its look because a run will not end by itself (it has failed, was cancelled
/// …), a sentence with the ways on. `options` (" --workspace elsewhere") is of the commands in it.
std::vector<std::string> claims_held_open(const GridChecks& checks, const ResultSet& results,
                                          const std::string& options);

}  // namespace tearless::harness
