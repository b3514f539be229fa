// All settings of a run, and the two texts made of them: the canonical text, whose hash is the run's id, and the local
// text.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/settings.h"
#include "engine/task/task_kind.h"

namespace tearless::engine {

/// Increase it by hand whenever the same settings would give other results. Stored results with older numbers are then
/// stale.
inline constexpr int64_t kNumerics = 1;

/// build_stamp(), and the wheel that the engine was packed in, if it was.
std::string program_version();

/// The task of runs that name none. It is the neutral value of the setting `task`.
inline constexpr std::string_view kDefaultTask = "translate";

struct RunOptions {
  std::unique_ptr<TaskKind> task;  // with its settings
  TrainOptions train;
  ExecutionOptions run;

  explicit RunOptions(std::string_view task_name = kDefaultTask) : RunOptions(make_task_kind(task_name)) {}
  explicit RunOptions(std::unique_ptr<TaskKind> kind) : task(std::move(kind)) {
    if (task) task->set_defaults(train);
  }
  RunOptions(const RunOptions& other) : task(other.task->clone()), train(other.train), run(other.run) {}
  RunOptions& operator=(const RunOptions& other) { return *this = RunOptions(other); }
  RunOptions(RunOptions&&) = default;
  RunOptions& operator=(RunOptions&&) = default;

  /// The task's settings. Throws UserError, saying that `who` is not for that task, if they are others.
  template <class Options>
  Options& as(std::string_view who) const {
    auto* const kind = dynamic_cast<TaskKindWith<Options>*>(task.get());
    if (!kind) fail("{} is not for runs of task = \"{}\"", who, task->name);
    return kind->options;
  }
};
void describe(SettingsVisitor& visitor, RunOptions& options);
/// The settings that every task has: `task`, [train], [run] and [observe].
void describe_common(SettingsVisitor& visitor, RunOptions& options);

/// The description of `options` for base/settings.h. Borrows `options`.
Describe description_of(RunOptions& options);

/// Reads settings and makes the data paths absolute: a relative path starts at folders[key] if given, else at `folder`.
/// Throws UserError for any invalid setting or combination of settings.
RunOptions read_run_options(const WrittenSettings& written, const std::filesystem::path& folder,
                            const std::map<std::string, std::string>& folders);

/// The settings in dir/run.toml and dir/local.toml. Throws UserError if run.toml was changed (its hash is not the
/// folder's name), and for a derived run (derived_run.h). `other_local`: in place of dir/local.toml.
RunOptions read_run_directory(const std::filesystem::path& dir, std::optional<WrittenSettings> other_local = {});

/// The settings that results depend on.
std::string canonical_text(RunOptions& options);
/// The settings that results do not depend on: paths, threads, logging.
std::string local_text(RunOptions& options);

/// The same run with a few updates and one evaluation, to test that its settings work.
RunOptions smoke(RunOptions options);

}  // namespace tearless::engine
