// `tearless run GRID`: has the workspace's service train the runs of a grid that have no result yet, and shows how they
// get on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/print.h"
#include "base/words.h"
#include "harness/check/recorded_looks.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/commands/sweep_watch.h"
#include "harness/plan/calibration.h"
#include "harness/plan/grid_state.h"
#include "harness/plan/submission.h"
#include "harness/results/curves.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

struct RunOptions {
  std::string grid;
  SubmissionFlags submission;
  bool calibrate = false;  // implies submission.smoke
  ServiceFlags service;

  /// What names the grid, or the part of a paper, in a command to type next.
  std::string words() const { return shell_word(grid) + submission.words(); }
};

// A line for each sweep that was in the queue already, or that has others of its grid file beside it there.
std::vector<std::string> kept_places(const nlohmann::json& submitted) {
  std::vector<std::string> lines;
  for (const nlohmann::json& one : submitted) {
    const auto facts = one.get<SubmissionFacts>();
    if (!facts.kept_place && facts.beside.empty()) continue;
    lines.push_back(fmt::format("{}: {}", facts.id, fmt::join(changes_of(facts), ", ")));
  }
  return lines;
}

// Prints what the claims of a sweep that was trained until they are decided came to. False if one waits for a run.
bool conclude_claims(const Submission& submission, const Globals& globals) {
  GridState state = look_up_sweep({submission.sweep.id}, globals);
  add_defined_scores(state.grid, state.results);
  const GridChecks checks = check_with_looks(state.grid, state.views, state.results);
  const VerdictCounts counts = counts_of({checks}).claims;
  std::vector<std::string> parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) parts.push_back(fmt::format("{} {}", counts[i], name_of(static_cast<ClaimVerdict>(i))));
  }
  print("Claims: {}, with {} of the grid's {}: tearless check-table {}{}\n", fmt::join(parts, ", "),
        state.results.rows.size(), counted(std::ssize(submission.sweep.runs), "run"), shell_word(submission.sweep.id),
        options_again(globals));
  const std::vector<std::string> open = claims_held_open(checks, state.results, options_again(globals));
  for (const std::string& sentence : open) print("  {}\n", sentence);
  return open.empty();
}

// Prints the state of the sweep, the failures with their reasons, and the next command. Returns the exit code.
int conclude(const Store& store, const Submission& submission, const Globals& globals, const RunOptions& options,
             const WatchEnd& ending) {
  const Sweep& sweep = submission.sweep;
  // With --smoke the runs are in another workspace, which commands that read must name. `run --smoke` finds it itself.
  Globals seen = globals;
  seen.workspace = options.submission.workspace(globals).root();
  const std::string place = options_again(seen), grid = options.words();
  const std::string again = fmt::format("tearless run {}{}{}", grid, options_again(globals),
                                        options.calibrate                  ? " --calibrate"
                                        : options.submission.smoke         ? " --smoke"
                                        : options.submission.until_decided ? " --until-decided"
                                                                           : "");
  StateCounts counts = print_outcome(store, sweep.id);
  if (ending.left_to != 0) {
    print("The sweep continues in process {0}. To see it: tearless watch {1}{2}. To stop it: tearless pause {1}{2}\n",
          ending.left_to, shell_word(sweep.id), place);
    return kInterrupted;
  }
  if (ending.interrupted) {
    const int64_t restarts = store.restarts_in(sweep.id);
    print("Interrupted; {}. To continue: {}\n",
          restarts == 0 ? "nothing is lost"
                        : counted(restarts, "run") + " without a checkpoint will start from the beginning",
          again);
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
      // With --set the grid file alone does not say which runs they are.
      print("Next: tearless table {}{}\n",
            options.submission.set.empty() ? shell_word(submission.grid.file.string()) : shell_word(sweep.id), place);
    }
  }
  const bool is_decided = !sweep.policy.until_decided || conclude_claims(submission, seen);
  const bool all_ended = is_decided && std::ranges::all_of(counts, [](const auto& entry) {
                           return entry.second == 0 || has_result(entry.first);
                         });
  return all_ended ? kOk : kSomethingFailed;
}

/// Submits the grids together and follows one after another, in their order. The service trains them in this order,
/// too: where one has no run left to start, the next one begins. Returns the worst exit code.
int follow(const Workspace& workspace, const std::vector<Submission>& submissions, const RunOptions& options,
           const Globals& globals) {
  const ServiceStart start{.arguments = options.service.arguments()};
  std::vector<std::string> sweeps;
  for (const Submission& submission : submissions) sweeps.push_back(submission.sweep.id);
  int code = kOk;
  for (const Submission& submission : submissions) {
    const Sweep& sweep = submission.sweep;
    WatchEnd ending;
    {
      SweepWatch watch(workspace, sweep.id, sweeps, sweep.policy, sweep.runs, start);
      if (&submission == submissions.data()) {
        for (const std::string& line :
             kept_places(hand_over(workspace, submissions, options.submission, options.service, globals))) {
          watch.say(line);
        }
      }
      if (submissions.size() > 1) watch.say(sweep.id + "  " + sweep.name);
      ending = watch.follow();
    }
    code = std::max(code, conclude(*Store::open_reader(workspace), submission, globals, options, ending));
    if (ending.interrupted || ending.left_to != 0) break;
  }
  return code;
}

int run(RunOptions options, const Globals& globals) {
  std::signal(SIGPIPE, SIG_IGN);  // it replaces a service that was killed, whether anybody reads its output or not
  SubmissionOptions wanted = options.submission.options();
  if (options.calibrate) wanted.calibrated = timed_classes(Workspace(globals.workspace));
  std::vector<Submission> submissions = prepare_submissions({options.grid}, options.submission, wanted, globals);
  if (options.calibrate) {
    std::erase_if(submissions, [](const Submission& one) { return one.sweep.runs.empty(); });
    if (submissions.empty()) {
      print("Nothing to calibrate: runs like these have been timed, or wait for their data. Next: tearless plan {}{}\n",
            options.words(), options_again(globals));
      return kOk;
    }
  }
  const Workspace workspace = options.submission.workspace(globals);
  for (Submission& submission : submissions) write_submission(workspace, submission);
  options.service.keep_in(workspace);
  return follow(workspace, submissions, options, globals);
}

}  // namespace

Action command_run(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<RunOptions>();
  app.add_option("grid", options->grid, "the grid file, or a file that lists grids")->required();
  options->submission.add_to(app);
  options->service.add_to(app);
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
