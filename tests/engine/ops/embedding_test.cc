// Position numbers against the values of docs/spec/knobs.md §6.
#include "engine/ops/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tearless::engine::embedding_test {
namespace {

TEST(Positions, InterleaveSineAndCosine) {
  const at::Tensor table = sinusoid_positions(3, 512);
  const float* one = table.const_data_ptr<float>() + 512;
  EXPECT_NEAR(one[0], 0.841471, 1e-6);
  EXPECT_NEAR(one[1], 0.540302, 1e-6);
  EXPECT_NEAR(one[2], 0.821856, 1e-6);
  EXPECT_NEAR(one[3], 0.569695, 1e-6);
  for (int64_t c = 0; c < 512; ++c) EXPECT_EQ(table.const_data_ptr<float>()[c], c % 2 == 0 ? 0.0f : 1.0f);
}

TEST(Positions, TakeOddWidthsAndLongSentences) {
  const at::Tensor table = sinusoid_positions(5000, 5);
  const float* last = table.const_data_ptr<float>() + 4999 * 5;
  EXPECT_NEAR(last[0], std::sin(4999.0), 1e-6);
  EXPECT_NEAR(last[4], std::sin(4999.0 / std::pow(10000.0, 4.0 / 5.0)), 1e-6);
}

}  // namespace
}  // namespace tearless::engine::embedding_test
