// Checks configurations without training them: `tearless-engine check`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/run/derived_run.h"

namespace tearless::engine {

/// The answer of the check protocol (docs/run_directory.md) for these settings. Computes the checksums of the corpora.
nlohmann::json check_run(RunOptions options);

/// Answers lines of the check protocol that arrived together, as of one moment: of a line that differs from the one
/// before in `train.seed` alone, as those of a cell do, only the canonical text and the id are computed.
class CheckBatch {
 public:
  /// `derived` of a question, if it has any, are the settings of runs that derive one from another, the first from the
  /// run of its `settings`; the answer is about the last. Invalid settings give {"error": …}.
  nlohmann::json answer(std::string_view line);

 private:
  struct Last {
    std::string before_seed, after_seed;  // the line around the digits
    DerivedRun run;
    nlohmann::json answer;
  };
  std::optional<Last> last_;
};

}  // namespace tearless::engine
