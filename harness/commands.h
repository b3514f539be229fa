// The commands of `tearless`: one file and one row of main.cc's table each.
#pragma once

#include <filesystem>
#include <functional>

namespace CLI {
class App;
}

namespace tearless::harness {

/// Options that stand before or after any command.
struct Globals {
  std::filesystem::path workspace = "results";  // holds the database, runs/ and sweeps/
  std::filesystem::path engine;                 // the training program; empty: the one of Program::find()
  bool json = false;                            // machine-readable output, where the command has one
};

/// What a person's shell expects. UserError is mapped to kUsage by main().
enum CommandExit : int {
  kOk = 0,
  kSomethingFailed = 1,
  kUsage = 2,
  kInterrupted = 130,
};

/// Does the work once the command line is read; the process ends with what it returns.
using Action = std::function<int()>;

// Each declares its options on `app` and returns its action. `globals` is filled by the parser: read it in the action
// only.
Action command_plan(CLI::App& app, const Globals& globals);
Action command_run(CLI::App& app, const Globals& globals);
Action command_status(CLI::App& app, const Globals& globals);
Action command_table(CLI::App& app, const Globals& globals);
Action command_explain(CLI::App& app, const Globals& globals);
Action command_diff(CLI::App& app, const Globals& globals);
Action command_log(CLI::App& app, const Globals& globals);
Action command_sql(CLI::App& app, const Globals& globals);
Action command_verify(CLI::App& app, const Globals& globals);
Action command_rebuild(CLI::App& app, const Globals& globals);
Action command_supervise(CLI::App& app, const Globals& globals);  ///< not for people: `run` starts it, one an attempt

}  // namespace tearless::harness
