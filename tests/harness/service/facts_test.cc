// What is shown of the sweeps that a service works on.
#include "harness/service/facts.h"

#include <gtest/gtest.h>

namespace tearless::harness::facts_test {
namespace {

SweepFacts sweep(const std::string& id, int64_t waiting, std::optional<double> seconds_left) {
  return {.id = id, .state = "active", .total = 4, .waiting = waiting, .seconds_left = seconds_left};
}

TEST(TimeLeft, OfSweepsThatWereSubmittedTogetherIsThatOfThoseThatHaveRunsLeft) {
  const std::vector<SweepFacts> all = {sweep("a", 2, 60), sweep("b", 1, 30), sweep("c", 0, 500), sweep("d", 4, 1000)};
  EXPECT_EQ(time_left_text(all, {"a", "b", "c"}), " · all 3 sweeps: at most 1:30 left");
  EXPECT_EQ(time_left_text(all, {"a"}), "");
  EXPECT_EQ(time_left_text(all, {"c"}), "");
}

TEST(TimeLeft, IsNotSaidWhereOneIsNotKnown) {
  std::vector<SweepFacts> all = {sweep("a", 2, 60), sweep("b", 1, std::nullopt)};
  EXPECT_EQ(time_left_text(all, {"a", "b"}), "");
  all[1].seconds_left = 30;
  all[1].untimed = 1;
  EXPECT_EQ(time_left_text(all, {"a", "b"}), "");
}

}  // namespace
}  // namespace tearless::harness::facts_test
