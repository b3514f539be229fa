#include "harness/statistics/superiority.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tearless::harness::superiority_test {
namespace {

TEST(Superiority, CountsPairsAndTiesHalf) {
  // 3 > 1, 3 = 3, 2 > 1, 2 < 3: two and a half of four
  EXPECT_DOUBLE_EQ(superiority(std::vector<double>{3, 2}, std::vector<double>{1, 3})->probability, 2.5 / 4);
  EXPECT_DOUBLE_EQ(superiority(std::vector<double>{1, 3}, std::vector<double>{3, 2})->probability, 1.5 / 4);
  EXPECT_DOUBLE_EQ(superiority(std::vector<double>{0.3}, std::vector<double>{0.1 + 0.2})->probability, 0.5);
}

TEST(Superiority, NeedsARunOfBoth) {
  EXPECT_EQ(superiority({}, std::vector<double>{1}), std::nullopt);
  EXPECT_EQ(superiority(std::vector<double>{1}, {}), std::nullopt);
}

// Of the 20 ways to deal six runs out to two cells, 2 separate them: 10 %. Of the 70 of eight runs 2 do: 2.9 %.
TEST(Superiority, ThreeRunsEachCannotBeSignificantAndFourCan) {
  const Superiority three = *superiority(std::vector<double>{5, 6, 7}, std::vector<double>{1, 2, 3});
  EXPECT_EQ(three.probability, 1);
  EXPECT_EQ(three.interval, Interval(0.5, 1));
  // the next distance, one pair lost, is that of 4 of the 70: 5.7 %. So the interval reaches 7/16 from the probability.
  const Superiority four = *superiority(std::vector<double>{5, 6, 7, 8}, std::vector<double>{1, 2, 3, 4});
  EXPECT_EQ(four.interval, Interval(1 - 7.0 / 16, 1));
}

TEST(Superiority, IntervalOfFewRunsContainsAHalfUnlessTheExactRankTestRejects) {
  // mannwhitneyu(a, b, method="exact").pvalue of SciPy 1.17.1: 0.095, 0.016
  const std::vector<double> b = {1.1, 2.3, 3.4, 0.6, 2.9};
  EXPECT_LE(superiority(std::vector<double>{3.1, 4.2, 5.3, 2.2, 4.4}, b)->interval.first, 0.5);
  EXPECT_GT(superiority(std::vector<double>{3.1, 4.2, 5.3, 3.5, 4.4}, b)->interval.first, 0.5);
  EXPECT_LT(superiority(b, std::vector<double>{3.1, 4.2, 5.3, 3.5, 4.4})->interval.second, 0.5);
  EXPECT_LE(superiority(b, std::vector<double>{3.1, 4.2, 5.3, 3.5, 4.4})->interval.first, 0.5);
}

TEST(Superiority, IntervalOfFewRunsIsTheSameFromBothSidesAndForUnequalNumbers) {
  const std::vector<double> a = {3, 4, 5, 6, 7, 8, 9}, b = {1, 2, 3.5};
  const Superiority forth = *superiority(a, b), back = *superiority(b, a);
  EXPECT_DOUBLE_EQ(forth.probability, 20.0 / 21);
  EXPECT_DOUBLE_EQ(forth.interval.first, 1 - back.interval.second);
  EXPECT_DOUBLE_EQ(forth.interval.second, 1 - back.interval.first);
  // Of the 120 ways 2 lose no pair, 2 lose one and 4 lose two: 1.7, 3.3 and 6.7 %. It reaches to those of two: 17/42.
  EXPECT_DOUBLE_EQ(forth.interval.first, 20.0 / 21 - 17.0 / 42);
}

// Of the 40 ways to choose one run of 40, 2 are as far out as the best: 5 %.
TEST(Superiority, OfARankTestAtTheLevelIsSignificant) {
  std::vector<double> others;
  for (int i = 0; i < 39; ++i) others.push_back(i);
  EXPECT_GT(superiority(std::vector<double>{100}, others)->interval.first, 0.5);
  others.pop_back();
  EXPECT_EQ(superiority(std::vector<double>{100}, others)->interval.first, 0.5);
}

TEST(Superiority, OfEqualRunsIsAHalf) {
  const std::vector<double> equal = {5, 5, 5, 5, 5};
  const Superiority one = *superiority(equal, equal);
  EXPECT_EQ(one.probability, 0.5);
  EXPECT_EQ(one.interval, Interval(0.5, 0.5));
}

TEST(Superiority, OfManyRunsHasTheBootstrapsInterval) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> a, b;
  for (int i = 0; i < 60; ++i) {
    a.push_back(normal(random) + 0.5);
    b.push_back(normal(random));
  }
  const Superiority one = *superiority(a, b, {.samples = 2000});
  // P = Φ(0.5 / √2) = 0.638. Its variance (Hanley and McNeil 1982, with the exponential's Q) is near 0.05².
  EXPECT_NEAR(one.probability, 0.638, 0.15) << "seed 3";
  const double half = (one.interval.second - one.interval.first) / 2;
  EXPECT_NEAR(half, 1.96 * 0.05, 0.012) << "seed 3";
  EXPECT_NEAR((one.interval.first + one.interval.second) / 2, one.probability, 0.01);
  EXPECT_EQ(superiority(a, b, {.samples = 2000})->interval, one.interval);
  EXPECT_NE(superiority(a, b, {.samples = 2000, .seed = 2})->interval, one.interval);
}

TEST(Superiority, FewRunsOfOneCellAreFew) {
  std::vector<double> many;
  for (int i = 0; i < 100; ++i) many.push_back(i);
  const std::vector<double> two = {200, 201};
  // The bootstrap would say [1, 1]. Of equal cells P has the deviation √(103 / 2400) = 0.21.
  const Superiority one = *superiority(two, many);
  EXPECT_EQ(one.probability, 1);
  EXPECT_LT(one.interval.first, 0.7);
  EXPECT_GT(one.interval.first, 0.5);
}

}  // namespace
}  // namespace tearless::harness::superiority_test
