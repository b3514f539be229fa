// `tearless wait [SWEEP | RUN …]`: returns when all of them have ended.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/lock_file.h"
#include "harness/cli/control.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/output.h"
#include "harness/cli/selectors.h"
#include "harness/commands/commands.h"

namespace tearless::harness {
namespace {

constexpr int kBetweenLooks = 500;  // milliseconds

struct Left {
  int64_t pending = 0;         // queued or running
  int64_t alive = 0;           // attempts
  int64_t without_result = 0;  // neither done nor diverged
};

Left left_of(const Store& store, const Workspace& workspace, const Selection& chosen) {
  Left left;
  const auto count = [&](const std::string& id, RunState state) {
    left.pending += state == RunState::kQueued || state == RunState::kRunning;
    left.alive += state == RunState::kRunning && LockFile::is_held(workspace.run(id).lock());
    left.without_result += state != RunState::kDone && state != RunState::kDiverged;
  };
  for (const std::string& sweep : chosen.sweeps) {
    const bool active = store.sweep(sweep)->state == SweepState::kActive;
    for (const JobRecord& job : store.jobs_of(sweep, /*pending_only=*/false)) {
      count(job.id, job.state);
      if (!active && job.state == RunState::kQueued) --left.pending;  // it will not be started
    }
  }
  for (const std::string& run : chosen.runs) count(run, store.run(run)->state);
  return left;
}

int wait(const std::vector<std::string>& words, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const std::unique_ptr<const Store> store = require_store(globals);
  const Selection chosen = select_or_last(*store, words);
  while (true) {
    const bool served = LockFile::is_held(workspace.lock());
    const Left left = left_of(*store, workspace, chosen);
    if (left.pending == 0) return left.without_result == 0 ? kOk : kSomethingFailed;
    if (!served && left.alive == 0) {  // if one lives, its service may be about to start again
      fail("{} runs have not ended, and no tearless works in {}; to start one: tearless daemon --background",
           left.pending, workspace.root().string());
    }
    ::poll(nullptr, 0, kBetweenLooks);
  }
}

}  // namespace

Action command_wait(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("what", *words, "sweeps (ids, grid files, last, all) or runs (default: last)");
  return [words, &globals] { return wait(*words, globals); };
}

}  // namespace tearless::harness
