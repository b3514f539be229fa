#include "harness/statistics/power.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tearless::harness::power_test {
namespace {

TEST(DetectableDifference, ShrinksWithTheNumberOfSeeds) {
  EXPECT_NEAR(*detectable_difference(1, 2), 5.4, 0.05);
  EXPECT_NEAR(*detectable_difference(1, 3), 3.0, 0.05);
  EXPECT_NEAR(*detectable_difference(1, 4), 2.4, 0.05);
  EXPECT_NEAR(*detectable_difference(1, 5), 2.0, 0.05);
  EXPECT_NEAR(*detectable_difference(1, 10), 1.3, 0.05);
  EXPECT_DOUBLE_EQ(*detectable_difference(0.3, 5), 0.3 * *detectable_difference(1, 5));
}

TEST(DetectableDifference, AgreesWithSciPy) {
  // (t.ppf(0.975, 8) + t.ppf(0.8, 8)) * sqrt(2 / 5), the same with ppf(0.9, …), and with ppf(0.995, …)
  EXPECT_NEAR(*detectable_difference(1, 5), 2.0206281651, 1e-9);
  EXPECT_NEAR(*detectable_difference(1, 5, 0.9), 2.3418686421, 1e-9);
  EXPECT_NEAR(*detectable_difference(1, 5, 0.8, 0.01), 2.6843163727, 1e-9);
}

TEST(DetectableDifference, NeedsTwoSeeds) {
  EXPECT_EQ(detectable_difference(1, 0), std::nullopt);
  EXPECT_EQ(detectable_difference(1, 1), std::nullopt);
}

TEST(PooledDeviation, WeighsCellsByTheirDegreesOfFreedom) {
  // variances 1 of three values and 4.5 of two: (2 · 1 + 1 · 4.5) / 3
  const std::vector<std::vector<double>> cells = {{1, 2, 3}, {7}, {0, 3}, {}};
  EXPECT_DOUBLE_EQ(*pooled_deviation(cells), std::sqrt(6.5 / 3));
}

TEST(PooledDeviation, NeedsACellWithTwoValues) {
  EXPECT_EQ(pooled_deviation({}), std::nullopt);
  EXPECT_EQ(pooled_deviation(std::vector<std::vector<double>>{{1}, {2}}), std::nullopt);
}

TEST(DeviationInterval, AgreesWithSciPy) {
  // [np.sqrt(nu / stats.chi2.ppf(q, nu)) for q in (0.9, 0.1)] of 2 and of 8 degrees of freedom
  const auto [low, high] = deviation_interval(1, 2);
  EXPECT_NEAR(low, 0.65901023, 1e-7);
  EXPECT_NEAR(high, 3.08078262, 1e-7);
  EXPECT_NEAR(deviation_interval(10, 8).first, 7.73777881, 1e-7);
  EXPECT_GT(deviation_interval(1, 2, 0.95).second, high);
}

using enum Design;

TEST(PowerOfTheTTest, AgreesWithStatsmodels) {
  // TTestPower().power(effect_size=1, nobs=2, alpha=0.025, alternative='larger'), and so on; as R's power.t.test of
  // type "paired" at 0.05
  EXPECT_NEAR(power_of({.to_lower = 1}, 2), 0.0905797187, 1e-8);
  EXPECT_NEAR(power_of({.to_lower = 1}, 5), 0.4013202852, 1e-8);
  EXPECT_NEAR(power_of({.to_lower = 1}, 10), 0.8030962087, 1e-8);
  EXPECT_NEAR(power_of({.to_lower = 0.5}, 34), 0.8077766855, 1e-8);
}

TEST(PowerOfTheTTest, WithoutADifferenceIsTheLevelOfItsSide) {
  for (const size_t n : {2, 5, 1000}) EXPECT_NEAR(power_of({.level = 0.01, .to_lower = 0}, n), 0.01, 1e-8);
}

TEST(PowerOfWelchsTest, AgreesWithNumPy) {
  // 4·10⁶ pairs of cells with a difference of 1 (the last: 2), tested as stats.ttest_ind(equal_var=False) does
  EXPECT_NEAR(power_of({.design = kWelch, .to_lower = 1}, 2), 0.043366, 0.0005);
  EXPECT_NEAR(power_of({.design = kWelch, .to_lower = 1}, 3), 0.116096, 0.0007);
  EXPECT_NEAR(power_of({.design = kWelch, .to_lower = 1}, 10), 0.556553, 0.001);
  EXPECT_NEAR(power_of({.design = kWelch, .to_lower = 2}, 5), 0.766890, 0.001);
}

TEST(PowerOfEquivalence, AgreesWithAnIntegralOverTheMean) {
  // integrate.quad over the mean m of norm.pdf(m, scale=1/√n) chi2.cdf((n − 1) n (min(m + lower, upper − m) / t)², n −
  // 1)
  EXPECT_NEAR(power_of({.level = 0.05, .to_lower = 1, .to_upper = 1}, 2), 0.0864742765, 1e-8);
  EXPECT_NEAR(power_of({.level = 0.05, .to_lower = 1, .to_upper = 1}, 5), 0.2938530723, 1e-8);
  EXPECT_NEAR(power_of({.level = 0.05, .to_lower = 1, .to_upper = 1}, 10), 0.7952072671, 1e-8);
  EXPECT_NEAR(power_of({.level = 0.05, .to_lower = 0.7, .to_upper = 1.3}, 10), 0.6384534051, 1e-8);
  // of Welch's test as above, by simulation
  EXPECT_NEAR(power_of({.design = kWelch, .level = 0.05, .to_lower = 1, .to_upper = 1}, 3), 0.022339, 0.0004);
  EXPECT_NEAR(power_of({.design = kWelch, .level = 0.05, .to_lower = 1, .to_upper = 1}, 10), 0.384676, 0.001);
}

TEST(LeastSeeds, AreTheFirstThatFindTheDifferenceFourTimesOutOfFive) {
  // R: ceiling(power.t.test(delta=1, power=0.8, type="paired")$n) is 10, of delta=0.5 34
  EXPECT_EQ(least_seeds({.to_lower = 1}), 10U);
  EXPECT_EQ(least_seeds({.to_lower = 0.5}), 34U);
  for (const PlannedTest& test :
       {PlannedTest{.to_lower = 2}, {.design = kWelch}, {.level = 0.05, .to_lower = 0.5, .to_upper = 0.5}}) {
    const size_t n = *least_seeds(test);
    EXPECT_GE(power_of(test, n), 0.8);
    EXPECT_LT(power_of(test, n - 1), 0.8);
  }
  EXPECT_EQ(least_seeds({.to_lower = 1000}), 2U);
  EXPECT_EQ(least_seeds({.to_lower = 0.01}), std::nullopt);
}

struct OfNumPy {
  std::vector<double> decided;
  double power, seeds;
};

void expect_at_looks(const PlannedTest& test, const OfNumPy& expected) {
  const PowerAtLooks found = power_at_looks(test, std::vector<size_t>{3, 5, 8, 12});
  constexpr double kTolerance = 0.009;  // four standard errors
  for (size_t look = 0; look < 4; ++look) EXPECT_NEAR(found.decided[look], expected.decided[look], kTolerance);
  EXPECT_NEAR(found.power, expected.power, kTolerance);
  EXPECT_NEAR(found.seeds, expected.seeds, 0.06);
}

TEST(PowerAtLooks, AgreesWithNumPy) {
  // 10⁶ paths (of Welch's test 3·10⁵) at the levels of constant_level() for 5 %
  expect_at_looks({.level = 0.015706 / 2, .to_lower = 1}, {{0.0602, 0.2088, 0.4759, 0.7543}, 0.7541, 9.350});
  expect_at_looks({.level = 0.015706 / 2, .to_lower = 2}, {{0.1833, 0.6849, 0.9779, 0.9998}, 0.9998, 5.667});
  expect_at_looks({.design = kWelch, .level = 0.013093 / 2, .to_lower = 2},
                  {{0.1186, 0.4952, 0.8599, 0.9822}, 0.9822, 6.838});
  expect_at_looks({.level = 0.016917, .to_lower = 1, .to_upper = 1},
                  {{0.0423, 0.1223, 0.3443, 0.7087}, 0.7078, 10.171});
}

TEST(PowerAtLooks, OfOneLookIsThatOfTheTest) {
  const PlannedTest test = {.to_lower = 1};
  const PowerAtLooks found = power_at_looks(test, std::vector<size_t>{10});
  EXPECT_NEAR(found.power, power_of(test, 10), 0.007);
  EXPECT_EQ(found.seeds, 10);
}

TEST(PowerAtLooks, CountsADecisionForTheWrongSideAsNoPower) {
  const PowerAtLooks found = power_at_looks({.to_lower = 0}, std::vector<size_t>{5});
  EXPECT_NEAR(found.decided[0], 0.05, 0.004);
  EXPECT_NEAR(found.power, 0.025, 0.003);
}

}  // namespace
}  // namespace tearless::harness::power_test
