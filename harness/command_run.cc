// `tearless run GRID`: trains the runs of a grid that have no result yet, in the foreground.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "base/words.h"
#include "harness/commands.h"
#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/grid_state.h"
#include "harness/output.h"
#include "harness/schedule/foreground.h"
#include "harness/schedule/plan.h"
#include "harness/schedule/program.h"
#include "harness/store/rebuild.h"
#include "harness/store/store.h"
#include "harness/store/sweep_directory.h"

namespace tearless::harness {
namespace fs = std::filesystem;

namespace {

constexpr size_t kMostListed = 10;

struct RunOptions {
  std::string grid;
  std::vector<std::string> only;
  bool smoke = false;
  bool retry = false;
  int jobs = 0;
  int runs_per_gpu = 1;
  double stall_minutes = 30;
  int grace_seconds = 30;
};

// Seconds after which a supervisor that was asked to stop is killed. It kills its program after the grace time, so it
// is given half as much again, at least 2 s.
double give_up_after(int grace_seconds) { return grace_seconds + std::max(2.0, grace_seconds / 2.0); }

nlohmann::ordered_json coordinates_of(const Grid& grid, const PlannedRun& run) {
  auto coordinates = nlohmann::ordered_json::object();
  for (const Axis& axis : grid.axes) coordinates[axis.name] = run.coordinates.at(axis.name);
  return coordinates;
}

Sweep sweep_of(const Grid& grid, const std::vector<PlannedRun>& plan, const std::string& grid_text) {
  Sweep sweep{.id = "",
              .title = grid.title,
              .grid_file = fs::absolute(grid.file).string(),
              .submitted_at = utc_now(),
              .runs = {}};
  for (const PlannedRun& run : plan) {
    sweep.runs.push_back({.id = run.answer.id,
                          .canonical = run.answer.waiting ? "" : run.answer.canonical,
                          .waiting_for = run.answer.waiting ? run.answer.waiting_for : "",
                          .parameters = run.answer.parameters,
                          .memory_bytes = run.answer.memory_bytes,
                          .updates = run.answer.updates,
                          .coordinates = coordinates_of(grid, run),
                          .seed = run.point.seed});
  }
  sweep.id = sweep_id(sweep, grid_text);
  return sweep;
}

std::vector<Job> jobs_of(const Grid& grid, const std::vector<PlannedRun>& plan) {
  std::vector<Job> jobs;
  for (const PlannedRun& run : plan) {
    if (run.answer.waiting) continue;
    jobs.push_back({.id = run.answer.id,
                    .canonical = run.answer.canonical,
                    .local = run.answer.local,
                    .label = run_label(coordinates_of(grid, run), run.point.seed),
                    .updates = run.answer.updates,
                    .device = run.answer.device,
                    .threads = run.answer.threads});
  }
  return jobs;
}

// Prints one line for each reason, because a mistake in the grid or a fault of the machine usually affects many runs.
// `failed` maps runs to reasons.
void print_failures(const std::map<std::string, std::string>& failed, const std::string& all_of_them) {
  std::map<std::string, std::vector<std::string>> runs_of;  // reason → runs
  for (const auto& [id, reason] : failed) runs_of[reason].push_back(id);
  size_t listed = 0;
  for (const auto& [reason, runs] : runs_of) {
    if (++listed > kMostListed) continue;
    const std::string others = runs.size() > 1 ? fmt::format(" and {} more", runs.size() - 1) : "";
    print("  {}{}: {}\n", runs.front(), others, reason);
  }
  if (listed > kMostListed) print("  … and {} more reasons ({})\n", listed - kMostListed, all_of_them);
}

// Prints the state of the sweep, the failures with their reasons, and the next command. Returns the exit code.
int conclude(const Store& store, const Sweep& sweep, const Globals& globals, const RunOptions& options,
             const Ending& ending) {
  // With --smoke the runs are in another workspace, which commands that read must name. `run --smoke` finds it itself.
  Globals seen = globals;
  if (options.smoke) seen.workspace = Workspace(globals.workspace).smoke().root();
  const std::string place = workspace_option(seen);
  const std::string again =
      fmt::format("tearless run {}{}{}", options.grid, workspace_option(globals), options.smoke ? " --smoke" : "");
  std::map<RunState, int64_t> counts;
  std::map<std::string, std::string> failed;  // run → reason
  std::set<std::string> waiting_for;
  for (const RunRecord& run : store.runs_of(sweep.id)) {
    ++counts[run.state];
    if (run.state == RunState::kFailed || run.state == RunState::kHeld) failed.emplace(run.id, run.reason);
    if (run.state == RunState::kWaitingData) waiting_for.insert(run.reason);
  }
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(fmt::format("{} {}", count, name_of(state)));
  print("{}: {}\n", counted(static_cast<int64_t>(sweep.runs.size()), "run"), fmt::join(parts, ", "));

  print_failures(failed, fmt::format("tearless status {}{}", options.grid, place));
  for (const std::string& sentence : waiting_for) print("  waiting for data: {}\n", sentence);

  if (ending.interrupted) {
    print("Interrupted; nothing is lost. To continue: {}\n", again);
    return kInterrupted;
  }
  if (!ending.paused.empty()) {
    print("Ended early: {}. To continue: {}\n", ending.paused, again);
    return kSomethingFailed;
  }
  if (!failed.empty()) {
    print("To see why: tearless log {}{}. To try failed runs again: {} --retry\n", failed.begin()->first, place, again);
  }
  if (!options.smoke && counts[RunState::kDone] > 0) print("Next: tearless table {}{}\n", options.grid, place);
  const bool all_ended =
      counts[RunState::kDone] + counts[RunState::kDiverged] == static_cast<int64_t>(sweep.runs.size());
  return all_ended ? kOk : kSomethingFailed;
}

// Recreates the database if there are runs but no database. Otherwise finished runs would be trained again, and running
// attempts would not be found.
void make_good_a_lost_database(const Workspace& workspace) {
  std::error_code absent;
  if (fs::exists(workspace.database()) ||
      fs::directory_iterator(workspace.runs(), absent) == fs::directory_iterator()) {
    return;
  }
  const RebuildReport report = rebuild(workspace);
  fmt::print("{} was missing: rebuilt from {} run folders\n", workspace.database().string(), report.runs);
  for (const std::string& sentence : report.passed_over) fmt::print(stderr, "skipped: {}\n", sentence);
}

int run(const RunOptions& options, const Globals& globals) {
  const Grid grid = load_grid(options.grid);
  const std::string grid_text = read_file(grid.file);
  const Program program = Program::find(globals.engine, grid.program);
  const std::vector<PlannedRun> plan = plan_runs(grid, Only(grid, options.only), program, options.smoke);
  if (const std::vector<std::string> errors = errors_of(grid, plan); !errors.empty()) {
    fail("{}\nNothing was started: correct the grid first", fmt::join(errors, "\n"));
  }

  const Workspace workspace = options.smoke ? Workspace(globals.workspace).smoke() : Workspace(globals.workspace);
  make_good_a_lost_database(workspace);
  const std::unique_ptr<Store> store = Store::open_writer(workspace);
  const Sweep sweep = sweep_of(grid, plan, grid_text);
  freeze_sweep(workspace, sweep, grid_text);
  store->submit(sweep);
  log_event(workspace, sweep.id, "submitted");

  const Foreground foreground{.workspace = workspace,
                              .program = program,
                              .sweep = sweep.id,
                              .jobs = options.jobs,
                              .runs_per_gpu = options.runs_per_gpu,
                              .grace_seconds = options.grace_seconds,
                              .options = {.stall_seconds = options.stall_minutes * 60,
                                          .give_up_seconds = give_up_after(options.grace_seconds),
                                          .retry_failed = options.retry}};
  const Ending ending = run_in_foreground(foreground, *store, jobs_of(grid, plan));
  log_event(workspace, sweep.id, "left");
  return conclude(*store, sweep, globals, options, ending);
}

}  // namespace

Action command_run(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<RunOptions>();
  app.add_option("grid", options->grid, "the grid file")->required();
  app.add_option("--only", options->only, "axis=label: these runs only (repeat for more labels and axes; seed=N too)");
  app.add_flag("--smoke", options->smoke,
               "train every run for a few updates only, to check that the grid works (in WORKSPACE/smoke)");
  app.add_option("--jobs", options->jobs,
                 "runs at the same time on the CPU (default: as many as the cores allow for their threads)")
      ->check(CLI::PositiveNumber);
  app.add_option("--runs-per-gpu", options->runs_per_gpu,
                 "runs at the same time on each GPU; more than 1 pays for small models (docs/speed.md); results do not "
                 "depend on it")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--retry", options->retry, "try failed runs again");
  app.add_option("--stall-timeout", options->stall_minutes,
                 "minutes without new output or metrics after which a run is stopped (0: never)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--grace", options->grace_seconds,
                 "seconds that a run has to write a checkpoint and exit when it is asked to stop; then it is killed")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  return [options, &globals] { return run(*options, globals); };
}

}  // namespace tearless::harness
