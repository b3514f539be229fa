// Determines how an attempt ended, from the files in its run directory and from nothing else:
//   1. A DONE means that the run has its result.
//   2. Otherwise ended.json, if the service gave up an attempt on another machine, has class and reason.
//   3. Otherwise ended_by() (verdict.cc) says who ended the program, from exit.json.
//   4. kEndRules (verdict.cc) turns that, the exit code and the state of the disk into a FailureClass.
// What happens next (retry, pause …) is decided in harness/schedule/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/run_directory.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/states.h"

namespace tearless::harness {

struct Verdict {
  RunState state = RunState::kFailed;  // done, diverged or failed
  FailureClass failure = FailureClass::kNone;
  std::string reason;           // one phrase, for messages
  std::optional<int64_t> step;  // from DONE

  /// AttemptRecord::outcome for this verdict: the name of the failure class, or of the state.
  std::string outcome() const;
};

/// The verdict according to DONE; nullopt if there is no DONE. DONE is verified against the run's settings and the
/// checksums of the result files. If it is damaged, belongs to another run, or a result file was changed, the verdict
/// is a failure of class kSettings.
std::optional<Verdict> verdict_of_done(const RunDirectory& run);

/// The verdict on the newest attempt. DONE takes precedence over ended.json and exit.json; without any of them, the
/// class is kLost.
/// REQUIRES: the attempt has ended.
Verdict verdict_of(const RunDirectory& run, int64_t attempt);

/// As verdict_of(), but ignores DONE. For attempts that a later attempt followed: a DONE is not theirs.
Verdict verdict_of_exit(const RunDirectory& run, int64_t attempt);

/// Equal for two failures of the same kind: the reason with paths and words that contain digits replaced, except exit
/// codes and signal numbers.
std::string failure_signature(const std::string& reason);

}  // namespace tearless::harness
