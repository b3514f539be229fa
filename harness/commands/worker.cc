// `tearless worker`: trains runs on this machine that the service of a workspace has granted (worker/worker.h).
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/memory_size.h"
#include "harness/commands/commands.h"
#include "harness/console/number_option.h"
#include "harness/slurm/executor.h"
#include "harness/worker/worker.h"

namespace tearless::harness {
namespace {

struct Options {
  std::string until;
  double idle_seconds = 60;
  LocalLimits limits;
  std::string executor = kWorkers, job, memory;
  bool is_shared = false;
};

// "3h", "90m", "45s", "1d", and what squeue prints: "1:30:00", "1-12:00:00" → seconds.
double seconds_in(const std::string& text) {
  constexpr std::pair<char, double> kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  for (const auto& [unit, seconds] : kUnits) {
    const bool is_it = error == std::errc() && end + 1 == text.data() + text.size() && *end == unit;
    if (is_it && std::isfinite(number) && number > 0) return number * seconds;
  }
  if (text.find_first_of(":-") != text.npos) {
    if (const std::optional<double> seconds = seconds_of_limit(text); seconds && *seconds > 0) return *seconds;
  }
  fail("--until \"{}\" is no time such as 3h, 90m, 45s, or 1:30:00", text);
}

int train(const Options& options, const Globals& globals) {
  LocalLimits limits = options.limits;
  if (!options.memory.empty()) {
    const std::optional<int64_t> bytes = parse_memory(options.memory);
    if (!bytes) fail("--memory \"{}\" is not a size such as 8GiB", options.memory);
    limits.memory_bytes = *bytes;
  }
  std::signal(SIGPIPE, SIG_IGN);             // whoever reads its output may leave
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the output of a batch job is a file, which people read as it grows
  const Workspace workspace(globals.workspace);
  if (!std::filesystem::is_directory(workspace.root())) {
    fail("there is no workspace {} on this machine; name one with --workspace", workspace.root().string());
  }
  const std::optional<double> until = options.until.empty() ? std::nullopt : std::optional(seconds_in(options.until));
  if (until && *until < kMinWorkerSeconds) {
    fail("--until {} leaves no time to train: a worker ends a minute and the grace time of its runs before",
         options.until);
  }
  work({.workspace = workspace,
        .until_seconds = until,
        .idle_seconds = options.idle_seconds,
        .limits = limits,
        .executor = options.executor,
        .job = options.job,
        .is_shared = options.is_shared});
  return kOk;
}

}  // namespace

Action command_worker(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<Options>();
  app.add_option(
      "--until", options->until,
      "end after this time, such as 3h, 90m or 1:30:00: what is trained then stops a minute and its grace time "
      "earlier, with checkpoints (default: when nothing is left)");
  app.add_option("--idle", options->idle_seconds, "seconds without a run after which it ends (default: 60)")
      ->check(number_from(0));
  app.add_option("--jobs", options->limits.jobs,
                 "runs at the same time on the CPU (default: as many as the cores allow for their threads)")
      ->check(whole_number_from(1));
  app.add_option("--runs-per-gpu", options->limits.runs_per_gpu,
                 "runs at the same time on each GPU, as far as its memory allows (default: 1)")
      ->check(whole_number_from(1));
  app.add_option("--cores", options->limits.cores, "of this machine's, at most (default: all that it may use)")
      ->check(whole_number_from(1));
  app.add_option("--memory", options->memory, "of this machine's, at most, such as 32GiB (default: all)");
  app.add_option("--executor", options->executor, "take the runs of this executor alone (default: workers)");
  app.add_flag("--shared", options->is_shared,
               "take the workspace as it is, although others may write it: they can have your user run anything");
  app.add_option("--job", options->job, "the job of a cluster that it is, by which its service finds it")->group("");
  return [options, &globals] { return train(*options, globals); };
}

}  // namespace tearless::harness
