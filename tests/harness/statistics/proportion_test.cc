#include "harness/statistics/proportion.h"

#include <gtest/gtest.h>

namespace tearless::harness::proportion_test {
namespace {

// scipy.stats.binomtest(count, n).proportion_ci(confidence, method="wilson"), SciPy 1.17.1
TEST(WilsonInterval, AgreesWithSciPy) {
  struct Case {
    size_t count, n;
    double confidence, lower, upper;
  };
  const Case cases[] = {
      {0, 5, 0.95, 0, 0.43448246478317476},
      {1, 5, 0.95, 0.036224108632430196, 0.6244653702374747},
      {5, 5, 0.95, 0.5655175352168251, 1},
      {3, 40, 0.95, 0.025836025774588198, 0.19864233524310543},
      {3, 40, 0.90, 0.030370252611738993, 0.17348017873690036},
  };
  for (const Case& c : cases) {
    const Interval interval = *wilson_interval(c.count, c.n, c.confidence);
    EXPECT_NEAR(interval.first, c.lower, 1e-12) << c.count << " of " << c.n;
    EXPECT_NEAR(interval.second, c.upper, 1e-12) << c.count << " of " << c.n;
  }
}

TEST(WilsonInterval, OfNoneAndOfAllEndsExactly) {
  for (const size_t n : {1, 2, 3, 7, 10, 33}) {
    EXPECT_EQ(wilson_interval(0, n)->first, 0);
    EXPECT_EQ(wilson_interval(n, n)->second, 1);
  }
}

TEST(WilsonInterval, OfNoRunsThereIsNone) { EXPECT_EQ(wilson_interval(0, 0), std::nullopt); }

// scipy.stats.binomtest(count, n, alternative="greater").pvalue
TEST(MoreThanHalf, AgreesWithSciPy) {
  EXPECT_DOUBLE_EQ(more_than_half_p(4, 4), 0.0625);
  EXPECT_DOUBLE_EQ(more_than_half_p(5, 5), 0.03125);
  EXPECT_DOUBLE_EQ(more_than_half_p(7, 8), 9.0 / 256);
  EXPECT_EQ(more_than_half_p(0, 5), 1);
  EXPECT_EQ(more_than_half_p(0, 0), 1);
}

// scipy.stats.fisher_exact([[a, n_a - a], [b, n_b - b]]).pvalue
TEST(EqualShares, AgreeWithSciPy) {
  EXPECT_NEAR(equal_shares_p(0, 5, 5, 5), 0.007936507936507936, 1e-12);
  EXPECT_NEAR(equal_shares_p(1, 5, 4, 5), 0.20634920634920634, 1e-12);
  EXPECT_NEAR(equal_shares_p(2, 3, 1, 9), 0.12727272727272726, 1e-12);
  EXPECT_NEAR(equal_shares_p(3, 3, 3, 3), 1, 1e-12);
}

}  // namespace
}  // namespace tearless::harness::proportion_test
