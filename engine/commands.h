// The commands of `tearless-engine`: one file and one row of main.cc's table each. Each declares its options and
// returns what to do once the command line is read; the process ends with the code that gives (base/run_directory.h).
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
