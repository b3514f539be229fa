// Differences of means against cases worked by hand and against SciPy 1.17.1; the calls stand beside the numbers.
#include "harness/statistics/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/statistics/stats.h"

namespace tearless::harness::difference_test {
namespace {

std::vector<SeedValue> seeds(const std::vector<double>& values, int64_t first_seed = 1) {
  std::vector<SeedValue> with_seeds;
  for (const double value : values) with_seeds.push_back({first_seed++, value});
  return with_seeds;
}

const std::vector<double> kA = {27.71, 28.05, 27.52, 27.98, 28.31}, kB = {27.44, 27.61, 27.50, 27.35, 27.92};
const std::vector<double> kC = {61.2, 58.9, 60.4, 63.0, 59.1, 60.0}, kD = {57.3, 57.9, 57.1};

TEST(PairedDifference, OfThreeSeedsWorkedByHand) {
  // differences 1, 2, 3: mean 2, deviation 1; t(0.975, 2) = 4.302653
  const MeanDifference d = *paired_difference(seeds({11, 22, 33}), seeds({10, 20, 30}));
  EXPECT_DOUBLE_EQ(d.mean, 2);
  EXPECT_DOUBLE_EQ(d.standard_error, 1 / std::sqrt(3));
  EXPECT_EQ(d.degrees, 2);
  EXPECT_DOUBLE_EQ(*d.correlation, 1);
  EXPECT_NEAR(d.interval().first, 2 - 4.302653 / std::sqrt(3), 1e-6);
  EXPECT_NEAR(d.interval().second, 2 + 4.302653 / std::sqrt(3), 1e-6);
}

TEST(PairedDifference, AgreesWithSciPy) {
  const MeanDifference d = *paired_difference(seeds(kA), seeds(kB));
  // ttest_rel(a, b), its confidence_interval(0.95) and (0.90), pearsonr(a, b)
  EXPECT_NEAR(d.mean, 0.35, 1e-12);
  EXPECT_NEAR(d.standard_error, 0.10084641788382961, 1e-12);
  EXPECT_NEAR(d.p(), 0.025569090178590406, 1e-12);
  EXPECT_NEAR(d.interval().first, 0.07000545668970937, 1e-12);
  EXPECT_NEAR(d.interval().second, 0.6299945433102893, 1e-12);
  EXPECT_NEAR(d.interval(0.9).first, 0.13501088812180267, 1e-12);
  EXPECT_NEAR(d.interval(0.9).second, 0.5649891118781958, 1e-12);
  EXPECT_NEAR(*d.correlation, 0.6791892708251943, 1e-12);
}

TEST(PairedDifference, ChangesItsSignWithTheOrder) {
  const MeanDifference d = *paired_difference(seeds(kB), seeds(kA));
  EXPECT_NEAR(d.mean, -0.35, 1e-12);
  EXPECT_NEAR(d.interval().first, -0.6299945433102893, 1e-12);
  EXPECT_NEAR(d.p(), 0.025569090178590406, 1e-12);
}

TEST(PairedDifference, PairsBySeedAndIgnoresTheSeedsOfOneSide) {
  std::vector<SeedValue> b = seeds({10, 20, 30});
  std::swap(b.front(), b.back());
  b.push_back({99, 1000});
  const MeanDifference d = *paired_difference(seeds({11, 22, 33, 44}), b);
  EXPECT_DOUBLE_EQ(d.mean, 2);
}

TEST(PairedDifference, NeedsTwoCommonSeeds) {
  EXPECT_EQ(paired_difference({}, {}), std::nullopt);
  EXPECT_EQ(paired_difference(seeds({1, 2, 3}), seeds({1, 2, 3}, 3)), std::nullopt);
  EXPECT_NE(paired_difference(seeds({1, 2, 3}), seeds({1, 2, 3}, 2)), std::nullopt);
}

TEST(PairedDifference, HasNoCorrelationWhereASideIsConstant) {
  EXPECT_EQ(paired_difference(seeds({1, 2, 3}), seeds({5, 5, 5}))->correlation, std::nullopt);
  EXPECT_EQ(paired_difference(seeds({0.3, 0.1 + 0.2}), seeds({1, 2}))->correlation, std::nullopt);
  EXPECT_DOUBLE_EQ(*paired_difference(seeds({1, 2, 4}), seeds({-1, -2, -4}))->correlation, -1);
}

TEST(PairedDifference, OfEqualValuesHasTheWidthZeroAndIsNotSignificant) {
  const MeanDifference d = *paired_difference(seeds({27.7, 28.1, 0.3}), seeds({27.7, 28.1, 0.1 + 0.2}));
  EXPECT_EQ(d.mean, 0);
  EXPECT_EQ(d.standard_error, 0);
  EXPECT_EQ(d.interval(), Interval(0, 0));
  EXPECT_EQ(d.p(), 1);
}

TEST(PairedDifference, OfDifferencesThatAreEqualButForRoundingErrorsHasTheWidthZero) {
  const std::vector<double> a = {27.1, 0.3, 90.4}, b = {27.0, 0.2, 90.3};
  ASSERT_NE(a[0] - b[0], a[2] - b[2]);
  const MeanDifference d = *paired_difference(seeds(a), seeds(b));
  EXPECT_NEAR(d.mean, 0.1, 1e-12);
  EXPECT_EQ(d.standard_error, 0);
  EXPECT_EQ(d.p(), 0);
}

TEST(PairedDifference, OfDifferencesThatCancelButForRoundingErrorsHasTheMeanZero) {
  const std::vector<double> a = {27.8, 30.1}, b = {27.7, 30.2};
  ASSERT_NE(a[0] - b[0], b[1] - a[1]);
  EXPECT_EQ(paired_difference(seeds(a), seeds(b))->mean, 0);
}

TEST(WelchDifference, AgreesWithSciPy) {
  const MeanDifference d = *welch_difference(kC, kD);
  // ttest_ind(c, d, equal_var=False), its df and confidence_interval(0.95) and (0.90)
  EXPECT_NEAR(d.mean, 3, 1e-12);
  EXPECT_NEAR(d.degrees, 6.265576968625759, 1e-10);
  EXPECT_NEAR(d.p(), 0.0036146042643280456, 1e-12);
  EXPECT_NEAR(d.interval().first, 1.3918121046188638, 1e-10);
  EXPECT_NEAR(d.interval().second, 4.608187895381151, 1e-10);
  EXPECT_NEAR(d.interval(0.9).first, 1.7194672954381993, 1e-10);
  EXPECT_EQ(d.correlation, std::nullopt);
}

TEST(WelchDifference, WorkedByHand) {
  // variances 1 and 4, three values each: error² = 1/3 + 4/3; degrees (5/3)² / ((1/9 + 16/9) / 2) = 50/17
  const MeanDifference d = *welch_difference(std::vector<double>{1, 2, 3}, std::vector<double>{2, 4, 6});
  EXPECT_DOUBLE_EQ(d.mean, -2);
  EXPECT_DOUBLE_EQ(d.standard_error, std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(d.degrees, 50.0 / 17);
}

TEST(WelchDifference, NeedsTwoValuesOnEachSide) {
  EXPECT_EQ(welch_difference(std::vector<double>{1}, std::vector<double>{1, 2}), std::nullopt);
  EXPECT_EQ(welch_difference(std::vector<double>{1, 2}, std::vector<double>{1}), std::nullopt);
  EXPECT_NE(welch_difference(std::vector<double>{1, 2}, std::vector<double>{1, 2}), std::nullopt);
}

TEST(WelchDifference, OfTwoConstantsHasTheWidthZero) {
  const MeanDifference d = *welch_difference(std::vector<double>{5, 5, 5}, std::vector<double>{3, 3});
  EXPECT_EQ(d.mean, 2);
  EXPECT_EQ(d.standard_error, 0);
  EXPECT_EQ(d.degrees, 3);
  EXPECT_EQ(d.interval(), Interval(2, 2));
  EXPECT_EQ(d.p(), 0);
  EXPECT_EQ(welch_difference(std::vector<double>{0.3, 0.3}, std::vector<double>{0.1 + 0.2, 0.1 + 0.2})->p(), 1);
}

TEST(WelchDifference, OfAConstantAndAnotherHasTheDegreesOfTheOther) {
  const MeanDifference d = *welch_difference(std::vector<double>{5, 5, 5, 5}, std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(d.degrees, 2);
  EXPECT_DOUBLE_EQ(d.standard_error, 1 / std::sqrt(3));
}

TEST(Equivalence, IsThatOfTwoOneSidedTestsAtFivePerCent) {
  // the greater p of ttest_1samp(a - b, -δ, alternative="greater") and ttest_1samp(a - b, δ, alternative="less"):
  // 0.106, 0.038, 0.013 for δ = 0.5, 0.59, 0.7
  const MeanDifference d = *paired_difference(seeds(kA), seeds(kB));
  EXPECT_FALSE(lies_within(d, 0.5));
  EXPECT_TRUE(lies_within(d, 0.59));
  EXPECT_TRUE(lies_within(d, 0.7));
  const MeanDifference opposite = *paired_difference(seeds(kB), seeds(kA));
  EXPECT_FALSE(lies_within(opposite, 0.5));
  EXPECT_TRUE(lies_within(opposite, 0.59));
  // the same of ttest_ind(c ± δ, d, equal_var=False): 0.059, 0.031 for δ = 4.2, 4.5
  const MeanDifference unpaired = *welch_difference(kC, kD);
  EXPECT_FALSE(lies_within(unpaired, 4.2));
  EXPECT_TRUE(lies_within(unpaired, 4.5));
}

TEST(Equivalence, IsContradictedWhereTheIntervalIsBeyondTheLimit) {
  // ttest_1samp(a - b, δ, alternative="greater"): 0.034, 0.059 for δ = 0.1, 0.15
  const MeanDifference d = *paired_difference(seeds(kA), seeds(kB));
  EXPECT_TRUE(lies_outside(d, 0.1));
  EXPECT_FALSE(lies_outside(d, 0.15));
  const MeanDifference opposite = *paired_difference(seeds(kB), seeds(kA));
  EXPECT_TRUE(lies_outside(opposite, 0.1));
  EXPECT_FALSE(lies_outside(opposite, 0.15));
}

TEST(Equivalence, CannotBeToldWhereALimitIsInsideTheInterval) {
  const MeanDifference d = *paired_difference(seeds(kA), seeds(kB));
  EXPECT_FALSE(lies_within(d, 0.3));
  EXPECT_FALSE(lies_outside(d, 0.3));
}

TEST(Equivalence, AtTheLimitItself) {
  const MeanDifference exact = {.mean = 0.5, .standard_error = 0, .degrees = 2};
  EXPECT_TRUE(lies_within(exact, 0.5));
  EXPECT_TRUE(lies_within({.mean = 50.0 - 49.9, .degrees = 1, .magnitude = 50}, 0.1)) << "but for rounding errors";
  EXPECT_FALSE(lies_outside(exact, 0.5));
  EXPECT_TRUE(lies_within(exact, 0.51));
  EXPECT_TRUE(lies_outside(exact, 0.49));
  EXPECT_TRUE(is_not_worse(MeanDifference{.mean = -0.5, .standard_error = 0, .degrees = 2}, 0.5));
  EXPECT_FALSE(is_not_worse(MeanDifference{.mean = -0.51, .standard_error = 0, .degrees = 2}, 0.5));
}

TEST(NotWorse, AsksForTheLowerEndAlone) {
  // ttest_1samp(b - a, -δ, alternative="greater"): 0.106, 0.038 for δ = 0.5, 0.59
  EXPECT_TRUE(is_not_worse(*paired_difference(seeds(kA), seeds(kB)), 0.01));
  const MeanDifference opposite = *paired_difference(seeds(kB), seeds(kA));
  EXPECT_FALSE(is_not_worse(opposite, 0.5));
  EXPECT_TRUE(is_not_worse(opposite, 0.59));
}

}  // namespace
}  // namespace tearless::harness::difference_test
