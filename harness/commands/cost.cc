// `tearless cost [SWEEP…]`: prints what the runs of sweeps took, and, of grids whose claims were decided with fewer
// seeds than they have, what all of them would take.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "harness/commands/view_output.h"
#include "harness/plan/grid_state.h"
#include "harness/results/cost.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

json json_of(const CostOfGrids& cost, const std::vector<std::string>& sweeps) {
  const TrainingCost& took = cost.took();
  const CostOfGrids::Whole whole = cost.whole();
  return {{"sweeps", sweeps},
          {"runs", cost.runs()},
          {"attempts", took.attempts},
          {"attempts_of_unknown_length", took.of_unknown_length},
          {"core_hours", took.core_hours},
          {"gpu_hours", took.gpu_hours},
          {"all_seeds",
           {{"runs", whole.runs},
            {"runs_without", whole.not_begun},
            {"core_hours", whole.core_hours},
            {"gpu_hours", whole.gpu_hours}}}};
}

ViewOutput cost_of(const std::vector<std::string>& words, const Globals& globals) {
  const std::vector<std::string> sweeps =
      whole_sweeps(*require_store(globals), words.empty() ? std::vector<std::string>{"all"} : words);
  CostOfGrids cost;
  for (const std::string& sweep : sweeps) {
    const GridState state = look_up_sweep({sweep}, globals);
    if (!state.errors.empty()) throw UserError(state.errors.front());
    cost.add(state.results.rows, state.grid.seeds.size());
  }
  return {.text = globals.json ? json_text(json_of(cost, sweeps)) : cost.text() + "\n"};
}

}  // namespace

ViewMaker define_cost(CLI::App& app) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("what", *words, "sweeps (ids, names, grid files, last); default: all");
  return [words](const Globals& globals) { return cost_of(*words, globals); };
}

Action command_cost(CLI::App& app, const Globals& globals) { return printing(define_cost(app), globals); }

}  // namespace tearless::harness
