#include "harness/plan/grid_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/print.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/archive/published.h"
#include "harness/folders/sweep_directory.h"
#include "harness/grid/expand.h"
#include "harness/grid/paper.h"
#include "harness/plan/earlier_results.h"
#include "harness/plan/program.h"
#include "harness/plan/score_names.h"
#include "harness/results/lay_over.h"
#include "harness/runs/launcher.h"
#include "harness/runs/verdict.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// True if the run's folder holds a result that the store lacks, and no living process is going to record it.
bool is_unrecorded(const Workspace& workspace, const RunResult& result) {
  if (result.id.empty() || (result.state && has_result(*result.state))) return false;
  const RunDirectory run = workspace.run(result.id);
  if (!fs::exists(run.done()) || is_alive(run)) return false;  // of most runs the first look is the only one
  const std::optional<Verdict> done = verdict_of_done(run);
  return done && has_result(done->state);
}

void report_unrecorded(const GridState& state, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  if (has_writer(workspace)) return;
  for (const Row& row : state.results.rows) {
    if (!is_unrecorded(workspace, row.result)) continue;
    notice(fmt::format("run {} has ended and is not in the database yet: tearless run {}{}", row.run.id,
                       state.grid.words(), options_again(globals)));
  }
}

void report_earlier_results_of(const GridState& state, const Globals& globals) {
  if (!state.results.store) return;
  std::vector<Run> not_started;
  for (const Row& row : state.results.rows) {
    if (!row.result.state && row.refusal.empty() && row.is_trained()) not_started.push_back(row.run);
  }
  report_earlier_results(*state.results.store, state.grid.file, not_started, globals);
}

// --- sweeps as they were submitted ---------------------------------------------------------------------------------

int64_t run_count_of(const Grid& grid) {
  int64_t cells = 0;
  for_each_cell(grid, [&](const Combination&, const Exclusion* excluded) { cells += !excluded; });
  return cells * static_cast<int64_t>(grid.seeds.size());
}

GridState state_of_sweep(Sweep sweep, Grid grid, std::unique_ptr<const Store> store,
                         const std::vector<std::string>& only, const Globals& globals,
                         std::optional<Grid> layout = std::nullopt) {
  std::vector<View> views = views_of(layout ? *layout : grid);
  const std::vector<Run> runs = std::exchange(sweep.runs, {});
  const auto head = std::make_shared<const Sweep>(std::move(sweep));
  GridState state{.grid = std::move(grid),
                  .views = std::move(views),
                  .results = {.store = std::move(store), .windows = head->windows},
                  .errors = {}};
  // The commands of notes are typed here, which need not be where it was submitted.
  std::error_code absent;
  const bool is_seen = fs::equivalent(state.grid.file, head->grid_file, absent);
  if (!is_seen && fs::exists(head->grid_file, absent)) state.grid.file = head->grid_file;
  std::vector<Row>& rows = state.results.rows;
  for (const Run& run : runs) {
    Row& row = rows.emplace_back(Row{.run = run, .sweep = head, .place = std::ssize(rows) + 1});
    row.derivation = derivation_of(run);
    row.run.waiting_for.clear();  // the database says what it waits for
  }
  set_trained(rows);
  const int64_t all = run_count_of(state.grid), has = std::ranges::count_if(rows, &Row::is_trained);
  std::erase_if(rows, [&, chosen = Only(state.grid, only)](const Row& row) {
    return !chosen.admits(row.run.coordinates, row.run.seed);
  });
  if (has < all && !head->policy.until_decided) {
    notice(fmt::format("sweep {} was submitted with {} of the grid's {}", head->id, has, counted(all, "run")));
  }
  if (layout) state.grid = lay_over(*std::move(layout), state.grid, head->id, rows);
  read_results(state.results.store.get(), rows);
  if (have_all_labels(state.grid, rows)) state.errors = errors_of_scores(state.grid, state.views, head->scores, rows);
  show_all_without_default(state.grid, head->scores, rows, state.views);
  report_unrecorded(state, globals);
  return state;
}

// Used in place of a plan of `grid`: among the sweeps whose grid has the same content the one with the most runs, the
// newest of several. `why` says that the training program is missing.
GridState state_of_same_grid(Grid grid, const std::vector<std::string>& only, const Globals& globals,
                             const std::string& why) {
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = Store::open_reader(workspace);
  std::optional<Sweep> best;
  for (const Sweep& candidate : store ? store->sweeps() : std::vector<Sweep>{}) {
    try {
      if (without_folders(frozen_grid(workspace, candidate.id).merged) != without_folders(grid.merged)) continue;
      Sweep sweep = read_sweep(workspace, candidate.id);
      if (!best || sweep.runs.size() > best->runs.size()) best = std::move(sweep);
    } catch (const UserError& damaged) {
      notice(fmt::format("skipped: {}", damaged.what()));
    }
  }
  if (!best) {
    fail("{}, or name a sweep: no sweep in {} is of {} as it and its base files are now", why,
         workspace.root().string(), grid.file.string());
  }
  notice(fmt::format("{}; what follows is sweep {} of {}, which is of the same grid", why, best->id,
                     local_time(best->submitted_at)));
  return state_of_sweep(*std::move(best), std::move(grid), std::move(store), only, globals);
}

}  // namespace

std::optional<fs::path> grid_as_it_is_now(const std::vector<std::string>& words) {
  std::optional<fs::path> grid;
  for (const std::string& word : words) {
    if (is_label_word(word)) continue;
    if (grid || !is_grid_word(word)) return std::nullopt;
    grid = word;
  }
  return grid && fs::exists(*grid) ? grid : std::nullopt;
}

void report_missing_grids(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!is_grid_word(word) || fs::exists(word)) continue;
    notice(fmt::format("there is no file {}; what follows is its newest sweep as it was submitted", word));
  }
}

std::vector<Row> take_rows(std::vector<PlannedRun>& plan) {
  std::vector<Row> rows;
  rows.reserve(plan.size());
  for (PlannedRun& planned : plan) {
    rows.push_back(
        {.run = std::move(planned.answer.run), .derivation = planned.derivation, .refusal = planned.answer.error});
  }
  set_trained(rows);
  return rows;
}

std::vector<GridState> look_up_all(const std::vector<fs::path>& files, const std::vector<std::string>& only,
                                   const Globals& globals, WithoutProgram without_program,
                                   const std::vector<std::string>& set) {
  std::vector<GridState> states(files.size());
  std::map<fs::path, std::vector<size_t>> of_program;  // training program → the grids whose runs it plans
  for (size_t i = 0; i < files.size(); ++i) {
    Grid& grid = states[i].grid = load_grid(files[i], set);
    states[i].views = views_of(grid);
    try {
      of_program[Program::find(globals.engine, grid.program).path()].push_back(i);
    } catch (const UserError& missing) {
      if (without_program == WithoutProgram::kRefuse || !globals.engine.empty()) throw;
      states[i] = state_of_same_grid(std::move(grid), only, globals, missing.what());
    }
  }
  for (const auto& [path, grids] : of_program) {
    const Program program(path);
    std::vector<PlannedGrid> asked;
    for (const size_t i : grids) asked.push_back({&states[i].grid, Only(states[i].grid, only)});
    std::vector<std::vector<PlannedRun>> plans = plan_grids(asked, program);
    for (size_t k = 0; k < grids.size(); ++k) {
      GridState& state = states[grids[k]];
      state.errors = errors_of(state.grid, plans[k]);
      state.results.windows = windows_of(plans[k]);
      state.results.rows = take_rows(plans[k]);
      state.results.store = Store::open_reader(Workspace(globals.workspace));
      read_results(state.results.store.get(), state.results.rows, program.now());
      if (state.errors.empty()) state.errors = errors_of_names(state.grid, state.views, plans[k], state.results.rows);
      if (state.errors.empty()) state.errors = errors_of_parts(state.grid, plans[k], state.results.rows);
      show_all_without_default(state.grid, scores_of(plans[k]), state.results.rows, state.views);
      report_unrecorded(state, globals);
      report_earlier_results_of(state, globals);
    }
  }
  return states;
}

GridState look_up(const fs::path& file, const std::vector<std::string>& only, const Globals& globals,
                  WithoutProgram without_program, const std::vector<std::string>& set) {
  return std::move(look_up_all({file}, only, globals, without_program, set).front());
}

GridState look_up_sweep(const std::vector<std::string>& words, const Globals& globals, const fs::path& layout,
                        LaidSeeds seeds) {
  if (!layout.empty() && load_paper(layout)) {
    fail("{} lists grids; name the one that is laid over the sweep", layout.string());
  }
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = require_store(globals);
  const std::string id = one_sweep(*store, words);
  report_missing_grids(words);
  if (!fs::exists(workspace.sweep(id))) {
    fail("the folder {} of the sweep is missing; to write it again: tearless submit {}{}", workspace.sweep(id).string(),
         shell_word(store->sweep(id)->grid_file), options_again(globals));
  }
  Grid grid = frozen_grid(workspace, id);
  std::optional<Grid> laid;
  if (!layout.empty()) laid = load_layout(layout, grid);
  if (laid && seeds == LaidSeeds::kOfSweep) laid->seeds = grid.seeds;
  return state_of_sweep(read_sweep(workspace, id), std::move(grid), std::move(store), {}, globals, std::move(laid));
}

std::string options_again(const Globals& globals) {
  const std::string engine = globals.engine.empty() ? "" : " --engine " + shell_word(globals.engine.string());
  return workspace_option(globals.workspace) + engine;
}

std::unique_ptr<const Store> require_store(const Globals& globals) {
  std::unique_ptr<const Store> store = Store::open_reader(Workspace(globals.workspace));
  if (!store) fail("there is no database in {} (--workspace); `tearless run` creates it", globals.workspace.string());
  return store;
}

}  // namespace tearless::harness
