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

}  // namespace
}  // namespace tearless::harness::power_test
