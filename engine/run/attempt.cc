#include "engine/run/attempt.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/numbers.h"
#include "engine/ops/matmul.h"
#include "engine/run/check.h"
#include "engine/run/derived_run.h"
#include "engine/run/run_options.h"
#include "engine/train/execution.h"
#include "engine/train/phase.h"
#include "engine/train/stop_request.h"
#include "engine/train/trainer.h"

namespace tearless::engine {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

/// The integer in an environment variable; nothing if it is not set or not an integer.
std::optional<int64_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? number_of<int64_t>(text) : std::nullopt;
}

/// What the harness would write to start.json. Only the harness names a GPU.
json stamp_by_hand(const ExecutionOptions& run) {
  return {{"device", run.device == ExecutionOptions::Device::kCpu ? "cpu" : ""},
          {"program", "tearless-engine"},
          {"version", program_version()},
          {"numerics", kNumerics}};
}

}  // namespace

std::optional<InheritedAttempt> inherited_attempt(const RunDirectory& run) {
  const auto number = number_in(kAttemptVariable), descriptor = number_in(kLockVariable);
  if (!number || !descriptor || *number < 1 || *number != run.newest_attempt()) return std::nullopt;
  std::optional<LockFile> lock = LockFile::inherited(static_cast<int>(*descriptor), run.lock());
  if (!lock) return std::nullopt;
  return InheritedAttempt{*number, std::move(*lock)};
}

namespace {

/// One attempt on the run, unless it is done: the work, by the number of the attempt.
ExitCode attempt_with(const RunDirectory& run, const ExecutionOptions& execution,
                      const std::function<ExitCode(int64_t)>& work) {
  const std::string dir = run.root().string();
  std::optional<InheritedAttempt> inherited = inherited_attempt(run);
  std::optional<LockFile> lock;
  if (!inherited) {
    lock = claim(run);
    if (!lock) fail("{} is in use by another process; wait until that ends, or stop it first", dir);
  }
  if (const auto done = read_done(run)) {
    if (const std::string changed = changed_result_file(run, *done); !changed.empty()) refuse_changed(run, changed);
    spdlog::info("{} is already done", dir);
    return done->outcome == "diverged" ? kExitDiverged : kExitDone;
  }
  const int64_t attempt = inherited ? inherited->number : run.make_attempt();
  if (!inherited) write_start(run, attempt, stamp_by_hand(execution));
  write_phase(run, attempt, Phase::kPreparing);
  return work(attempt);
}

void prepare_device(const RunDirectory& run, int64_t attempt, const ExecutionOptions& execution) {
  prepare_processor(execution);
  const bool on_cpu = execution.device == ExecutionOptions::Device::kCpu;
  const std::string arithmetic = on_cpu ? arithmetic_name() : arithmetic_settings();
  if (!arithmetic.empty()) write_atomically(run.attempt(attempt) / "arithmetic", arithmetic + "\n");
  if (on_cpu) spdlog::info("matmuls by {}", arithmetic);
}

ExitCode train(const RunOptions& options, const RunDirectory& run, int64_t attempt) {
  prepare_device(run, attempt, options.run);
  const std::unique_ptr<Task> task =
      options.task->make(options.train, options.run, [](const std::string& line) { spdlog::info("{}", line); });
  if (const int64_t updates = options.train.update_limit(); updates != TrainOptions::kUnlimited) {
    spdlog::info("at most {} updates", updates);
  } else {
    spdlog::info("at most {} passes", options.train.max_epochs);
  }
  stop_with_checkpoint();
  try {
    return Trainer(*task, options.train, options.run, run, attempt).run();
  } catch (const MachineError&) {
    throw;
  } catch (const UserError& error) {
    // Not the settings' fault but, for example, a folder that cannot be written. The exit code lets the harness retry.
    throw std::runtime_error(error.what());
  }
}

}  // namespace

ExitCode attempt_run(const fs::path& dir) {
  const RunDirectory run(dir);
  if (is_derived(run)) {
    DerivedRun derived = read_derived_run(run);
    return attempt_with(run, derived.execution(), [&](int64_t attempt) {
      if (derived.kind().needs_device()) prepare_device(run, attempt, derived.trained.run);
      return derive(derived, run, attempt);
    });
  }
  const RunOptions options = read_run_directory(dir);
  return attempt_with(run, options.run, [&](int64_t attempt) { return train(options, run, attempt); });
}

ExecutionOptions execution_of(const fs::path& dir) {
  const RunDirectory run(dir);
  return is_derived(run) ? read_derived_run(run).execution() : read_run_directory(dir).run;
}

fs::path make_run_directory(const fs::path& config, const fs::path& runs) {
  const RunOptions options = read_run_options(read_toml_settings(config), fs::absolute(config).parent_path(), {});
  const json answer = check_run(options);
  const std::string waiting_for = answer.at("waiting_for");
  if (!waiting_for.empty()) fail("{}: {}", config.string(), waiting_for);
  const fs::path dir = runs / answer.at("id").get<std::string>();
  const RunDirectory run(dir);
  make_folders(dir);
  if (!fs::exists(run.settings())) write_atomically(run.settings(), answer.at("canonical").get<std::string>());
  write_atomically(run.local(), answer.at("local").get<std::string>());
  return dir;
}

}  // namespace tearless::engine
