// `tearless wait [SWEEP | RUN …]`: returns when all of them have ended.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/lock_file.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/plan/grid_state.h"
#include "harness/service/start.h"
#include "harness/service/stop_mark.h"
#include "harness/store/selectors.h"

namespace tearless::harness {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
constexpr int kRestPerLook = 20;  // in large workspaces: this many times as long as a look takes

struct Left {
  int64_t pending = 0;         // queued or running
  int64_t without_result = 0;  // neither done nor diverged
};

Left left_of(const Store& store, const Selection& chosen) {
  Left left;
  const auto count = [&](RunState state, int64_t runs) {
    if (state == RunState::kQueued || state == RunState::kRunning) left.pending += runs;
    if (state != RunState::kDone && state != RunState::kDiverged) left.without_result += runs;
  };
  for (const std::string& sweep : chosen.sweeps) {
    const std::optional<Sweep> record = store.sweep(sweep);
    if (!record) fail("sweep {} was deleted meanwhile", sweep);
    const bool active = record->state == SweepState::kActive;
    for (const auto& [state, runs] : store.counts_of(sweep)) {
      count(state, runs);
      if (!active && state == RunState::kQueued) left.pending -= runs;  // they will not be started
    }
  }
  for (const std::string& run : chosen.runs) count(store.known_run(run).state, 1);
  return left;
}

int wait(const std::vector<std::string>& words, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const Selection chosen = select_or_last(*require_store(globals), words);
  while (true) {
    const auto began = std::chrono::steady_clock::now();
    const bool served = LockFile::is_held(workspace.lock());
    // Opened for each look: another service may have another database, one that was rebuilt.
    const Left left = left_of(*require_store(globals), chosen);
    if (left.pending == 0) return left.without_result == 0 ? kOk : kSomethingFailed;
    if (!served && was_stopped(workspace)) {
      fail("{} have not ended, and the service of {} was stopped; to start one: tearless daemon --background{}",
           counted(left.pending, "run"), workspace.root().string(), workspace_option(globals));
    }
    if (!served) require_service(workspace, {.engine = globals.engine});  // the other one was killed
    const auto look = std::chrono::steady_clock::now() - began;
    std::this_thread::sleep_for(std::max<std::chrono::nanoseconds>(kBetweenLooks, kRestPerLook * look));
  }
}

}  // namespace

Action command_wait(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("what", *words,
                 "sweeps (ids, names, grid files, last, all) or runs (ids, places, states, axis=label); default: last");
  return [words, &globals] { return wait(*words, globals); };
}

}  // namespace tearless::harness
