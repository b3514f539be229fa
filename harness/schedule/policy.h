// What follows on a failure, one row a class. Tries are counted since the run last made progress (a newer checkpoint).
#pragma once

#include "harness/runs/states.h"

namespace tearless::harness {

inline constexpr int kFreeOfCharge = -1;

struct RetryPolicy {
  FailureClass failure;
  int tries;           // in all, this class of failure counted; kFreeOfCharge: no limit
  bool alone = false;  // the next try has the machine to itself
};

// clang-format off
inline constexpr RetryPolicy kRetryPolicies[] = {
    {FailureClass::kSettings,    1},              // would fail again
    {FailureClass::kOutOfMemory, 2, true},        // with more room it may fit
    {FailureClass::kCrashed,     3},
    {FailureClass::kStalled,     3},
    {FailureClass::kTimeout,     3},
    {FailureClass::kLost,        kFreeOfCharge},  // not the run's fault
    {FailureClass::kStopped,     kFreeOfCharge},
    {FailureClass::kKilled,      kFreeOfCharge},  // likewise; three in a row that got nowhere pause the sweep
    {FailureClass::kMachine,     kFreeOfCharge},  // the sweep pauses: no other run would fare better
};
// clang-format on

constexpr RetryPolicy policy_of(FailureClass failure) {
  for (const RetryPolicy& policy : kRetryPolicies) {
    if (policy.failure == failure) return policy;
  }
  return {failure, 1};
}

}  // namespace tearless::harness
