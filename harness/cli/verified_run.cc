#include "harness/cli/verified_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/settings.h"
#include "harness/cli/grid_state.h"
#include "harness/grid/expand.h"
#include "harness/runs/verdict.h"
#include "harness/schedule/program.h"
#include "harness/store/frozen_grid.h"
#include "harness/store/program_copies.h"
#include "harness/store/sweep_directory.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// VALUE as TOML, or as a text where it is not TOML: max_updates=200, kind=scale_norm.
std::pair<std::string, nlohmann::json> setting_in(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail("--set {} is not KEY=VALUE, such as --set train.max_updates=200", text);
  }
  const std::string value = text.substr(equals + 1);
  try {
    const WrittenSettings read = parse_toml_settings("value = " + value, "--set " + text);
    if (read.values.size() == 1) return {text.substr(0, equals), read.values.at("value")};
  } catch (const UserError&) {
  }
  return {text.substr(0, equals), value};
}

// Has the training program make the run's settings again, with those of --set.
void change_settings(VerifiedRun& run, const Workspace& workspace, const std::vector<std::string>& changes) {
  const Sweep sweep = read_sweep(workspace, run.sweep.id);
  const Grid grid = frozen_grid(workspace, sweep.id);
  const auto request =
      std::find_if(sweep.runs.begin(), sweep.runs.end(), [&](const Run& one) { return one.id == run.id; });
  if (request == sweep.runs.end()) {
    fail("the folder of sweep {} does not name run {}; submit its grid again: tearless submit {}", sweep.id, run.id,
         sweep.grid_file);
  }
  RunSpec spec = materialise(grid, planned_run_of(grid, sweep, *request).point);
  std::vector<RunSpec> specs = {spec};
  for (const std::string& change : changes) {
    const auto [key, value] = setting_in(change);
    spec.settings[key] = value;
    spec.folders[key] = fs::current_path().string();
  }
  specs.push_back(std::move(spec));
  const fs::path program = fs::absolute(workspace.root() / run.sweep.program);
  const std::vector<CheckAnswer> answers = Program(program).check(specs.size(), [&](size_t i) { return specs[i]; });
  if (answers[0].run.id != run.id) {
    fail("the settings of run {} in sweep {} are of another run now: its data have changed, or it was run with --smoke",
         run.id, sweep.id);
  }
  const CheckAnswer& changed = answers[1];
  if (!changed.error.empty()) fail("--set {}: {}", fmt::join(changes, " --set "), changed.error);
  if (!changed.run.waiting_for.empty()) fail("--set {}: {}", fmt::join(changes, " --set "), changed.run.waiting_for);
  run.trained = changed.run;
}

}  // namespace

VerifiedRun verified_run(const Store& store, const Workspace& workspace, const std::string& id,
                         const std::vector<std::string>& changes) {
  const std::vector<std::string> sweeps = store.sweeps_of(id);
  if (sweeps.empty()) fail("run {} is in no sweep any more, so that its training program is not known", id);
  VerifiedRun run;
  run.id = id;
  run.sweep = *store.sweep(sweeps.back());
  run.trained = store.run_of(run.sweep.id, id);
  run.label = label_of(run.trained);
  const std::string fault = fault_of_program(workspace, fs::absolute(workspace.root() / run.sweep.program));
  if (!fault.empty()) fail("sweep {}: {}: tearless submit {}", run.sweep.id, fault, run.sweep.grid_file);
  const RunDirectory folder = workspace.run(id);
  const std::optional<Verdict> done = verdict_of_done(folder);
  if (!done || done->state == RunState::kFailed) {
    fail("run {}: {}; to see what is wrong and what to do: tearless verify", id,
         done ? done->reason : "its folder has no DONE");
  }
  run.trained.settings = read_file(folder.settings());
  run.trained.local = read_file(folder.local());
  if (!changes.empty()) change_settings(run, workspace, changes);
  return run;
}

}  // namespace tearless::harness
