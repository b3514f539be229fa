// `tearless submit GRID…`: hands grids to the workspace's service and returns.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/print.h"
#include "harness/commands/commands.h"
#include "harness/commands/submission_options.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

struct SubmitOptions {
  std::vector<std::string> grids;
  SubmissionFlags submission;
  ServiceFlags service;
};

int submit(const SubmitOptions& options, const Globals& globals) {
  std::vector<Submission> submissions =
      prepare_submissions(options.grids, options.submission, options.submission.options(), globals);
  const Workspace workspace = options.submission.workspace(globals);
  for (Submission& submission : submissions) write_submission(workspace, submission);
  ServiceFlags service = options.service;
  service.keep_in(workspace);
  const nlohmann::json answers = hand_over(workspace, submissions, options.submission, service, globals);
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
  app.add_flag("--replace", options->submission.replace,
               "cancel the other sweeps of the same grid file that have not ended: the grid was edited");
  return [options, &globals] { return submit(*options, globals); };
}

}  // namespace tearless::harness
