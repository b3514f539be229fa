#include "harness/statistics/holm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tearless::harness::holm_test {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Holm, WorkedByHandInTheOrderGiven) {
  // sorted: 4 · 0.005 = 0.02, 3 · 0.01 = 0.03, 2 · 0.03 = 0.06, 1 · 0.04 → 0.06, the greatest so far
  EXPECT_THAT(holm(std::vector<double>{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleEq(0.03), DoubleEq(0.06), DoubleEq(0.06), DoubleEq(0.02)));
}

TEST(Holm, StopsAtOne) { EXPECT_THAT(holm(std::vector<double>{0.4, 0.9, 0.5}), ElementsAre(1, 1, 1)); }

TEST(Holm, OfEqualPsEachIsTheSame) {
  EXPECT_THAT(holm(std::vector<double>{0.01, 0.01, 0.01}), ElementsAre(DoubleEq(0.03), DoubleEq(0.03), DoubleEq(0.03)));
}

TEST(Holm, OfOneTestChangesNothing) {
  EXPECT_THAT(holm(std::vector<double>{0.04}), ElementsAre(0.04));
  EXPECT_THAT(holm({}), IsEmpty());
}

}  // namespace
}  // namespace tearless::harness::holm_test
