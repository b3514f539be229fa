// Judges configurations without training them: `tearless-engine check`.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>

#include "engine/task/run_options.h"

namespace tearless::engine {

/// One answer of the check protocol (docs/run_directory.md) for settings that were read. Fills in the corpora's
/// checksums.
nlohmann::json check_run(RunOptions options);

/// Answers one line of the protocol; bad settings become {"error": …}.
nlohmann::json check_line(const std::string& line);

}  // namespace tearless::engine
