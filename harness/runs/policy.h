// The retry policy, one row for each class of failure. Tries are counted since the run last made progress (a newer
// checkpoint) or was queued on request.
#pragma once

#include "harness/runs/states.h"

namespace tearless::harness {

inline constexpr int kNotCounted = -1;  // of tries: failures of the class are not counted, so there is no limit

struct RetryPolicy {
  FailureClass failure;
  int tries;           // number of failures of this class after which the run fails; or kNotCounted
  bool alone = false;  // the next attempt has the machine to itself
};

// clang-format off
inline constexpr RetryPolicy kRetryPolicies[] = {
    {FailureClass::kSettings,    1},              // another try would fail as well
    {FailureClass::kOutOfMemory, 2, true},        // it may fit when no other run uses memory
    {FailureClass::kCrashed,     3},
    {FailureClass::kStalled,     3},
    {FailureClass::kLost,        kNotCounted},  // not the run's fault
    {FailureClass::kStopped,     kNotCounted},
    {FailureClass::kKilled,      kNotCounted},  // not the run's fault; three kKilled or kLost in a row pause the sweep
    {FailureClass::kMachine,     kNotCounted},  // pauses the sweep: other runs would fail as well
    {FailureClass::kData,        kNotCounted},  // the run waits for its data (data_watch.h)
};
// clang-format on

/// The row of a class; one try for classes without a row.
constexpr RetryPolicy policy_of(FailureClass failure) {
  for (const RetryPolicy& policy : kRetryPolicies) {
    if (policy.failure == failure) return policy;
  }
  return {failure, 1};
}

}  // namespace tearless::harness
