// The sign-flip test against counts made by hand, against SciPy 1.17.1, and against what its ties must not depend on.
#include "harness/statistics/sign_flip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tearless::harness::sign_flip_test {
namespace {

/// Of pairs with these differences.
double p_of(const std::vector<double>& differences, double base = 0, const Sampling& sampling = {}) {
  std::vector<SeedValue> a, b;
  for (const double difference : differences) {
    const auto seed = static_cast<int64_t>(a.size());
    a.push_back({seed, base + difference});
    b.push_back({seed, base});
  }
  return *sign_flip_p(a, b, sampling);
}

TEST(SignFlip, WorkedByHand) {
  // |±1 ±2 ±4| ≥ 3: 7, 5, 3 and their opposites of the eight sums; the difference of 1 and 4 from 2 is 3
  EXPECT_EQ(p_of({1, -2, 4}), 6.0 / 8);
  EXPECT_EQ(p_of({1, 2, 4}), 2.0 / 8);
  EXPECT_EQ(p_of({-1, 2, 4}), 4.0 / 8);
}

// permutation_test((d, zeros), lambda u, v: np.mean(u - v), permutation_type="samples", n_resamples=np.inf).pvalue
TEST(SignFlip, AgreesWithSciPy) {
  EXPECT_EQ(p_of({0.27, 0.44, 0.02, 0.63, 0.39}), 0.0625);
  EXPECT_EQ(p_of({1, 2, 3}), 0.25);
  EXPECT_EQ(p_of({0.5, 0.3, -0.1, 0.2, 0.4, -0.3, 0.6}), 0.140625);
  EXPECT_EQ(p_of({0, 0.2, 0.4, -0.2, 0.4}), 0.375);
}

TEST(SignFlip, CountsTiesWhateverTheScoresAreAddedTo) {
  // 27.7 + 0.1 − 27.7 is not 0.1: sums that are equal differ by rounding errors
  for (const double base : {0.0, 27.7, 33.333, -5.1, 1e6}) {
    EXPECT_EQ(p_of({0.1, 0.2, 0.3}, base), 0.25) << base;
    EXPECT_EQ(p_of({0.1, 0.2, -0.3}, base), 1) << base;
    EXPECT_EQ(p_of({0, 0.2, 0.4, -0.2, 0.4}, base), 0.375) << base;
    EXPECT_EQ(p_of({0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, base), 1.0 / 32) << base;
    EXPECT_EQ(p_of({0.3, -0.1, -0.1, -0.1, 0.1}, base), 1) << base;  // the sum is 0.1 and no other is smaller
  }
}

TEST(SignFlip, OfEqualCellsIsOne) {
  EXPECT_EQ(p_of({0, 0, 0}, 27.7), 1);
  EXPECT_EQ(p_of({0, 0, 0}, 0), 1);
}

TEST(SignFlip, HasItsLeastPWhereAllDifferencesHaveOneSign) {
  std::vector<double> differences;
  for (size_t n = 1; n <= kMaxExactSignFlips; ++n) {
    differences.push_back(0.1 + 0.01 * static_cast<double>(n));
    EXPECT_EQ(p_of(differences), std::pow(2.0, 1 - static_cast<int>(n))) << n;
    EXPECT_EQ(least_sign_flip_p(n), p_of(differences)) << n;
  }
}

TEST(SignFlip, LeastPSaysWhichNumbersOfSeedsCannotDecide) {
  EXPECT_EQ(least_sign_flip_p(0), 1);
  EXPECT_EQ(least_sign_flip_p(1), 1);
  EXPECT_EQ(least_sign_flip_p(3), 0.25);
  EXPECT_EQ(least_sign_flip_p(5), 0.0625);
  EXPECT_EQ(least_sign_flip_p(6), 0.03125);
  EXPECT_DOUBLE_EQ(least_sign_flip_p(21, {.samples = 999}), 1e-3);
}

TEST(SignFlip, NeedsACommonSeed) {
  EXPECT_EQ(sign_flip_p(std::vector<SeedValue>{{1, 1}}, std::vector<SeedValue>{{2, 1}}), std::nullopt);
  EXPECT_EQ(sign_flip_p({}, {}), std::nullopt);
}

TEST(SignFlip, IgnoresSeedsThatOneSideLacks) {
  const std::vector<SeedValue> a = {{1, 2}, {2, 3}, {3, 4}, {4, -100}}, b = {{5, 100}, {3, 1}, {2, 1}, {1, 1}};
  EXPECT_EQ(*sign_flip_p(a, b), 0.25);
}

TEST(SignFlip, DrawsSignsOfMorePairs) {
  // 30 differences of 1, of which k are −1: P(|Σ| ≥ 30 − 2k), by the binomial distribution
  std::vector<double> differences(30, 1.0);
  EXPECT_DOUBLE_EQ(p_of(differences, 0, {.samples = 999}), 1e-3);  // 2^−29: none is drawn
  for (int i = 0; i < 10; ++i) differences[static_cast<size_t>(3 * i)] = -1;
  constexpr double kExact = 0.09873714670538902;  // binom.cdf(10, 30, 0.5) * 2 = 0.0987
  for (const uint64_t seed : {1, 2, 3}) {
    const double p = p_of(differences, 27.7, {.samples = 10'000, .seed = seed});
    EXPECT_NEAR(p, kExact, 4 * std::sqrt(kExact * (1 - kExact) / 10'000)) << "seed " << seed;
  }
}

TEST(SignFlip, DrawsAllSignsOfMoreThan64Pairs) {
  std::vector<double> differences(100, 0.0);
  for (size_t i = 70; i < 100; ++i) differences[i] = i < 80 ? -1 : 1;  // as above, of the last 30
  constexpr double kExact = 0.09873714670538902;
  EXPECT_NEAR(p_of(differences), kExact, 4 * std::sqrt(kExact * (1 - kExact) / 10'000));
}

TEST(SignFlip, DrawsTheSameSignsForTheSameSeed) {
  std::vector<double> differences;
  for (int i = 0; i < 25; ++i) differences.push_back(i % 3 == 0 ? -1.5 : 1.0 + 0.01 * i);
  EXPECT_EQ(p_of(differences, 0, {.seed = 5}), p_of(differences, 0, {.seed = 5}));
  EXPECT_NE(p_of(differences, 0, {.seed = 5}), p_of(differences, 0, {.seed = 6}));
}

}  // namespace
}  // namespace tearless::harness::sign_flip_test
