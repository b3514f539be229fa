#include "engine/task/attempt.h"

#include <ATen/Parallel.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "engine/data/prepared.h"
#include "engine/task/check.h"
#include "engine/task/run_options.h"
#include "engine/task/translate.h"
#include "engine/train/stop_request.h"
#include "engine/train/trainer.h"

namespace tearless::engine {
namespace fs = std::filesystem;

ExitCode attempt_run(const fs::path& dir) {
  const RunDirectory run(dir);
  const RunOptions options = read_run_directory(dir);

  std::optional<LockFile> lock;
  int64_t attempt = 0;
  if (const char* number = std::getenv(kAttemptVariable)) {
    attempt = std::atoll(number);
  } else {
    std::optional<LockFile> taken = LockFile::try_acquire(run.lock());
    if (!taken) fail("{} is being worked on by another process; wait for it, or stop it first", dir.string());
    lock.emplace(std::move(*taken));
  }
  if (const auto done = read_done(run)) {
    const std::string changed = changed_result_file(run, *done);
    if (!changed.empty()) {
      fail("{} was changed after the run ended; restore it, or delete {} to train the run again",
           (dir / changed).string(), dir.string());
    }
    spdlog::info("{} is done already", dir.string());
    return done->outcome == "diverged" ? kExitDiverged : kExitDone;
  }
  if (lock) attempt = run.make_attempt();

  at::set_num_threads(static_cast<int>(options.run.threads));
  catch_stop_signals();
  Translate task(options,
                 prepare(options.data, options.text, [](const std::string& line) { spdlog::info("{}", line); }));
  spdlog::info("{} parameters, vocabulary {}, {} training pairs, at most {} updates", task.parameters().count(),
               task.prepared().vocabulary.size(), task.prepared().train.size(), options.train.update_limit());
  try {
    return Trainer(task, options.train, options.run, options.model.d_model, run, attempt).run();
  } catch (const UserError& error) {
    // A full disk, a damaged checkpoint: not the settings' fault, so not their exit code. The harness tries again.
    throw std::runtime_error(error.what());
  }
}

fs::path make_run_directory(const fs::path& config, const fs::path& runs) {
  const RunOptions options = read_run_options(read_toml_settings(config), fs::absolute(config).parent_path(), {});
  const nlohmann::json answer = check_run(options);
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
