// The commands that change what a service does: pause, resume, cancel, hold, release, retry, priority, stop. All of
// them are idempotent. Without a service they are carried out on the workspace itself.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/words.h"
#include "harness/cli/control.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/output.h"
#include "harness/cli/selectors.h"
#include "harness/commands/commands.h"
#include "harness/service/client.h"
#include "harness/service/facts.h"

namespace tearless::harness {
namespace {

enum class Takes { kSweeps, kRuns, kBoth };

struct ControlOptions {
  std::vector<std::string> words;
  int64_t priority = 0;
};

// The runs of the sweeps, for a verb that takes runs only.
std::vector<std::string> runs_in(const Store& store, const std::vector<std::string>& sweeps) {
  std::vector<std::string> runs;
  for (const std::string& sweep : sweeps) {
    for (const RunRecord& run : store.runs_of(sweep)) runs.push_back(run.id);
  }
  std::sort(runs.begin(), runs.end());
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  return runs;
}

// What a run is that a verb cannot be meant for.
std::string what_it_is(const Store& store, const std::string& id) {
  const std::optional<RunRecord> run = store.run(id);
  if (!run) return "was deleted meanwhile";
  if (store.sweeps_of(id).empty()) return "is in no sweep any more; submit its grid again";
  return fmt::format("is {}", name_of(run->state));
}

int control(Verb verb, Takes takes, const ControlOptions& options, const Globals& globals) {
  const std::unique_ptr<const Store> store = require_store(globals);
  Selection chosen = select_or_last(*store, options.words);
  if (takes == Takes::kSweeps && !chosen.runs.empty()) {
    fail("{} takes sweeps, not runs: tearless {} SWEEP", name_of(verb), name_of(verb));
  }
  if (takes == Takes::kRuns && !chosen.sweeps.empty()) {
    // A verb for the runs of a whole sweep means those of its runs that the verb can be meant for.
    chosen.runs = runs_in(*store, chosen.sweeps);
    std::erase_if(chosen.runs, [&](const std::string& id) {
      const RunState state = store->known_run(id).state;
      return verb == Verb::kHold ? is_inactive(state) : state != RunState::kHeld;
    });
    chosen.sweeps.clear();
  }
  const Request request{.verb = verb, .sweeps = chosen.sweeps, .runs = chosen.runs, .priority = options.priority};
  const bool nothing = chosen.sweeps.empty() && chosen.runs.empty();
  const nlohmann::json answer =
      nothing ? nlohmann::json{{"done", nlohmann::json::array()}, {"refused", nlohmann::json::array()}}
              : carry_out(request, Workspace(globals.workspace));
  if (globals.json) {
    print_json(answer);
    return answer.at("refused").empty() ? kOk : kSomethingFailed;
  }
  if (nothing) print("Nothing to do.\n");
  const auto list = [](const nlohmann::json& ids) {
    const std::vector<std::string> names = ids;
    if (names.size() <= 3) return fmt::format("{}", fmt::join(names, ", "));
    return fmt::format("{} and {} more", names.front(), names.size() - 1);
  };
  if (!answer.at("done").empty()) print("{}: {}\n", name_of(verb), list(answer.at("done")));
  for (const std::string id : answer.at("refused")) {
    notice(fmt::format("{} cannot be done: run {} {}", name_of(verb), id, what_it_is(*store, id)));
  }
  return answer.at("refused").empty() ? kOk : kSomethingFailed;
}

Action define(CLI::App& app, const Globals& globals, Verb verb, Takes takes) {
  const auto options = std::make_shared<ControlOptions>();
  const char* what =
      takes == Takes::kSweeps ? "sweeps: ids, grid files, last, all (default: last)"
      : takes == Takes::kRuns
          ? "runs: ids, places (3-7), states, axis=label, of the newest sweep or of a sweep that is named"
          : "sweeps (ids, grid files, last, all) or runs (ids, places, states, axis=label)";
  if (verb == Verb::kPriority) {
    app.add_option("priority", options->priority, "a whole number; sweeps of higher priority go first")->required();
  }
  auto* words = app.add_option("what", options->words, what);
  if (takes != Takes::kSweeps) words->required();
  return [verb, takes, options, &globals] { return control(verb, takes, *options, globals); };
}

int stop(bool now, const Globals& globals) {
  const Workspace workspace(globals.workspace);
  const std::optional<nlohmann::json> facts = ask_service(workspace, {.verb = Verb::kStatus});
  if (!facts) {
    print("Nothing to stop: no tearless works in {}.\n", workspace.root().string());
    return kOk;
  }
  const int64_t pid = service_facts_from(*facts).pid;
  ask_service(workspace, {.verb = Verb::kStop, .now = now});
  if (now) {
    print("Process {} ends when its runs have written their checkpoints.\n", pid);
  } else {
    print("Process {} ends; its runs continue, and the next tearless daemon or run adopts them.\n", pid);
  }
  return kOk;
}

}  // namespace

Action command_pause(CLI::App& app, const Globals& globals) {
  return define(app, globals, Verb::kPause, Takes::kSweeps);
}
Action command_resume(CLI::App& app, const Globals& globals) {
  return define(app, globals, Verb::kResume, Takes::kSweeps);
}
Action command_cancel(CLI::App& app, const Globals& globals) {
  return define(app, globals, Verb::kCancel, Takes::kBoth);
}
Action command_hold(CLI::App& app, const Globals& globals) { return define(app, globals, Verb::kHold, Takes::kRuns); }
Action command_release(CLI::App& app, const Globals& globals) {
  return define(app, globals, Verb::kRelease, Takes::kRuns);
}
Action command_retry(CLI::App& app, const Globals& globals) { return define(app, globals, Verb::kRetry, Takes::kBoth); }
Action command_priority(CLI::App& app, const Globals& globals) {
  return define(app, globals, Verb::kPriority, Takes::kSweeps);
}

Action command_stop(CLI::App& app, const Globals& globals) {
  const auto now = std::make_shared<bool>(false);
  app.add_flag("--now", *now, "stop the running attempts too, with a checkpoint");
  return [now, &globals] { return stop(*now, globals); };
}

}  // namespace tearless::harness
