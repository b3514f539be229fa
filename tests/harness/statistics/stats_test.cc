// Means and spreads against values worked by hand.
#include "harness/statistics/stats.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
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

// scipy 1.17: t(n − 1, scale = s √(1 / runs + 1 / n)).interval(0.95)
TEST(Stats, APredictionIntervalIsOfTheMeanOfSoManyFurtherRuns) {
  const std::vector<double> three{27.1, 27.9, 28.3}, five{1, 2, 4, 8, 16};
  EXPECT_NEAR(*half_prediction_interval(three, 1), 3.035666426877405, 1e-12);
  EXPECT_NEAR(*half_prediction_interval(three, 3), 2.1465403158653493, 1e-12);
  EXPECT_NEAR(*half_prediction_interval(five, 2), 14.168033698205392, 1e-12);
  EXPECT_NEAR(*half_prediction_interval(std::vector{27.1, 28.3}, 1), 13.204675304656114, 1e-12);
  EXPECT_EQ(half_prediction_interval(std::vector{28.3}, 1), std::nullopt);
}

TEST(Stats, SpreadKeepsItsDigitsFarFromZero) {
  const std::vector<double> values{1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_DOUBLE_EQ(*sample_deviation(values), 1);
}

TEST(Stats, EqualValuesAreTheirMeanAndHaveNoSpread) {
  for (const double value : {27.7, 0.1, -28.2, 1e-9, 1e20, 5e-324, 0.912 * 100}) {
    for (const size_t count : {2, 3, 5, 7, 10, 49, 1000}) {
      const std::vector<double> values(count, value);
      EXPECT_EQ(mean(values), value) << count;
      EXPECT_EQ(sample_deviation(values), 0) << value << ", " << count;
    }
  }
}

TEST(Stats, WhatRoundingMakesOfOneValueIsNoSpread) {
  EXPECT_EQ(sample_deviation(std::vector<double>{0.1 + 0.2, 0.3, 0.3}), 0);
  EXPECT_EQ(sample_deviation(std::vector<double>{0.07 * 100, 7}), 0);  // percent
  EXPECT_EQ(sample_deviation(std::vector<double>{27.7, std::nextafter(27.7, 28), std::nextafter(27.7, 27)}), 0);
  EXPECT_EQ(sample_deviation(std::vector<double>{1e9, std::nextafter(1e9, 2e9)}), 0);
  EXPECT_EQ(mean(std::vector<double>{-0.01, 0.01, -0.02, 0.01, 0.01}), 0);  // its terms cancel but for rounding
  EXPECT_GT(*sample_deviation(std::vector<double>{1, 1 + 1e-12}), 0);
  EXPECT_GT(*sample_deviation(std::vector<double>{1e9, 1e9 + 0.001}), 0);
  EXPECT_EQ(mean(std::vector<double>{1e20, -1e20, 3e9}), 1e9);
}

// Values that are multiples of 1/1024 are exact, and so are their sums as integers.
TEST(Stats, OfRandomValuesAreThoseOfExactIntegersAtAnyOffset) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto offset = static_cast<int64_t>(std::array{0.0, 28.0, 1e6, 1e9}[random() % 4]) * 1024;
    const size_t count = 2 + random() % 20;
    std::vector<double> values;
    __extension__ __int128 sum = 0, squares = 0;
    for (size_t k = 0; k < count; ++k) {
      const int64_t whole = offset + static_cast<int64_t>(random() % 4096);
      values.push_back(static_cast<double>(whole) / 1024);
      sum += whole;
      squares += static_cast<decltype(squares)>(whole) * whole;
    }
    const auto n = static_cast<int64_t>(count);
    const auto exact = std::sqrt(static_cast<long double>(n * squares - sum * sum) / (n * (n - 1))) / 1024;
    EXPECT_DOUBLE_EQ(*mean(values), static_cast<double>(static_cast<long double>(sum) / (1024 * n)));
    EXPECT_DOUBLE_EQ(*sample_deviation(values), static_cast<double>(exact));
  }
}

TEST(Stats, OfTheGreatestNumbersAreFinite) {
  const std::vector<double> values{1e308, 1e308, -1e308};
  EXPECT_DOUBLE_EQ(*mean(values), 1e308 / 3);
  EXPECT_DOUBLE_EQ(*sample_deviation(values), 1.1547005383792515e308);  // 2/√3
}

TEST(Stats, MedianOfAnEvenCountIsTheLowerOne) {
  EXPECT_EQ(lower_median(std::vector<double>{4, 1, 3, 2}), 2);
  EXPECT_EQ(lower_median(std::vector<double>{9, 1, 5}), 5);
}

}  // namespace
}  // namespace tearless::harness::stats_test
