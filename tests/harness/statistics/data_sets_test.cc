#include "harness/statistics/data_sets.h"

#include <gtest/gtest.h>

#include <vector>

namespace tearless::harness::data_sets_test {
namespace {

TEST(DataSets, BetterOnAllHasTheLargestP) {
  EXPECT_EQ(p_on_all(std::vector<double>{0.001, 0.009, 0.004}), 0.009);
  EXPECT_EQ(p_on_all(std::vector<double>{0.2}), 0.2);
  EXPECT_EQ(p_on_all({}), std::nullopt);
}

TEST(DataSets, BetterOnKIsWhatHolmRejects) {
  const std::vector<double> p = {0.04, 0.01, 0.03, 0.5};  // adjusted: 0.09, 0.04, 0.09, 0.5
  EXPECT_EQ(rejected_by_holm(p), 1);
  EXPECT_EQ(rejected_by_holm(p, 0.1), 3);
  EXPECT_EQ(rejected_by_holm(p, 0.01), 0);
  EXPECT_EQ(rejected_by_holm({}), 0);
}

TEST(DataSets, ThePAtTheLevelIsRejected) { EXPECT_EQ(rejected_by_holm(std::vector<double>{0.025, 0.025}, 0.05), 2); }

}  // namespace
}  // namespace tearless::harness::data_sets_test
