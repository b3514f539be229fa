// Determines how an attempt ended, from the files in its run directory and from nothing else:
//   1. A DONE means that the run has its result.
//   2. Otherwise ended_by() says who ended the program, from exit.json.
//   3. kEndRules turns that, the exit code and the state of the disk into a FailureClass.
// What happens next (retry, pause …) is decided in harness/schedule/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/run_directory.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/states.h"

namespace tearless::harness {

/// Who or what ended an attempt's program.
enum class EndedBy {
  kItself,   // it exited, or died of a signal that only its own fault sends (SIGSEGV, SIGABRT …)
  kRequest,  // the harness asked it to stop, on a user's request
  kStall,    // the harness asked it to stop, because it gave no sign of life
  kMemory,   // the kernel's OOM killer
  kOutside,  // something else: a kill by hand, a limit on CPU time, a shutdown
};

/// REQUIRES: the attempt has an exit.json.
EndedBy ended_by(const AttemptRecord& attempt);

/// A rule for attempts that ended without a result. The attempt's phase (starting, preparing, training, evaluating,
/// publishing) never affects the class; it only appears in the message.
struct EndRule {
  EndedBy by;
  std::optional<int64_t> code;  // the program's exit code; kAnyCode: any code or signal
  bool disk_full;               // true: applies only if the disk was full at the end
  FailureClass failure;
};
inline constexpr std::nullopt_t kAnyCode = std::nullopt;

// clang-format off
/// The first rule that matches applies. Which classes count as a try: harness/schedule/policy.h.
inline constexpr EndRule kEndRules[] = {
    {EndedBy::kRequest, kAnyCode,             false, FailureClass::kStopped},   // whatever its exit code
    {EndedBy::kStall,   kAnyCode,             false, FailureClass::kStalled},
    {EndedBy::kMemory,  kAnyCode,             false, FailureClass::kOutOfMemory},
    {EndedBy::kOutside, kAnyCode,             false, FailureClass::kKilled},
    {EndedBy::kItself,  kExitStopped,         false, FailureClass::kStopped},   // asked by something else: preempted
    {EndedBy::kItself,  kExitSettingsRefused, false, FailureClass::kSettings},
    {EndedBy::kItself,  kExitOutOfMemory,     false, FailureClass::kOutOfMemory},
    {EndedBy::kItself,  kExitMachine,         false, FailureClass::kMachine},
    {EndedBy::kItself,  kExitData,            false, FailureClass::kData},
    {EndedBy::kItself,  kAnyCode,             true,  FailureClass::kMachine},   // a program that does not use code 74
    {EndedBy::kItself,  kAnyCode,             false, FailureClass::kCrashed},
};
// clang-format on

/// Applies kEndRules. `code` is unset if a signal ended the program.
FailureClass class_of_end(EndedBy by, std::optional<int64_t> code, bool disk_full);

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

/// The verdict on the newest attempt. DONE takes precedence over exit.json; without either, the class is kLost.
/// REQUIRES: the attempt has ended.
Verdict verdict_of(const RunDirectory& run, int64_t attempt);

/// As verdict_of(), but ignores DONE. For attempts that a later attempt followed: a DONE is not theirs.
Verdict verdict_of_exit(const RunDirectory& run, int64_t attempt);

/// Equal for two crashes of the same kind: the reason with paths and words that contain digits replaced, except exit
/// codes and signal numbers.
std::string crash_signature(const std::string& reason);

}  // namespace tearless::harness
