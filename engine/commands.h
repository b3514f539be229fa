// The commands of `tearless-engine`: one file and one row of the table in main.cc each. Each function declares its
// options and returns the action to run after the command line is parsed. The action returns the exit code
// (base/run_directory.h).
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tearless::engine {

using Action = std::function<int()>;

Action command_check(CLI::App& app);
Action command_train(CLI::App& app);
Action command_decode(CLI::App& app);
Action command_score(CLI::App& app);
Action command_bench(CLI::App& app);
Action command_prepare(CLI::App& app);
Action command_probe(CLI::App& app);
Action command_settings(CLI::App& app);

}  // namespace tearless::engine
