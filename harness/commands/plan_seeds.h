// What `tearless plan` says of seeds: how many the claims need, and what one more costs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/check/seeds_needed.h"
#include "harness/commands/plan_tally.h"
#include "harness/console/globals.h"
#include "harness/plan/grid_state.h"

namespace tearless::harness {

struct SeedsPlan {
  std::vector<SeedsNeeded> claims = {};
  ClaimTests tests = {};
  Work further = {};  // the runs of one seed, trained or not: what one more costs
};

/// Of a plan without errors. `like`: an archive with runs whose spread is taken in place of that of the grid's own
/// runs, of its newest sweep of a grid file of the same name, else its only sweep; empty: none. UserError if it has no
/// such sweep, or one with other axes.
SeedsPlan seeds_plan_of(GridState& state, const std::filesystem::path& like, const Globals& globals);

/// "T4 A is better: 4 to 29 seeds for 0.3 bleu; s_d 0.18 from 3 seeds (vi)", a line for each claim of which something
/// is known; then what a further seed costs, with the command `calibrate` where that is not known. None without such
/// claims.
std::vector<std::string> lines_of(const SeedsPlan& plan, const std::vector<View>& views, const std::string& calibrate);

nlohmann::json to_json(const SeedsPlan& plan, const std::vector<View>& views);

}  // namespace tearless::harness
