// tearless-engine train: one attempt on a run directory, given directly or made from a settings file.
#include <CLI/CLI.hpp>

#include "engine/commands.h"
#include "engine/device.h"
#include "engine/run/attempt.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {

Action command_train(CLI::App& app) {
  struct Arguments {
    std::filesystem::path directory, config, runs = "runs";
  };
  const auto args = std::make_shared<Arguments>();
  auto* directory = app.add_option("DIR", args->directory, "run directory with run.toml and local.toml");
  auto* config = app.add_option("--config", args->config, "TOML file with settings: creates and trains RUNS/<id>")
                     ->excludes(directory);
  app.add_option("--runs", args->runs, "folder in which --config creates run directories")
      ->needs(config)
      ->capture_default_str();
  return [args] {
    stop_at_once();
    if (args->directory.empty() && args->config.empty())
      fail("train: name a run directory, or settings with --config FILE");
    const auto dir = args->config.empty() ? args->directory : make_run_directory(args->config, args->runs);
    open_device(execution_of(dir));
    return static_cast<int>(attempt_run(dir));
  };
}

}  // namespace tearless::engine
