// The outcome of `tearless verify-resume` for one run: it was trained once more, stopped and resumed on the way, and
// its result files were compared with those of an undisturbed training. Stored as resume.json in the run directory.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/run_directory.h"

namespace tearless::harness {

/// A stop on the way of a training.
struct TrainingStop {
  int64_t update = 0;        // the training is stopped when its metrics reach this update
  std::string signal;        // "SIGTERM", which asks for a checkpoint, or "SIGKILL"
  int64_t resumed_from = 0;  // the step of the checkpoint that the next attempt found; 0: none, it began again
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingStop, update, signal, resumed_from)

struct ResumeCheck {
  std::string outcome;                   // "equal" or "different"
  std::string verified_at;               // UTC
  int64_t seed = 1;                      // that the updates of the stops were drawn from
  std::vector<TrainingStop> stops;       // at least one
  std::vector<std::string> differences;  // "metrics.jsonl from line 4", "outputs/test.hyp"
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ResumeCheck, outcome, verified_at, seed, stops, differences)

/// Compares what both runs left byte for byte: DONE's outcome, metrics.jsonl, scores.json, and the files that DONE
/// names. REQUIRES: both have a DONE. UserError if a file cannot be read.
std::vector<std::string> differences_between(const RunDirectory& undisturbed, const RunDirectory& resumed);

/// Nullopt if the run has no resume.json. UserError if it is damaged.
std::optional<ResumeCheck> read_resume_check(const RunDirectory& run);

/// One sentence: "equal after 2 stops (SIGTERM at update 3, SIGKILL at 7; seed 1)".
std::string sentence_of(const ResumeCheck& check);

}  // namespace tearless::harness
