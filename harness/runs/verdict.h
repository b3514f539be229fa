// What became of an attempt, judged from what it left behind and from nothing else: who ended its program, and what
// failed.
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
  kRequest,  // the harness asked it to stop, for a person
  kStall,    // the harness asked it to stop, because it gave no sign of life
  kMemory,   // the kernel, which had no memory left
  kOutside,  // somebody else: a kill by hand, a limit on processor time, a shutdown
};

EndedBy ended_by(const AttemptRecord& attempt);

/// A row of what follows from an end without a result. The phase of the attempt (starting, preparing, training,
/// evaluating, publishing) is in no row: it never changes the class, only the sentence.
struct EndRule {
  EndedBy by;
  std::optional<int64_t> code;  // exit code of the program; kAnyCode: whatever it was, a signal included
  bool disk_full;               // holds only where the disk was full at the end
  FailureClass failure;
};
inline constexpr std::nullopt_t kAnyCode = std::nullopt;

// clang-format off
/// The first row that holds counts. Whether a class is charged to the run: harness/schedule/policy.h.
inline constexpr EndRule kEndRules[] = {
    {EndedBy::kRequest, kAnyCode,             false, FailureClass::kStopped},   // however it went: it was asked to go
    {EndedBy::kStall,   kAnyCode,             false, FailureClass::kStalled},
    {EndedBy::kMemory,  kAnyCode,             false, FailureClass::kOutOfMemory},
    {EndedBy::kOutside, kAnyCode,             false, FailureClass::kKilled},
    {EndedBy::kItself,  kExitStopped,         false, FailureClass::kStopped},   // asked by somebody else: preempted
    {EndedBy::kItself,  kExitSettingsRefused, false, FailureClass::kSettings},
    {EndedBy::kItself,  kExitOutOfMemory,     false, FailureClass::kOutOfMemory},
    {EndedBy::kItself,  kExitMachine,         false, FailureClass::kMachine},
    {EndedBy::kItself,  kAnyCode,             true,  FailureClass::kMachine},   // a program that knows no code for it
    {EndedBy::kItself,  kAnyCode,             false, FailureClass::kCrashed},
};
// clang-format on

/// `code`: nothing where a signal ended the program.
FailureClass class_of_end(EndedBy by, std::optional<int64_t> code, bool disk_full);

struct Verdict {
  RunState state = RunState::kFailed;  // done, diverged or failed
  FailureClass failure = FailureClass::kNone;
  std::string reason;           // one phrase for people
  std::optional<int64_t> step;  // of DONE

  /// What the store writes as the attempt's outcome.
  std::string outcome() const;
};

/// What DONE says, checked against the run's settings and against the files that it names; nothing where there is none.
/// Another run's DONE, a damaged one, or a changed result is a failure of class settings: someone has been at the
/// folder.
std::optional<Verdict> verdict_of_done(const RunDirectory& run);

/// Of the newest attempt, which has ended: DONE outranks exit.json, and without either the attempt is lost.
Verdict judge(const RunDirectory& run, int64_t attempt);

/// The same for an attempt that a later one followed: DONE is not its work.
Verdict judge_exit(const RunDirectory& run, int64_t attempt);

/// What two crashes of the same kind have in common: a reason without its numbers, hexadecimal words and paths.
std::string crash_signature(const std::string& reason);

}  // namespace tearless::harness
