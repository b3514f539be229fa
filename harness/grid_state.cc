#include "harness/grid_state.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "harness/schedule/program.h"

namespace tearless::harness {

GridState look_up(const std::filesystem::path& file, const std::vector<std::string>& only, const Globals& globals) {
  GridState state;
  state.grid = load_grid(file);
  const Only chosen(state.grid, only);
  const Program program = Program::find(globals.engine, state.grid.program);
  state.plan = plan_runs(state.grid, chosen, program);
  state.errors = errors_of(state.grid, state.plan);
  state.store = Store::open_reader(Workspace(globals.workspace));
  const int64_t numerics = state.store ? program.probe().numerics : 0;
  for (const PlannedRun& run : state.plan) {
    RunResult result{.id = run.answer.id};
    if (state.store && run.answer.error.empty()) result = state.store->result_of(run.answer.id, numerics);
    if (run.answer.waiting) result.state = RunState::kWaitingData;
    state.results.push_back(std::move(result));
  }
  return state;
}

std::string workspace_option(const Globals& globals) {
  return globals.workspace == Globals().workspace ? "" : " --workspace " + globals.workspace.string();
}

std::string find_run(const Store* store, const std::string& prefix, const Globals& globals) {
  if (!store) {
    fail("there is no database in {} (--workspace); tearless run makes one", globals.workspace.string());
  }
  const std::vector<std::string> ids = store->ids_starting_with(prefix);
  if (ids.empty())
    fail("no run in {} starts with \"{}\"; tearless status lists them", globals.workspace.string(), prefix);
  if (ids.size() > 1) fail("\"{}\" could be any of {} runs: {}", prefix, ids.size(), fmt::join(ids, ", "));
  return ids.front();
}

}  // namespace tearless::harness
