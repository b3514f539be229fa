#include "harness/plan/grid_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/grid/expand.h"
#include "harness/plan/earlier_results.h"
#include "harness/plan/program.h"
#include "harness/runs/launcher.h"
#include "harness/runs/verdict.h"
#include "harness/store/selectors.h"
#include "harness/store/sweep_directory.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// True if the run's folder holds a result that the store lacks, and no living process is going to record it.
bool is_unrecorded(const Workspace& workspace, const RunResult& result) {
  const RunDirectory run = workspace.run(result.id);
  if (result.id.empty() || (result.state && has_result(*result.state))) return false;
  if (has_writer(workspace) || is_alive(run)) return false;
  const std::optional<Verdict> done = verdict_of_done(run);
  return done && has_result(done->state);
}

void report_unrecorded(const GridState& state, const Globals& globals) {
  for (const RunResult& result : state.results) {
    if (!is_unrecorded(Workspace(globals.workspace), result)) continue;
    notice(fmt::format("run {} has ended and is not in the database yet: tearless run {}{}", result.id,
                       shell_word(state.grid.file.string()), workspace_option(globals)));
  }
}

void report_earlier_results_of(const GridState& state, const Globals& globals) {
  if (!state.store) return;
  std::vector<Run> not_started;
  for (size_t i = 0; i < state.plan.size(); ++i) {
    const PlannedRun& run = state.plan[i];
    if (state.results[i].state || !run.answer.error.empty() || !run.decoding.empty()) continue;
    not_started.push_back(run.answer.run);
  }
  report_earlier_results(*state.store, state.grid.file, not_started, globals);
}

// --- sweeps as they were submitted ---------------------------------------------------------------------------------

uint32_t point_labelled(const Axis& axis, const Sweep& sweep, const std::string& label) {
  const auto point = std::find_if(axis.points.begin(), axis.points.end(),
                                  [&](const AxisPoint& candidate) { return candidate.label == label; });
  if (point == axis.points.end()) {
    fail(
        "sweep {}: its runs.jsonl has the label \"{}\" of the axis {}, its merged.toml does not; submit its grid again",
        sweep.id, label, axis.name);
  }
  return static_cast<uint32_t>(point - axis.points.begin());
}

int64_t run_count_of(const Grid& grid) {
  int64_t cells = 0;
  for_each_cell(grid, [&](const GridPoint&, const Exclusion* excluded) { cells += !excluded; });
  return cells * static_cast<int64_t>(grid.seeds.size());
}

GridState state_of_sweep(const Sweep& sweep, Grid grid, std::unique_ptr<const Store> store,
                         const std::vector<std::string>& only, const Globals& globals) {
  GridState state;
  state.grid = std::move(grid);
  state.store = std::move(store);
  const Only chosen(state.grid, only);
  for (const Run& run : sweep.runs) {
    PlannedRun one = planned_run_of(state.grid, sweep, run);
    if (chosen.admits(one.point)) state.plan.push_back(std::move(one));
  }
  state.results = results_of(state.plan, state.store.get(), numerics_of(sweep));
  for (size_t i = 0; i < state.plan.size(); ++i) {
    if (state.results[i].state == RunState::kWaitingData)
      state.plan[i].answer.run.waiting_for = state.results[i].reason;
  }
  const int64_t all = run_count_of(state.grid);
  const auto has = std::ranges::count_if(
      sweep.runs, [](const Run& run) { return label_on(run.coordinates, kDecodingLabel).empty(); });
  if (has < all) {
    notice(fmt::format("sweep {} was submitted with {} of the grid's {}", sweep.id, has, counted(all, "run")));
  }
  report_unrecorded(state, globals);
  return state;
}

// Instead of planning `grid`: the sweep with the most runs of those whose grid has the same content, the newest of
// several. `why` says that the training program is missing.
GridState state_of_same_grid(Grid grid, const std::vector<std::string>& only, const Globals& globals,
                             const std::string& why) {
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = Store::open_reader(workspace);
  std::optional<Sweep> best;
  for (const Sweep& candidate : store ? store->sweeps() : std::vector<Sweep>{}) {
    try {
      if (frozen_grid(workspace, candidate.id).merged != grid.merged) continue;
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
  notice(
      fmt::format("{}; what follows is sweep {} of {}, which is of the same grid", why, best->id, best->submitted_at));
  return state_of_sweep(*best, std::move(grid), std::move(store), only, globals);
}

}  // namespace

std::optional<int64_t> numerics_of(const Sweep& sweep) {
  return sweep.stamp.contains("numerics") ? std::optional(sweep.stamp.at("numerics").get<int64_t>()) : std::nullopt;
}

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

PlannedRun planned_run_of(const Grid& grid, const Sweep& sweep, const Run& run) {
  PlannedRun planned{.point = {.index = {}, .seed = run.seed},
                     .answer = {.error = "", .key = "", .run = run},
                     .decoding = label_on(run.coordinates, kDecodingLabel)};
  planned.answer.run.waiting_for.clear();  // the database says what it waits for
  for (const Axis& axis : grid.axes) {
    planned.point.index.push_back(point_labelled(axis, sweep, label_on(run.coordinates, axis.name)));
  }
  return planned;
}

std::vector<RunResult> results_of(const std::vector<PlannedRun>& plan, const Store* store,
                                  std::optional<int64_t> numerics) {
  std::vector<RunResult> results;
  const auto read = [&] {
    for (const PlannedRun& run : plan) {
      const std::string& id = run.answer.run.id;
      RunResult result{.id = id};
      if (store && run.answer.error.empty()) result = store->result_of(id, numerics);
      if (!run.answer.run.waiting_for.empty()) result.state = RunState::kWaitingData;
      results.push_back(std::move(result));
    }
  };
  store ? store->in_snapshot(read) : read();
  return results;
}

std::vector<TrainedRun> trained_runs(const GridState& state) {
  std::vector<TrainedRun> trained;
  std::map<std::pair<std::vector<uint32_t>, int64_t>, size_t> places;
  for (size_t i = 0; i < state.plan.size(); ++i) {
    const PlannedRun& run = state.plan[i];
    if (!run.decoding.empty()) continue;
    places[{run.point.index, run.point.seed}] = trained.size();
    trained.push_back({&run, state.results[i]});
  }
  for (size_t i = 0; i < state.plan.size(); ++i) {
    const PlannedRun& run = state.plan[i];
    if (run.decoding.empty()) continue;
    const auto of = places.find({run.point.index, run.point.seed});
    if (of == places.end()) continue;
    RunResult& derived = trained[of->second].result.derived.emplace_back(state.results[i]);
    derived.decoding = run.decoding;
  }
  return trained;
}

GridState look_up(const std::filesystem::path& file, const std::vector<std::string>& only, const Globals& globals,
                  WithoutProgram without_program) {
  GridState state;
  state.grid = load_grid(file);
  const Only chosen(state.grid, only);
  std::optional<Program> program;
  try {
    program = Program::find(globals.engine, state.grid.program);
  } catch (const UserError& missing) {
    if (without_program == WithoutProgram::kRefuse || !globals.engine.empty()) throw;
    return state_of_same_grid(std::move(state.grid), only, globals, missing.what());
  }
  state.plan = plan_runs(state.grid, chosen, *program);
  state.errors = errors_of(state.grid, state.plan);
  state.store = Store::open_reader(Workspace(globals.workspace));
  const int64_t numerics = state.store ? program->probe().numerics : 0;
  state.results = results_of(state.plan, state.store.get(), numerics);
  report_unrecorded(state, globals);
  report_earlier_results_of(state, globals);
  return state;
}

GridState look_up_sweep(const std::vector<std::string>& words, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = require_store(globals);
  const std::string id = one_sweep(*store, words);
  report_missing_grids(words);
  if (!fs::exists(workspace.sweep(id))) {
    fail("the folder {} of the sweep is missing; to write it again: tearless submit {}{}", workspace.sweep(id).string(),
         shell_word(store->sweep(id)->grid_file), workspace_option(globals));
  }
  return state_of_sweep(read_sweep(workspace, id), frozen_grid(workspace, id), std::move(store), {}, globals);
}

std::string workspace_option(const Globals& globals) { return workspace_option(globals.workspace); }

std::unique_ptr<const Store> require_store(const Globals& globals) {
  std::unique_ptr<const Store> store = Store::open_reader(Workspace(globals.workspace));
  if (!store) fail("there is no database in {} (--workspace); `tearless run` creates it", globals.workspace.string());
  return store;
}

}  // namespace tearless::harness
