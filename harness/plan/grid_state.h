// A grid's runs with their results from the store: the first step of the commands plan, table and explain. The runs are
// planned by the training program from the grid file, or read from a sweep as it was submitted. Changes nothing.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/console/globals.h"
#include "harness/grid/grid.h"
#include "harness/plan/plan.h"
#include "harness/results/result_set.h"
#include "harness/store/store.h"
#include "harness/views/views.h"

namespace tearless::harness {

struct GridState {
  Grid grid;
  std::vector<View> views;          // of the grid
  ResultSet results;                // a row for each run of the grid, derived ones too
  std::vector<std::string> errors;  // errors_of() the plan
};

/// A row for each run of a plan, without its result. Takes the runs out of the plan: there may be 200,000.
std::vector<Row> take_rows(std::vector<PlannedRun>& plan);

enum class WithoutProgram {
  kRefuse,    // UserError
  kUseSweep,  // as look_up_sweep() with a sweep of the same grid, and a line on standard error; UserError if none is
};

/// Loads a grid file, plans its runs with the training program, and reads their results. Prints a line on standard
/// error for each run whose folder has a result that is not in the database yet, and for each setting that keeps
/// results of earlier sweeps out of the grid (earlier_results.h). UserError for mistakes in the grid and for
/// inconsistent results. `set`: settings of the command line, as of load_grid().
GridState look_up(const std::filesystem::path& file, const std::vector<std::string>& only, const Globals& globals,
                  WithoutProgram without_program, const std::vector<std::string>& set = {});

/// As look_up() for the grids of a paper, in this order. Those that have the same training program are planned
/// together.
std::vector<GridState> look_up_all(const std::vector<std::filesystem::path>& files,
                                   const std::vector<std::string>& only, const Globals& globals,
                                   WithoutProgram without_program, const std::vector<std::string>& set = {});

/// Of a layout over a sweep: those of the one or of the other.
enum class LaidSeeds { kOfLayout, kOfSweep };

/// Reads a sweep as it was submitted, and the results of its runs: from the sweep's folder and the database alone.
/// Results are stale if their numerics are not those of the program that the sweep was submitted with. `words` name one
/// sweep (selectors.h). `layout`: a grid file whose views are laid over the sweep's runs (results/lay_over.h); empty:
/// those that it was submitted with.
GridState look_up_sweep(const std::vector<std::string>& words, const Globals& globals,
                        const std::filesystem::path& layout = {}, LaidSeeds seeds = LaidSeeds::kOfLayout);

/// The grid file among `words`, if it is there and all others are axis=label: the grid as it is now is meant then, and
/// otherwise sweeps as they were submitted.
std::optional<std::filesystem::path> grid_as_it_is_now(const std::vector<std::string>& words);

/// Prints a line on standard error for each grid file among `words` that is not there any more.
void report_missing_grids(const std::vector<std::string>& words);

/// The options that a command to type next must have, to mean the same workspace and training program:
/// " --workspace w --engine ./my_trainer", "" if neither is needed.
std::string options_again(const Globals& globals);

/// Like Store::open_reader(). UserError if nothing was run in the workspace.
std::unique_ptr<const Store> require_store(const Globals& globals);

}  // namespace tearless::harness
