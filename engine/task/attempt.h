// One attempt on a run directory, from reading its settings to its exit code: `tearless-engine train`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/lock_file.h"
#include "base/run_directory.h"

namespace tearless::engine {

/// An attempt that was begun by the supervisor which started us.
struct InheritedAttempt {
  int64_t number;
  LockFile lock;
};

/// The attempt that TEARLESS_ATTEMPT names, where TEARLESS_LOCK_FD is a descriptor that holds the lock of this very run
/// and the attempt is the newest one. Nothing otherwise: variables alone, as a shell may have exported them, prove
/// nothing.
std::optional<InheritedAttempt> inherited_attempt(const RunDirectory& run);

/// Works on the run in `dir`, which holds run.toml and local.toml. Under a supervisor the lock is already held; else it
/// is taken here and a new attempt is made. A request to stop ends the process until training begins. UserError where
/// another attempt holds the lock; MachineError where the machine failed.
ExitCode attempt_run(const std::filesystem::path& dir);

/// scores.json of a run that is done. UserError where there is none, or where it was changed since.
nlohmann::json finished_scores(const RunDirectory& run);

/// Makes `runs`/<id> for the settings in `config`, where it is not there yet, and returns it.
std::filesystem::path make_run_directory(const std::filesystem::path& config, const std::filesystem::path& runs);

}  // namespace tearless::engine
