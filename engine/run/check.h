// Checks configurations without training them: `tearless-engine check`.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>

#include "engine/run/run_options.h"

namespace tearless::engine {

/// The answer of the check protocol (docs/run_directory.md) for these settings. Computes the checksums of the corpora.
nlohmann::json check_run(RunOptions options);

/// Answers one line of the protocol. Invalid settings give {"error": …}.
nlohmann::json check_line(const std::string& line);

}  // namespace tearless::engine
