// `tearless run GRID`: has the workspace's service train the runs of a grid that have no result yet, and shows how they
// get on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/commands/sweep_watch.h"
#include "harness/plan/calibration.h"
#include "harness/plan/grid_state.h"
#include "harness/plan/submission.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

struct RunOptions {
  std::string grid;
  SubmissionFlags submission;
  bool calibrate = false;  // implies submission.smoke
  bool retry = false;
  ServiceFlags service;
};

// Prints the state of the sweep, the failures with their reasons, and the next command. Returns the exit code.
int conclude(const Store& store, const Sweep& sweep, const Globals& globals, const RunOptions& options,
             const WatchEnd& ending) {
  // With --smoke the runs are in another workspace, which commands that read must name. `run --smoke` finds it itself.
  Globals seen = globals;
  if (options.submission.smoke) seen.workspace = Workspace(globals.workspace).smoke().root();
  const std::string place = options_again(seen), grid = shell_word(options.grid);
  const std::string again = fmt::format("tearless run {}{}{}", grid, options_again(globals),
                                        options.calibrate          ? " --calibrate"
                                        : options.submission.smoke ? " --smoke"
                                                                   : "");
  StateCounts counts = print_outcome(store, sweep.id);
  if (ending.left_to != 0) {
    print("The sweep continues in process {0}. To see it: tearless watch {1}{2}. To stop it: tearless pause {1}{2}\n",
          ending.left_to, shell_word(sweep.id), place);
    return kInterrupted;
  }
  if (ending.interrupted) {
    print("Interrupted; nothing is lost. To continue: {}\n", again);
    return kInterrupted;
  }
  if (!ending.paused.empty()) {
    print("Ended early: {}. To continue: {}\n", ending.paused, again);
    return kSomethingFailed;
  }
  if (const std::vector<RunRecord> failed = store.runs_of(sweep.id, {RunState::kFailed}); !failed.empty()) {
    print("To see why: tearless log {}{}. To try failed runs again: {} --retry\n", failed.front().id, place, again);
  }
  if (counts[RunState::kDone] > 0) {
    if (options.calibrate) {
      print("Next, with an estimate of the time: tearless plan {}{}\n", grid, options_again(globals));
    } else if (!options.submission.smoke) {
      print("Next: tearless table {}{}\n", grid, place);
    }
  }
  const bool all_ended =
      counts[RunState::kDone] + counts[RunState::kDiverged] == static_cast<int64_t>(sweep.runs.size());
  return all_ended ? kOk : kSomethingFailed;
}

int run(const RunOptions& options, const Globals& globals) {
  std::signal(SIGPIPE, SIG_IGN);  // it replaces a service that was killed, whether anybody reads its output or not
  SubmissionOptions wanted = options.submission.options();
  if (options.calibrate) wanted.calibrated = timed_classes(Workspace(globals.workspace));
  Submission submission = prepare_submission(options.grid, globals.engine, wanted);
  if (options.calibrate && submission.sweep.runs.empty()) {
    print("Nothing to calibrate: runs like these have been timed, or wait for their data. Next: tearless plan {}{}\n",
          shell_word(options.grid), options_again(globals));
    return kOk;
  }
  const Workspace workspace =
      options.submission.smoke ? Workspace(globals.workspace).smoke() : Workspace(globals.workspace);
  write_submission(workspace, submission);
  const Sweep& sweep = submission.sweep;
  const ServiceStart start{.arguments = options.service.arguments()};
  WatchEnd ending;
  {
    SweepWatch watch(workspace, sweep.id, sweep.policy, sweep.runs, start);
    const ServiceFacts service = require_service(workspace, start);
    notice_if_without_effect(options.service, service, globals);
    notice_other_environment(sweep.policy, service);
    discard_results(workspace, submission, options.submission, start);
    Request submit{.name = "submit", .sweeps = {sweep.id}, .priority = options.submission.priority};
    if (options.retry) submit.flags = {"retry"};
    const SubmissionFacts facts = request(workspace, submit, start).at("submitted").at(0);
    if (const std::vector<std::string> changes = changes_of(facts); facts.kept_place || !facts.beside.empty()) {
      watch.say(fmt::format("{}: {}", sweep.id, fmt::join(changes, ", ")));
    }
    ending = watch.follow();
  }
  return conclude(*Store::open_reader(workspace), sweep, globals, options, ending);
}

}  // namespace

Action command_run(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<RunOptions>();
  app.add_option("grid", options->grid, "the grid file")->required();
  options->submission.add_to(app);
  options->service.add_to(app);
  app.add_flag("--retry", options->retry, "try failed runs again");
  app.add_flag(
      "--calibrate", options->calibrate,
      "as --smoke, but only one run of each resource class that has not been timed: `tearless plan` then estimates how "
      "long the grid takes");
  return [options, &globals] {
    options->submission.smoke |= options->calibrate;
    return run(*options, globals);
  };
}

}  // namespace tearless::harness
