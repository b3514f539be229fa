// `tearless submit GRID…`: hands grids to the workspace's service and returns.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/print.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/grid/paper.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

struct SubmitOptions {
  std::vector<std::string> grids;
  SubmissionFlags submission;
  bool retry = false;
  bool replace = false;
  ServiceFlags service;
};

int submit(const SubmitOptions& options, const Globals& globals) {
  std::vector<std::filesystem::path> grids;
  for (const std::string& file : options.grids) {
    const std::vector<std::filesystem::path> in_file = grids_in(file, options.submission.parts);
    grids.insert(grids.end(), in_file.begin(), in_file.end());
  }
  require_unnamed_parts(grids.size(), options.submission);
  std::vector<Submission> submissions;  // all of them before the first is handed over: a mistake in one submits none
  for (const std::filesystem::path& grid : grids) {
    submissions.push_back(prepare_submission(grid, globals.engine, options.submission.options()));
  }
  const Workspace workspace =
      options.submission.smoke ? Workspace(globals.workspace).smoke() : Workspace(globals.workspace);
  Request submit{.name = "submit", .priority = options.submission.priority};
  if (options.retry) submit.flags.insert("retry");
  if (options.replace) submit.flags.insert("replace");
  for (Submission& submission : submissions) {
    write_submission(workspace, submission);
    submit.sweeps.push_back(submission.sweep.id);
  }
  const ServiceStart start{.arguments = options.service.arguments()};
  const ServiceFacts service = require_service(workspace, start);
  notice_if_without_effect(options.service, service, globals);
  for (const Submission& submission : submissions) notice_other_environment(submission.sweep.policy, service);
  for (const Submission& submission : submissions) {
    discard_results(workspace, submission, options.submission, start);
  }
  const nlohmann::json answers = request(workspace, submit, start).at("submitted");
  if (globals.json) {
    print_json({{"sweeps", answers}});
    return kOk;
  }
  for (size_t i = 0; i < submissions.size(); ++i) {
    const Sweep& sweep = submissions[i].sweep;
    print("{}  {}: {}\n", sweep.id, sweep.name, summary_of(answers.at(i).get<SubmissionFacts>()));
  }
  return kOk;
}

}  // namespace

Action command_submit(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<SubmitOptions>();
  app.add_option("grid", options->grids, "grid files, or files that list grids")->required();
  options->submission.add_to(app);
  options->service.add_to(app);
  app.add_flag("--retry", options->retry, "try failed runs again");
  app.add_flag("--replace", options->replace,
               "cancel the other sweeps of the same grid file that have not ended: the grid was edited");
  return [options, &globals] { return submit(*options, globals); };
}

}  // namespace tearless::harness
