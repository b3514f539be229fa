// `tearless rebuild`: recreates the database from the run and sweep folders.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/print.h"
#include "base/words.h"
#include "harness/commands/commands.h"
#include "harness/folders/rebuild.h"
#include "harness/service/start.h"

namespace tearless::harness {

Action command_rebuild(CLI::App&, const Globals& globals) {
  return [&globals]() -> int {
    const Workspace workspace(globals.workspace);
    end_idle_service(workspace);
    const RebuildReport report = rebuild(workspace);
    const int code = report.passed_over.empty() ? kOk : kSomethingFailed;
    if (globals.json) {
      print_json({{"database", workspace.database().string()},
                  {"runs", report.runs},
                  {"sweeps", report.sweeps},
                  {"kept", report.kept},
                  {"skipped", report.passed_over}});
      return code;
    }
    for (const std::string& sentence : report.passed_over) notice(fmt::format("skipped: {}", sentence));
    print("{}: {} and {} from their folders{}\n", workspace.database().string(), counted(report.runs, "run"),
          counted(report.sweeps, "sweep"), report.kept.empty() ? "" : "; the old database was moved to " + report.kept);
    return code;
  };
}

}  // namespace tearless::harness
