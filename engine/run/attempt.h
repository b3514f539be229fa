// One attempt on a run directory, from its settings to the exit code: `tearless-engine train`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/lock_file.h"
#include "base/run_directory.h"
#include "engine/train/options.h"

namespace tearless::engine {

/// An attempt that was begun by the supervisor that started this process.
struct InheritedAttempt {
  int64_t number;
  LockFile lock;
};

/// The attempt that TEARLESS_ATTEMPT names, if TEARLESS_LOCK_FD is a descriptor that holds the lock of this run and the
/// attempt is the newest one. Otherwise nothing: the variables alone prove nothing, a shell may have exported them.
std::optional<InheritedAttempt> inherited_attempt(const RunDirectory& run);

/// Makes one attempt on the run in `dir`, which has run.toml and local.toml. Under a supervisor the attempt and its
/// lock are inherited; otherwise both are made here. Until training begins, and while a derived run is made, a stop
/// request ends the process. Throws UserError if another attempt holds the lock, MachineError if the machine failed.
ExitCode attempt_run(const std::filesystem::path& dir);

/// Where and how the run in `dir` is executed, for open_device().
ExecutionOptions execution_of(const std::filesystem::path& dir);

/// Creates `runs`/<id> for the settings in `config`, unless it exists, and returns its path.
std::filesystem::path make_run_directory(const std::filesystem::path& config, const std::filesystem::path& runs);

}  // namespace tearless::engine
