// `tearless watch [SWEEP]`: shows what becomes of a sweep until it ends. Changes nothing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/sweep_watch.h"
#include "harness/plan/grid_state.h"
#include "harness/selection/selectors.h"

namespace tearless::harness {
namespace {

int watch(const std::vector<std::string>& words, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  std::unique_ptr<const Store> store = require_store(globals);
  const Sweep sweep = *store->sweep(one_sweep(*store, words));
  const std::vector<RunRecord> records = store->runs_of(sweep.id);
  store.reset();  // another service may have another database, one that was rebuilt
  print("{}  {}\n", sweep.id, sweep.name);
  const WatchEnd end =
      SweepWatch(workspace, sweep.id, {}, sweep.policy, {records.begin(), records.end()}, std::nullopt).follow();
  const StateCounts counts = print_outcome(*require_store(globals), sweep.id);
  const std::string place = options_again(globals);
  if (end.interrupted) {
    print(
        "The watching has ended, the sweep continues. To see it: tearless watch {0}{1}. To stop it: tearless pause "
        "{0}{1}\n",
        shell_word(sweep.id), place);
    return kInterrupted;
  }
  if (require_store(globals)->sweep(sweep.id)->state == SweepState::kCancelled) {
    print("It was cancelled. To train what is left: tearless run {}{}\n", shell_word(sweep.grid_file), place);
  } else if (!end.paused.empty()) {
    print("It stands still: {}. To continue: tearless resume {}{}\n", end.paused, shell_word(sweep.id), place);
  }
  const bool all_have_results = std::all_of(
      counts.begin(), counts.end(), [](const auto& entry) { return has_result(entry.first) || entry.second == 0; });
  return all_have_results ? kOk : kSomethingFailed;
}

}  // namespace

Action command_watch(CLI::App& app, const Globals& globals) {
  const auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("what", *words, "a sweep: its id, name, grid file, or last (the default)");
  return [words, &globals] { return watch(*words, globals); };
}

}  // namespace tearless::harness
