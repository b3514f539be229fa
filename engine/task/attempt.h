// One attempt on a run directory, from reading its settings to its exit code: `tearless-engine train`.
#pragma once

#include <filesystem>

#include "base/run_directory.h"

namespace tearless::engine {

/// Works on the run in `dir`, which holds run.toml and local.toml. Under a supervisor (TEARLESS_ATTEMPT is set) the
/// lock is already held; else it is taken here and a new attempt is made. UserError where another attempt holds the
/// lock.
ExitCode attempt_run(const std::filesystem::path& dir);

/// Makes `runs`/<id> for the settings in `config`, where it is not there yet, and returns it.
std::filesystem::path make_run_directory(const std::filesystem::path& config, const std::filesystem::path& runs);

}  // namespace tearless::engine
