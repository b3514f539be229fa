// Means and spreads against values worked by hand.
#include "harness/table/stats.h"

#include <gtest/gtest.h>

#include <vector>

namespace tearless::harness::stats_test {
namespace {

TEST(Stats, OfNothingThereIsNothing) {
  EXPECT_EQ(mean({}), std::nullopt);
  EXPECT_EQ(sample_deviation({}), std::nullopt);
  EXPECT_EQ(lower_median({}), std::nullopt);
}

TEST(Stats, OneValueHasNoSpread) {
  const std::vector<double> one{3.5};
  EXPECT_EQ(mean(one), 3.5);
  EXPECT_EQ(sample_deviation(one), std::nullopt);
}

TEST(Stats, SpreadDividesByOneLessThanTheCount) {
  const std::vector<double> values{2, 4, 4, 4, 5, 5, 7, 9};  // squares around 5 sum to 32
  EXPECT_DOUBLE_EQ(*mean(values), 5);
  EXPECT_DOUBLE_EQ(*sample_deviation(values), 2.1380899352993952);  // √(32/7)
}

TEST(Stats, SpreadKeepsItsDigitsFarFromZero) {
  const std::vector<double> values{1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_DOUBLE_EQ(*sample_deviation(values), 1);
}

TEST(Stats, MedianOfAnEvenCountIsTheLowerOne) {
  EXPECT_EQ(lower_median(std::vector<double>{4, 1, 3, 2}), 2);
  EXPECT_EQ(lower_median(std::vector<double>{9, 1, 5}), 5);
}

}  // namespace
}  // namespace tearless::harness::stats_test
