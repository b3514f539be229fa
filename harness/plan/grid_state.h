// A grid's runs with their results from the store: the first step of the commands plan, table and explain. The runs are
// planned by the training program from the grid file, or read from a sweep as it was submitted. Changes nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/plan/globals.h"
#include "harness/plan/plan.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct GridState {
  Grid grid;
  std::vector<PlannedRun> plan;
  std::vector<RunResult> results;      // results[i] is of plan[i]; state waiting_data if its corpus is missing
  std::vector<std::string> errors;     // errors_of(grid, plan)
  std::unique_ptr<const Store> store;  // null if there is no database yet
};

/// The result of each planned run (Store::result_of()). `store` may be null. All of one snapshot of the database.
std::vector<RunResult> results_of(const std::vector<PlannedRun>& plan, const Store* store,
                                  std::optional<int64_t> numerics);

enum class WithoutProgram {
  kRefuse,    // UserError
  kUseSweep,  // as look_up_sweep() with a sweep of the same grid, and a line on standard error; UserError if none is
};

/// Loads a grid file, plans its runs with the training program, and reads their results. Prints a line on standard
/// error for each run whose folder has a result that is not in the database yet, and for each setting that keeps
/// results of earlier sweeps out of the grid (earlier_results.h). UserError for mistakes in the grid and for
/// inconsistent results.
GridState look_up(const std::filesystem::path& file, const std::vector<std::string>& only, const Globals& globals,
                  WithoutProgram without_program);

/// Reads a sweep as it was submitted, and the results of its runs: from the sweep's folder and the database alone.
/// Results are stale if their numerics are not those of the program that the sweep was submitted with. `sweep` is a
/// word that names one (selectors.h).
GridState look_up_sweep(const std::string& sweep, const std::vector<std::string>& only, const Globals& globals);

/// A run of a sweep as a run of the sweep's grid. UserError if the grid has no such point.
PlannedRun planned_run_of(const Grid& grid, const Sweep& sweep, const Run& run);

/// look_up() if a grid is named, look_up_sweep() if a sweep is. UserError for neither or both; `command` is for that
/// message.
GridState look_up_either(const std::string& grid, const std::string& sweep, const std::vector<std::string>& only,
                         const Globals& globals, std::string_view command);

/// " --workspace elsewhere", or "" for the default workspace. To be appended to commands in messages.
std::string workspace_option(const Globals& globals);

/// The only one of `ids`, which all start with `prefix`. UserError if there is none or more than one.
std::string only_run(const std::vector<std::string>& ids, const std::string& prefix, const Globals& globals);
/// The id in the store that starts with `prefix`. UserError if there is none or more than one.
std::string find_run(const Store& store, const std::string& prefix, const Globals& globals);

/// Like Store::open_reader(). UserError if nothing was run in the workspace.
std::unique_ptr<const Store> require_store(const Globals& globals);

}  // namespace tearless::harness
