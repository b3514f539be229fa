#include "harness/statistics/seed_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tearless::harness::seed_value_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SeedPairs, AreOfTheSeedsThatBothHaveInTheOrderOfTheFirst) {
  const std::vector<SeedValue> a = {{3, 30.5}, {1, 10.25}, {7, 70}}, b = {{1, 10}, {2, 20}, {3, 30}};
  const SeedPairs pairs = pairs_of(a, b);
  EXPECT_THAT(pairs.first, ElementsAre(30.5, 10.25));
  EXPECT_THAT(pairs.second, ElementsAre(30, 10));
  EXPECT_THAT(pairs.differences(), ElementsAre(0.5, 0.25));
}

TEST(SeedPairs, WithoutACommonSeedThereAreNone) {
  EXPECT_EQ(pairs_of(std::vector<SeedValue>{{1, 10}}, std::vector<SeedValue>{{2, 10}}).size(), 0);
  EXPECT_THAT(pairs_of({}, {}).differences(), IsEmpty());
}

TEST(SeedPairs, ADifferenceThatIsARoundingErrorIsNone) {
  const std::vector<SeedValue> a = {{1, 0.1 + 0.2}, {2, 27.7}}, b = {{1, 0.3}, {2, 27.7 - 1e-9}};
  ASSERT_NE(a[0].value, b[0].value);
  const std::vector<double> differences = pairs_of(a, b).differences();
  EXPECT_EQ(differences[0], 0);
  EXPECT_NEAR(differences[1], 1e-9, 1e-12);
}

TEST(SeedValues, AreNumbersWithoutTheirSeeds) {
  EXPECT_THAT(numbers_of(std::vector<SeedValue>{{2, 1.5}, {1, 0.5}}), ElementsAre(1.5, 0.5));
}

}  // namespace
}  // namespace tearless::harness::seed_value_test
