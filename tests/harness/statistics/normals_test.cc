#include "harness/statistics/normals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tearless::harness::normals_test {
namespace {

std::vector<float> drawn(size_t n, uint64_t seed) {
  std::vector<float> deviates(n);
  Normals(seed).fill(deviates);
  return deviates;
}

TEST(Normals, HaveTheMomentsOfTheNormalDistribution) {
  constexpr size_t kDrawn = 1'000'000;
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, last = 0;
  for (const double z : drawn(kDrawn, 3)) {
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    neighbours += z * last;
    last = z;
  }
  // within four standard errors
  EXPECT_NEAR(sum / kDrawn, 0, 0.004);
  EXPECT_NEAR(squares / kDrawn, 1, 4 * std::sqrt(2.0 / kDrawn));
  EXPECT_NEAR(fourth / kDrawn, 3, 4 * std::sqrt(96.0 / kDrawn));
  EXPECT_NEAR(neighbours / kDrawn, 0, 0.004);
}

TEST(Normals, AreTheSameOnEveryMachine) {
  EXPECT_EQ(drawn(5, 1), (std::vector<float>{-0.352244169F, 0.0883340165F, -0.917692423F, 0.167639285F, 1.42869663F}));
  EXPECT_NE(drawn(5, 1), drawn(5, 2));
}

TEST(Normals, GoOnWhereTheLastOnesEnded) {
  Normals normals(1);
  std::vector<float> first(4), second(4);
  normals.fill(first);
  normals.fill(second);
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(first, drawn(8, 1));
}

}  // namespace
}  // namespace tearless::harness::normals_test
