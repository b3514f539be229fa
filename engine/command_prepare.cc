// tearless-engine prepare: prepares the corpus in advance, as training would do first.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/run_directory.h"
#include "engine/commands.h"
#include "engine/run/run_options.h"
#include "engine/train/stop_request.h"

namespace tearless::engine {

Action command_prepare(CLI::App& app) {
  const auto file = std::make_shared<std::filesystem::path>();
  app.add_option("FILE", *file, "TOML file with settings; those of the data are used")->required();
  return [file] {
    stop_at_once();
    RunOptions options =
        read_run_options(read_toml_settings(*file), std::filesystem::absolute(*file).parent_path(), {});
    const DataFiles data = options.task->data_files();
    if (const std::string missing = data.missing(); !missing.empty()) fail("{}: {}", file->string(), missing);
    data.fingerprint();
    for (const std::string& doubt : data.doubts()) fmt::print("warning: {}\n", doubt);
    fmt::print("{}\n",
               options.task->prepare_data(options.train, [](const std::string& line) { fmt::print("{}\n", line); }));
    return static_cast<int>(kExitDone);
  };
}

}  // namespace tearless::engine
