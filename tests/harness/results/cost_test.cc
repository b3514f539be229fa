// What runs took, and what all seeds of their grids would take.
#include "harness/results/cost.h"

#include <gtest/gtest.h>

namespace tearless::harness::cost_test {
namespace {

/// A run of the cell `label` that took so many hours; 0: it was not begun.
Row row(const std::string& label, int64_t seed, int hours, const std::string& device = "cpu") {
  Row one;
  one.run.id = label + std::to_string(seed);
  one.run.coordinates = {{"norm", label}};
  one.run.seed = seed;
  one.run.needs.threads = 2;
  if (hours == 0) return one;
  one.result.state = RunState::kDone;
  AttemptRecord attempt;
  attempt.device = device;
  attempt.started_at = "2026-01-01T01:00:00Z";
  attempt.ended_at = "2026-01-01T0" + std::to_string(1 + hours) + ":00:00Z";
  one.result.attempts = {attempt};
  return one;
}

TEST(CostOfGrids, OfAllSeedsIsNoMoreThanThatOfThoseTrained) {
  CostOfGrids cost;
  cost.add({row("a", 1, 1), row("a", 2, 2), row("b", 1, 1), row("b", 2, 1)}, 2);
  EXPECT_EQ(cost.text(), "4 runs (4 done) took 4 attempts and 10.00 core-hours");
  EXPECT_FALSE(cost.lacks_seeds());
}

TEST(CostOfGrids, OfSeedsThatWereNotNeededIsThatOfTheSameCell) {
  CostOfGrids cost;
  cost.add({row("a", 1, 1), row("a", 2, 2), row("b", 1, 1, "A GPU")}, 4);
  EXPECT_EQ(cost.text(),
            "3 runs (3 done) took 3 attempts and 6.00 core-hours and 1.00 GPU-hours; with all seeds they are 8 runs "
            "and about 12.00 core-hours and 4.00 GPU-hours");
}

TEST(CostOfGrids, OfARunThatTwoGridsShareIsCountedOnce) {
  CostOfGrids cost;
  cost.add({row("a", 1, 1), row("a", 2, 1)}, 4);
  Row same = row("a", 2, 1), third = row("a", 3, 4);  // the other grid calls the cell otherwise
  same.run.coordinates = third.run.coordinates = {{"system", "A"}};
  cost.add({same, third}, 6);
  EXPECT_EQ(cost.text(),
            "3 runs (3 done) took 3 attempts and 12.00 core-hours; with all seeds they are 6 runs and about 24.00 "
            "core-hours");
}

TEST(CostOfGrids, OfCellsThatWereNotBegunIsNotGuessed) {
  CostOfGrids cost;
  cost.add({row("a", 1, 1), row("a", 2, 0), row("b", 1, 0)}, 3);
  EXPECT_EQ(cost.text(),
            "3 runs (1 done, 2 not started) took 1 attempt and 2.00 core-hours; with all seeds they are 6 runs and "
            "about 6.00 core-hours without 3 runs, of which no seed was trained");
}

}  // namespace
}  // namespace tearless::harness::cost_test
