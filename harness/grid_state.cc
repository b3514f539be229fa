#include "harness/grid_state.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "harness/output.h"
#include "harness/schedule/program.h"
#include "harness/store/agreement.h"

namespace tearless::harness {

std::vector<RunResult> results_of(const std::vector<PlannedRun>& plan, const Store* store, const Workspace& workspace,
                                  int64_t numerics) {
  std::vector<RunResult> results;
  for (const PlannedRun& run : plan) {
    RunResult result{.id = run.answer.id};
    if (store && run.answer.error.empty()) result = checked_result(*store, workspace, run.answer.id, numerics);
    if (run.answer.waiting) result.state = RunState::kWaitingData;
    results.push_back(std::move(result));
  }
  return results;
}

GridState look_up(const std::filesystem::path& file, const std::vector<std::string>& only, const Globals& globals) {
  GridState state;
  state.grid = load_grid(file);
  const Only chosen(state.grid, only);
  const Program program = Program::find(globals.engine, state.grid.program);
  state.plan = plan_runs(state.grid, chosen, program);
  state.errors = errors_of(state.grid, state.plan);
  state.store = Store::open_reader(Workspace(globals.workspace));
  const int64_t numerics = state.store ? program.probe().numerics : 0;
  state.results = results_of(state.plan, state.store.get(), Workspace(globals.workspace), numerics);
  for (const RunResult& result : state.results) {
    if (!is_unrecorded(Workspace(globals.workspace), result)) continue;
    print_to(stderr, "run {} has ended and is not in the database yet: tearless run {}{}\n", result.id, file.string(),
             workspace_option(globals));
  }
  return state;
}

std::string workspace_option(const Globals& globals) {
  return globals.workspace == Globals().workspace ? "" : " --workspace " + globals.workspace.string();
}

std::string only_run(const std::vector<std::string>& ids, const std::string& prefix, const Globals& globals) {
  if (ids.empty())
    fail("no run in {} starts with \"{}\"; tearless status lists them", globals.workspace.string(), prefix);
  if (ids.size() > 1) fail("\"{}\" could be any of {} runs: {}", prefix, ids.size(), fmt::join(ids, ", "));
  return ids.front();
}

std::string find_run(const Store& store, const std::string& prefix, const Globals& globals) {
  return only_run(store.ids_starting_with(prefix), prefix, globals);
}

std::unique_ptr<const Store> require_store(const Globals& globals) {
  std::unique_ptr<const Store> store = Store::open_reader(Workspace(globals.workspace));
  if (!store) fail("there is no database in {} (--workspace); `tearless run` creates it", globals.workspace.string());
  return store;
}

}  // namespace tearless::harness
