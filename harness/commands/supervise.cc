// `tearless supervise DIR`: the supervisor of one attempt (schedule/supervisor.h), started by `tearless run`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "harness/commands/commands.h"
#include "harness/console/number_option.h"
#include "harness/launch/supervisor.h"

namespace tearless::harness {

Action command_supervise(CLI::App& app, const Globals& globals) {
  struct Options {
    std::string run;
    std::string stamp = "{}";
    int grace_seconds = 30;
    int launcher = 0;
    bool ends_with_launcher = false;
    int64_t attempt = 0;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("run", options->run, "the run directory")->required();
  app.add_option("--stamp", options->stamp, "JSON fields for start.json");
  app.add_option("--grace", options->grace_seconds, "seconds between SIGTERM and SIGKILL")->check(whole_number_from(0));
  app.add_option("--launcher", options->launcher, "the parent process: once it has ended, nothing begins")
      ->check(whole_number_from(0));
  app.add_flag("--ends-with-launcher", options->ends_with_launcher, "end when the parent ends");
  app.add_option("--attempt", options->attempt, "its number, whose folder is there (default: the next one)")
      ->check(whole_number_from(1));
  return [options, &globals]() -> int {
    const nlohmann::json stamp = nlohmann::json::parse(options->stamp, nullptr, /*allow_exceptions=*/false);
    if (!stamp.is_object()) fail("--stamp is not a JSON object: {}", options->stamp);
    try {
      return supervise({.run = options->run,
                        .program = globals.engine,
                        .stamp = stamp,
                        .grace_seconds = options->grace_seconds,
                        .launcher = options->launcher,
                        .ends_with_launcher = options->ends_with_launcher,
                        .attempt = options->attempt});
    } catch (const UserError& error) {
      std::fprintf(stderr, "tearless supervise: %s\n", error.what());
      return kNotRecorded;
    }
  };
}

}  // namespace tearless::harness
