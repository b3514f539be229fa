// A grid's runs with their results from the store: the first step of the commands plan, table and explain. Changes
// nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/commands.h"
#include "harness/grid/grid.h"
#include "harness/schedule/plan.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct GridState {
  Grid grid;
  std::vector<PlannedRun> plan;
  std::vector<RunResult> results;      // results[i] is of plan[i]; state waiting_data if its corpus is missing
  std::vector<std::string> errors;     // errors_of(grid, plan)
  std::unique_ptr<const Store> store;  // null if there is no database yet
};

/// The result of each planned run, checked against its folder (store/agreement.h). `store` may be null. `numerics` is
/// the current program's; results of other numerics are marked stale.
std::vector<RunResult> results_of(const std::vector<PlannedRun>& plan, const Store* store, const Workspace& workspace,
                                  int64_t numerics);

/// Loads a grid file, plans its runs with the training program, and reads their results. Prints a line on standard
/// error for each run whose folder has a result that is not in the database yet. UserError for mistakes in the grid and
/// for inconsistent results.
GridState look_up(const std::filesystem::path& file, const std::vector<std::string>& only, const Globals& globals);

/// " --workspace elsewhere", or "" for the default workspace. To be appended to commands in messages.
std::string workspace_option(const Globals& globals);

/// The only one of `ids`, which all start with `prefix`. UserError if there is none or more than one.
std::string only_run(const std::vector<std::string>& ids, const std::string& prefix, const Globals& globals);
/// The id in the store that starts with `prefix`. UserError if there is none or more than one.
std::string find_run(const Store& store, const std::string& prefix, const Globals& globals);

/// Like Store::open_reader(). UserError if nothing was run in the workspace.
std::unique_ptr<const Store> require_store(const Globals& globals);

}  // namespace tearless::harness
