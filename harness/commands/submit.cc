// `tearless submit GRID…`: hands grids to the workspace's service and returns. Without a service the sweeps wait for
// the next one.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/words.h"
#include "harness/cli/control.h"
#include "harness/cli/grid_state.h"
#include "harness/cli/output.h"
#include "harness/cli/submission_options.h"
#include "harness/commands/commands.h"
#include "harness/service/client.h"

namespace tearless::harness {
namespace {

struct SubmitOptions {
  std::vector<std::string> grids;
  SubmissionFlags submission;
  bool retry = false;
};

int submit(const SubmitOptions& options, const Globals& globals) {
  std::vector<Submission> submissions;  // all of them before the first is handed over: a mistake in one submits none
  for (const std::string& grid : options.grids) {
    submissions.push_back(prepare_submission(grid, globals.engine, options.submission.options()));
  }
  const Workspace workspace =
      options.submission.smoke ? Workspace(globals.workspace).smoke() : Workspace(globals.workspace);
  std::vector<std::string> ids;
  std::vector<Sweep> sweeps;
  for (Submission& submission : submissions) {
    write_submission(workspace, submission);
    sweeps.push_back(submission.sweep);
    ids.push_back(submission.sweep.id);
  }
  carry_out({.verb = options.retry ? Verb::kRetry : Verb::kSubmit, .sweeps = ids}, workspace, sweeps);
  if (options.submission.priority) {
    carry_out({.verb = Verb::kPriority, .sweeps = ids, .priority = *options.submission.priority}, workspace);
  }
  nlohmann::json answers = nlohmann::json::array();
  for (const Sweep& sweep : sweeps) {
    answers.push_back({{"sweep", sweep.id}, {"runs", sweep.runs.size()}});
    if (!globals.json) {
      print("{}  {}: {}\n", sweep.id, sweep.title, counted(static_cast<int64_t>(sweep.runs.size()), "run"));
    }
  }
  const bool served = ask_service(workspace, {.verb = Verb::kStatus}).has_value();
  if (globals.json) {
    print_json({{"sweeps", answers}, {"served", served}});
  } else if (!served) {
    print("They wait: no tearless works in {}. To start one: tearless daemon --background{}\n",
          workspace.root().string(), workspace_option(globals));
  }
  return kOk;
}

}  // namespace

Action command_submit(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<SubmitOptions>();
  app.add_option("grid", options->grids, "grid files")->required();
  options->submission.add_to(app);
  app.add_flag("--retry", options->retry, "try failed runs again");
  return [options, &globals] { return submit(*options, globals); };
}

}  // namespace tearless::harness
