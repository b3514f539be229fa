#include "harness/statistics/looks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "harness/statistics/difference.h"

namespace tearless::harness::looks_test {
namespace {

using enum Sides;
using enum Design;
using Looks = std::vector<size_t>;

const Looks kUsual = {3, 5, 8, 12};
constexpr double kOfSimulations = 0.02;  // relative: four standard errors of our simulation and of NumPy's

TEST(ConstantLevel, OfOneLookIsTheLevelItself) {
  EXPECT_EQ(constant_level(Looks{5}, 0.05, kTwo, kPaired), 0.05);
  EXPECT_EQ(constant_level(Looks{2}, 0.05 / 3, kOne, kWelch), 0.05 / 3);
}

TEST(ConstantLevel, AgreesWithNumPy) {
  // np.quantile(p, level) of 2·10⁶ paths, p the least over the looks of scipy.stats.ttest_1samp(normals[:, :n], 0); its
  // standard error is 0.6 %
  const auto expect = [](const Looks& looks, double level, Sides sides, double of_numpy) {
    EXPECT_NEAR(constant_level(looks, level, sides, kPaired), of_numpy, kOfSimulations * of_numpy);
  };
  expect(kUsual, 0.05, kTwo, 0.015691);
  expect(kUsual, 0.05, kOne, 0.016915);
  expect(kUsual, 0.025, kOne, 0.007835);
  expect(kUsual, 0.05 / 3, kTwo, 0.004837);
  expect({2, 3, 4, 5}, 0.05, kTwo, 0.016470);
}

TEST(ConstantLevel, OfWelchsTestIsThatOfTheWorstRatioOfDeviations) {
  // likewise, of ttest_ind(a, b, equal_var=False): with the ratios 1, 2, 3, 5 and 10 it is 0.01992, 0.01714, 0.01481,
  // 0.01318 and 0.01324; of 2, 3, 4 and 5 seeds the worst is 10
  EXPECT_NEAR(constant_level(kUsual, 0.05, kTwo, kWelch), 0.01318, kOfSimulations * 0.01318);
  EXPECT_NEAR(constant_level(kUsual, 0.05, kOne, kWelch), 0.01533, kOfSimulations * 0.01533);
  EXPECT_NEAR(constant_level(Looks{2, 3, 4, 5}, 0.05, kTwo, kWelch), 0.01236, kOfSimulations * 0.01236);
}

TEST(ConstantLevel, IsTheSameOnEveryMachine) {
  EXPECT_DOUBLE_EQ(constant_level(kUsual, 0.05, kTwo, kPaired), 0.015706);
  EXPECT_DOUBLE_EQ(constant_level(kUsual, 0.05, kOne, kPaired), 0.016917);
  EXPECT_DOUBLE_EQ(constant_level(kUsual, 0.05, kTwo, kWelch), 0.013093);
  EXPECT_DOUBLE_EQ(constant_level(kUsual, 0.05 / 7, kTwo, kWelch), 0.001022);
  EXPECT_DOUBLE_EQ(constant_level(Looks{10, 20, 30, 40, 55, 70, 85, 100}, 0.05, kTwo, kPaired), 0.010874);
}

TEST(ConstantLevel, IsNotSpentOnALookWithoutANewPair) {
  EXPECT_EQ(constant_level(Looks{3, 5, 5, 8, 12, 12}, 0.05, kTwo, kPaired),
            constant_level(kUsual, 0.05, kTwo, kPaired));
  EXPECT_EQ(constant_level(Looks{4, 4, 4}, 0.05, kTwo, kPaired), 0.05);
}

TEST(ConstantLevel, DoesNotDependOnWhatWasAskedBefore) {
  const Looks looks = {2, 6};
  const double small = constant_level(looks, 0.01, kTwo, kPaired), great = constant_level(looks, 0.2, kTwo, kPaired);
  EXPECT_LT(small, 0.01);
  EXPECT_NEAR(great, 0.1105, kOfSimulations * 0.1105);  // of NumPy
  EXPECT_EQ(constant_level(looks, 0.01, kTwo, kPaired), small);
}

/// The share of comparisons of equal cells that any look calls different, where b has this many times the deviation of
/// a.
double share_of_errors(const Looks& looks, bool is_paired, double ratio, double level) {
  constexpr int kTrials = 10'000;
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  int errors = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<SeedValue> a, b;
    for (size_t seed = 0; seed < looks.back(); ++seed) {
      a.push_back({static_cast<int64_t>(seed), normal(random)});
      b.push_back({static_cast<int64_t>(seed), ratio * normal(random)});
    }
    errors += std::ranges::any_of(looks, [&](size_t n) {
      return difference_of(std::span(a).first(n), std::span(b).first(n), is_paired)->p() <= level;
    });
  }
  return static_cast<double>(errors) / kTrials;
}

constexpr double kOfTrials = 0.009;  // four standard deviations

TEST(ConstantLevel, LetsAllLooksErrInFivePercent) {
  EXPECT_NEAR(share_of_errors(kUsual, true, 1, constant_level(kUsual, 0.05, kTwo, kPaired)), 0.05, kOfTrials);
  EXPECT_GT(share_of_errors(kUsual, true, 1, 0.05), 0.12);
}

TEST(ConstantLevel, LetsWelchsTestErrInNoMoreThanFivePercent) {
  const double level = constant_level(kUsual, 0.05, kTwo, kWelch);
  EXPECT_LT(share_of_errors(kUsual, false, 1, level), 0.05);
  EXPECT_NEAR(share_of_errors(kUsual, false, 5, level), 0.05, kOfTrials);
}

}  // namespace
}  // namespace tearless::harness::looks_test
