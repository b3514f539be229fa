// The commands of `tearless`. Each has a file here and a row in the table in main.cc.
#pragma once

#include <functional>

#include "harness/console/globals.h"

namespace CLI {
class App;
}

namespace tearless::harness {

/// Executes a command after the command line was parsed. Returns the exit code.
using Action = std::function<int()>;

// Each function declares a command's options on `app` and returns its action. The parser fills `globals` after that, so
// only the action may read it.
Action command_plan(CLI::App& app, const Globals& globals);
Action command_run(CLI::App& app, const Globals& globals);
Action command_submit(CLI::App& app, const Globals& globals);
Action command_daemon(CLI::App& app, const Globals& globals);
Action command_watch(CLI::App& app, const Globals& globals);
Action command_wait(CLI::App& app, const Globals& globals);
Action command_worker(CLI::App& app, const Globals& globals);
Action command_request(CLI::App& app, const Globals& globals);  ///< of that row of request_kinds()
Action command_stop(CLI::App& app, const Globals& globals);
Action command_status(CLI::App& app, const Globals& globals);
Action command_runs(CLI::App& app, const Globals& globals);
Action command_plot(CLI::App& app, const Globals& globals);
Action command_table(CLI::App& app, const Globals& globals);
Action command_figure(CLI::App& app, const Globals& globals);
Action command_report(CLI::App& app, const Globals& globals);
Action command_check_table(CLI::App& app, const Globals& globals);
Action command_export(CLI::App& app, const Globals& globals);
Action command_cost(CLI::App& app, const Globals& globals);
Action command_explain(CLI::App& app, const Globals& globals);
Action command_diff(CLI::App& app, const Globals& globals);
Action command_log(CLI::App& app, const Globals& globals);
Action command_sql(CLI::App& app, const Globals& globals);
Action command_verify(CLI::App& app, const Globals& globals);
Action command_copy(CLI::App& app, const Globals& globals);
Action command_artifact(CLI::App& app, const Globals& globals);
Action command_clean(CLI::App& app, const Globals& globals);
Action command_delete(CLI::App& app, const Globals& globals);
Action command_verify_resume(CLI::App& app, const Globals& globals);
Action command_rebuild(CLI::App& app, const Globals& globals);
Action command_completion(CLI::App& app, const Globals& globals);
Action command_manual(CLI::App& app, const Globals& globals);     ///< internal: `make install` prints the man page
Action command_wrap(CLI::App& app, const Globals& globals);       ///< for --help alone
Action command_supervise(CLI::App& app, const Globals& globals);  ///< internal: the service starts one for each attempt

/// Puts this program's folder last on PATH, if no `tearless` is there: what `tearless wrap` writes calls it by its
/// name.
void be_on_path();
/// Becomes the Python program of `tearless wrap`, with the words behind `wrap`. UserError if there is none.
[[noreturn]] void become_wrap(char** words);

}  // namespace tearless::harness
