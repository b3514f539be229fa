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

}  // namespace
}  // namespace tearless::harness::data_sets_test
