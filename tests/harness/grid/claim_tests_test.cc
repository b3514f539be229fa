// [claims] of a grid: the level of its claims, and the looks at which they are decided. What is refused is among the
// mistakes of views/load_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/grid/expand.h"

namespace tearless::harness::claim_tests_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ClaimTests tests_of(const std::string& keys) {
  return parse_grid(keys + "[axis]\na = [1, 2]\n[[claim]]\ntext = \"t\"\n", "grid.toml").claims;
}

TEST(ClaimTestsOfAGrid, AreOfFivePercentAndWithAllSeedsIfItSaysNothing) {
  for (const char* keys : {"seeds = 3\n", "seeds = 3\n[claims]\n"}) {
    EXPECT_EQ(tests_of(keys).level, 0.05);
    EXPECT_THAT(tests_of(keys).looks, IsEmpty());
  }
}

TEST(ClaimTestsOfAGrid, HaveItsLevelAndLooks) {
  const ClaimTests both = tests_of("seeds = 12\n[claims]\nlevel = 0.01\nlooks = [3, 5, 8, 12]\n");
  EXPECT_EQ(both.level, 0.01);
  EXPECT_THAT(both.looks, ElementsAre(3, 5, 8, 12));
  EXPECT_EQ(both.location, "grid.toml:4");
}

TEST(ClaimTestsOfAGrid, MayHaveEightLooksOfTwoToAHundredSeeds) {
  EXPECT_THAT(tests_of("seeds = 100\n[claims]\nlooks = [2, 3, 4, 5, 6, 7, 99, 100]\n").looks,
              ElementsAre(2, 3, 4, 5, 6, 7, 99, 100));
  EXPECT_THAT(tests_of("seeds = [9, 4]\n[claims]\nlooks = [2]\n").looks, ElementsAre(2)) << "as without looks";
}

}  // namespace
}  // namespace tearless::harness::claim_tests_test
