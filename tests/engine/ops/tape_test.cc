// The tape: what it times, and formulas whose results are not used or are overwritten.
#include "engine/ops/tape.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tearless::engine::tape_test {
namespace {

using Clock = std::chrono::steady_clock;

void sleep_for_20_ms() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

TEST(TapeProfile, CountsTheCallsOfAnOperationAndAddsUpTheirTimes) {
  TapeProfile profile;
  int64_t waits = 0;
  profile.wait = [&] { ++waits; };
  const auto began = Clock::now();
  Tape tape(Tape::Kind::kRecording);
  tape.profile_to(&profile);
  for (int i = 0; i < 3; ++i) {
    sleep_for_20_ms();
    tape.record("slow", [] { sleep_for_20_ms(); });
    tape.record("quick", [] {});
  }
  tape.backward();
  const double all = std::chrono::duration<double>(Clock::now() - began).count();
  ASSERT_EQ(profile.operations.size(), 2u);
  const TapeProfile::Times& slow = profile.operations.at("slow");
  EXPECT_EQ(slow.calls, 3);
  EXPECT_GE(slow.forward_seconds, 0.06);
  EXPECT_GE(slow.backward_seconds, 0.06);
  const TapeProfile::Times& quick = profile.operations.at("quick");
  EXPECT_EQ(quick.calls, 3);
  EXPECT_GE(quick.forward_seconds, 0);
  EXPECT_GE(quick.backward_seconds, 0);
  EXPECT_LE(slow.forward_seconds + slow.backward_seconds + quick.forward_seconds + quick.backward_seconds, all);
  EXPECT_EQ(waits, 12) << "each operation's time ends when the device is done, forward and backward";
}

TEST(ByFormula, WithAnUnusedResultGivesNoGradients) {
  Tape tape(Tape::Kind::kRecording);
  const Value x(at::ones({2}));
  const auto twice = [](const std::vector<at::Tensor>& in) { return in[0] * 2; };
  const Value used = tape.by_formula({x}, twice);
  tape.by_formula({x}, twice);
  used.add_grad(at::ones({2}));
  tape.backward();
  EXPECT_TRUE(at::equal(x.grad(), at::ones({2}) * 2));
  EXPECT_EQ(tape.fallback_ops(), 2);
}

// Autograd may save the result of a formula (that of tanh, for example); a kernel after it may work in place.
TEST(ByFormula, AnOperationThatOverwritesTheResultDoesNotChangeItsGradient) {
  Tape tape(Tape::Kind::kRecording);
  const Value x(at::arange(-3, 3, at::kFloat).view({2, 3}));
  const Value y = tape.by_formula({x}, [](const std::vector<at::Tensor>& in) { return at::tanh(in[0]); });
  y.data().fill_(7);
  y.add_grad(at::ones({2, 3}));
  tape.backward();
  EXPECT_TRUE(at::allclose(x.grad(), 1 - at::tanh(x.data()).square()));
}

}  // namespace
}  // namespace tearless::engine::tape_test
