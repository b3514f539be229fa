// Whether a run's result depends on where it was stopped: the result of another training of it was compared. Either
// `tearless verify-resume` has trained it once more, stopping and resuming it on the way; or a machine was given up
// that trained on, so that there are two results. Stored as resume.json in the run directory.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "harness/runs/attempt_files.h"

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
  std::vector<TrainingStop> stops;       // at least one, if verify-resume has made them
  std::vector<std::string> differences;  // "metrics.jsonl from line 4", "outputs/test.hyp"
  int64_t attempt = 0;                   // the one that was given up and has a result too; 0: by verify-resume
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ResumeCheck, outcome, verified_at, seed, stops, differences, attempt)

/// Compares what both runs left byte for byte: DONE's outcome, metrics.jsonl, scores.json, and the files that DONE
/// names; of files that a copy of results alone lacks, the checksums. REQUIRES: both have a DONE. UserError if a file
/// cannot be read.
std::vector<std::string> differences_between(const RunDirectory& undisturbed, const RunDirectory& resumed);

/// What the results of an attempt may depend on beside the settings: build and machine.
std::string origin_of(const AttemptRecord& attempt);

/// Nullopt if the run has no resume.json. UserError if it is damaged.
std::optional<ResumeCheck> read_resume_check(const RunDirectory& run);

/// One phrase: "equal after 2 stops (SIGTERM at update 3, SIGKILL at 7; seed 1)".
std::string sentence_of(const ResumeCheck& check);

}  // namespace tearless::harness
