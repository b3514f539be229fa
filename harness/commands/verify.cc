// `tearless verify [--repair]`: checks that everything in a workspace is as it was written (folders/verify.h).
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/folders/verify.h"
#include "harness/service/start.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

void print_report(const VerifyReport& report) {
  for (const std::string& sentence : report.repaired) print("repaired  {}\n", sentence);
  for (const Difference& difference : report.differences) {
    print("{}: {}  →  {}\n", difference.subject, difference.what, difference.todo);
  }
  for (const std::string& note : report.notes) print("{}\n", note);
  print("{} and {}: {}\n", counted(report.runs, "run"), counted(report.sweeps, "sweep"),
        report.differences.empty() ? "no differences"
                                   : counted(static_cast<int64_t>(report.differences.size()), "difference"));
}

json to_json(const VerifyReport& report) {
  json differences = json::array();
  for (const Difference& difference : report.differences) {
    differences.push_back({{"subject", difference.subject}, {"what", difference.what}, {"todo", difference.todo}});
  }
  return {{"runs", report.runs},
          {"sweeps", report.sweeps},
          {"differences", std::move(differences)},
          {"notes", report.notes},
          {"repaired", report.repaired}};
}

}  // namespace

Action command_verify(CLI::App& app, const Globals& globals) {
  const auto repair_requested = std::make_shared<bool>(false);
  app.add_flag("--repair", *repair_requested,
               "rebuild a wrong database, move damaged checkpoints to the run's damaged/; deletes nothing");
  return [repair_requested, &globals]() -> int {
    const Workspace workspace(globals.workspace);
    if (*repair_requested) end_idle_service(workspace);
    const VerifyReport report = *repair_requested ? repair(workspace) : verify(workspace);
    if (globals.json) {
      print_json(to_json(report));
    } else {
      print_report(report);
    }
    return report.differences.empty() ? kOk : kSomethingFailed;
  };
}

}  // namespace tearless::harness
