// What became of an attempt, judged from what it left behind and from nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/run_directory.h"
#include "harness/store/states.h"

namespace tearless::harness {

struct Verdict {
  RunState state = RunState::kFailed;  // done, diverged or failed
  FailureClass failure = FailureClass::kNone;
  std::string reason;           // one phrase for people
  std::optional<int64_t> step;  // of DONE

  /// What the store writes as the attempt's outcome.
  std::string outcome() const;
};

/// What DONE says, checked against the files that it names; nothing where there is none. A damaged DONE or a changed
/// result is a failure of class settings: someone has been at the folder.
std::optional<Verdict> verdict_of_done(const RunDirectory& run);

/// Of the newest attempt, which has ended: DONE outranks exit.json, and without either the attempt is lost.
Verdict judge(const RunDirectory& run, int64_t attempt);

/// The same for an attempt that a later one followed: DONE is not its work.
Verdict judge_exit(const RunDirectory& run, int64_t attempt);

}  // namespace tearless::harness
