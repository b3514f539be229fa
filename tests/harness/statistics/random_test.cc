#include "harness/statistics/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace tearless::harness::random_test {
namespace {

TEST(Random, IsSplitMix64) {
  // the published first numbers of its reference implementation for the seed 1234567
  Random random(1234567);
  for (const uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u})
    EXPECT_EQ(random.bits(), expected);
}

TEST(Random, BelowDrawsEachNumberEquallyOften) {
  Random random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);  // four standard deviations are 370
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0);
}

}  // namespace
}  // namespace tearless::harness::random_test
