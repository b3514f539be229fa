// Position numbers against the values of docs/spec/knobs.md §6.
#include "engine/ops/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
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

// d = 6: m = 3 and r = ln(10⁴) / 2, so that e^(-ir) = 1, 0.01, 0.0001.
TEST(Positions, InHalvesHaveAllSinesBeforeAllCosines) {
  const at::Tensor table = sinusoid_positions(4, 6, PositionForm::kHalves);
  const float* three = table.const_data_ptr<float>() + 3 * 6;
  EXPECT_NEAR(three[0], 0.141120, 1e-6);
  EXPECT_NEAR(three[1], 0.029996, 1e-6);
  EXPECT_NEAR(three[2], 0.000300, 1e-6);
  EXPECT_NEAR(three[3], -0.989992, 1e-6);
  EXPECT_NEAR(three[4], 0.999550, 1e-6);
  EXPECT_NEAR(three[5], 1.000000, 1e-6);
  const at::Tensor wide = sinusoid_positions(2, 512, PositionForm::kHalves);
  const float* one = wide.const_data_ptr<float>() + 512;
  EXPECT_NEAR(one[1], std::sin(std::exp(-0.0361190)), 1e-6);
  EXPECT_NEAR(one[257], std::cos(std::exp(-0.0361190)), 1e-6);
  EXPECT_NEAR(one[255], 0.0001, 1e-9) << "the slowest: 1 / 10⁴";
}

TEST(Positions, InHalvesOfAnOddWidthEndWithZero) {
  const at::Tensor table = sinusoid_positions(3, 5, PositionForm::kHalves);  // m = 2, r = ln(10⁴)
  const float* two = table.const_data_ptr<float>() + 2 * 5;
  EXPECT_NEAR(two[0], std::sin(2.0), 1e-6);
  EXPECT_NEAR(two[1], 0.0002, 1e-8);
  EXPECT_NEAR(two[2], std::cos(2.0), 1e-6);
  EXPECT_NEAR(two[3], 1, 1e-6);
  EXPECT_EQ(two[4], 0);
  const at::Tensor narrow = sinusoid_positions(3, 2, PositionForm::kHalves);
  EXPECT_NEAR(narrow.const_data_ptr<float>()[4], std::sin(2.0), 1e-6);
  EXPECT_NEAR(narrow.const_data_ptr<float>()[5], std::cos(2.0), 1e-6);
}

TEST(Positions, OfTheOldBugHaveTheSineOfEachAngleTwice) {
  const at::Tensor table = sinusoid_positions(2, 512, PositionForm::kSinOnly);
  const float* one = table.const_data_ptr<float>() + 512;
  EXPECT_NEAR(one[0], 0.841471, 1e-6);
  EXPECT_NEAR(one[1], 0.841471, 1e-6);
  EXPECT_NEAR(one[2], 0.821856, 1e-6);
  EXPECT_NEAR(one[3], 0.821856, 1e-6);
}

TEST(Positions, MayStartAtAnyNumber) {
  for (const PositionForm form : {PositionForm::kInterleaved, PositionForm::kHalves, PositionForm::kSinOnly}) {
    const at::Tensor from_0 = sinusoid_positions(9, 7, form), from_2 = sinusoid_positions(7, 7, form, 2);
    EXPECT_TRUE(at::equal(from_2, from_0.slice(0, 2)));
  }
}

}  // namespace
}  // namespace tearless::engine::embedding_test
