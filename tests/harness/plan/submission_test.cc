// What is asked for on the command line, besides the grid.
#include "harness/plan/submission.h"

#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace tearless::harness::submission_test {
namespace {

Sweep submitted(const SubmissionOptions& options) {
  const test::TempFolder folder;
  test::write_text(folder / "grid.toml",
                   "[axis]\n\"model.a\" = [1]\n[policy]\nstall_timeout = 7\ngrace = 11\nmemory = \"3 GiB\"\n");
  return prepare_submission(folder / "grid.toml", test::program("fake-engine"), options).sweep;
}

TEST(Submission, HasThePolicyOfTheGrid) {
  const SweepPolicy policy = submitted({}).policy;
  EXPECT_EQ(policy.stall_seconds, 7 * 60);
  EXPECT_EQ(policy.grace_seconds, 11);
  EXPECT_EQ(policy.memory_bytes, int64_t{3} << 30);
}

TEST(Submission, HasWhatTheCommandLineSaysInPlaceOfThePolicyOfTheGrid) {
  const SweepPolicy stall = submitted({.stall_minutes = 0}).policy;
  EXPECT_EQ(stall.stall_seconds, 0);
  EXPECT_EQ(stall.grace_seconds, 11);
  const SweepPolicy grace = submitted({.grace_seconds = 1}).policy;
  EXPECT_EQ(grace.grace_seconds, 1);
  EXPECT_EQ(grace.stall_seconds, 7 * 60);
  const SweepPolicy memory = submitted({.memory_bytes = 5}).policy;
  EXPECT_EQ(memory.memory_bytes, 5);
  EXPECT_EQ(memory.grace_seconds, 11);
}

}  // namespace
}  // namespace tearless::harness::submission_test
