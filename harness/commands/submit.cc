// `tearless submit GRID…`: hands grids to the workspace's service and returns.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

struct SubmitOptions {
  std::vector<std::string> grids;
  SubmissionFlags submission;
  bool retry = false;
  ServiceFlags service;
};

int submit(const SubmitOptions& options, const Globals& globals) {
  if (options.grids.size() > 1 && !options.submission.name.empty()) {
    fail("--name \"{}\" names one sweep, and {} grids are submitted; submit them one by one", options.submission.name,
         options.grids.size());
  }
  std::vector<Submission> submissions;  // all of them before the first is handed over: a mistake in one submits none
  for (const std::string& grid : options.grids) {
    submissions.push_back(prepare_submission(grid, globals.engine, options.submission.options()));
  }
  const Workspace workspace =
      options.submission.smoke ? Workspace(globals.workspace).smoke() : Workspace(globals.workspace);
  Request submit{.name = "submit", .priority = options.submission.priority};
  if (options.retry) submit.flags = {"retry"};
  for (Submission& submission : submissions) {
    write_submission(workspace, submission);
    submit.sweeps.push_back(submission.sweep.id);
  }
  const ServiceStart start{.engine = globals.engine, .arguments = options.service.arguments()};
  notice_if_without_effect(options.service, require_service(workspace, start), globals);
  request(workspace, submit, start);
  nlohmann::json answers = nlohmann::json::array();
  for (const Submission& submission : submissions) {
    const Sweep& sweep = submission.sweep;
    answers.push_back({{"sweep", sweep.id}, {"runs", sweep.runs.size()}});
    if (!globals.json) {
      print("{}  {}: {}\n", sweep.id, sweep.name, counted(static_cast<int64_t>(sweep.runs.size()), "run"));
    }
  }
  if (globals.json) print_json({{"sweeps", answers}});
  return kOk;
}

}  // namespace

Action command_submit(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<SubmitOptions>();
  app.add_option("grid", options->grids, "grid files")->required();
  options->submission.add_to(app);
  options->service.add_to(app);
  app.add_flag("--retry", options->retry, "try failed runs again");
  return [options, &globals] { return submit(*options, globals); };
}

}  // namespace tearless::harness
