// Rows of a batch's numbers, and rows of another width in the same memory.
#include "engine/ops/images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/engine/ops/op_check.h"

namespace tearless::engine::input_rows_test {
namespace {

const at::Tensor& on_processor() {
  static const at::Tensor like = at::ones({1});
  return like;
}

TEST(InputRows, AreTheNumbersInTheGivenType) {
  const std::vector<float> values = {1, 2, 3.25f, 4, 1 + 0x1p-8f, -6};
  const Tape tape(Tape::Kind::kRecording);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const Value rows = input_rows(tape, values, 3, on_processor(), type);
    EXPECT_EQ(rows.data().scalar_type(), type);
    ASSERT_EQ(rows.data().sizes(), (std::vector<int64_t>{2, 3}));
    const double tie = type == at::kBFloat16 ? 1 : 1 + 0x1p-8;
    EXPECT_TRUE(
        at::equal(rows.data().to(at::kDouble), at::tensor({1.0, 2.0, 3.25, 4.0, tie, -6.0}, at::kDouble).view({2, 3})));
  }
  EXPECT_EQ(input_rows(tape, {}, 3, on_processor(), at::kFloat).data().sizes(), (std::vector<int64_t>{0, 3}));
}

TEST(InputRows, WithAnIncompleteLastRowAreRefused) {
  const Tape tape(Tape::Kind::kRecording);
  EXPECT_THROW(input_rows(tape, {1, 2, 3}, 2, on_processor(), at::kFloat), std::logic_error);
}

TEST(InputRows, AreACopyThatWantsNoGradient) {
  const std::vector<float> values = {1, 2};
  Tape tape(Tape::Kind::kRecording);
  const Value rows = input_rows(tape, values, 2, on_processor(), at::kFloat);
  rows.data().fill_(5);
  EXPECT_EQ(values, (std::vector<float>{1, 2}));
  EXPECT_FALSE(rows.requires_grad());
  rows.add_grad(at::ones({1, 2}));
  EXPECT_FALSE(rows.has_grad());
}

TEST(InputRows, AreReadFromTheDeviceCopyWhereThereIsOne) {
  const std::vector<float> values = {1, 2, 3, 4}, device_copy = {5, 6, 7, 8}, other = {9, 10};
  Tape tape(Tape::Kind::kRecording);
  tape.set_device_copy(values.data(), device_copy.data());
  const at::Tensor rows = input_rows(tape, values, 2, on_processor(), at::kFloat).data();
  EXPECT_TRUE(at::equal(rows, at::tensor({5.0f, 6.0f, 7.0f, 8.0f}).view({2, 2})));
  const at::Tensor others = input_rows(tape, other, 2, on_processor(), at::kFloat).data();
  EXPECT_TRUE(at::equal(others, at::tensor({9.0f, 10.0f}).view({1, 2})));
}

TEST(Reshape, SharesTheMemoryOfDataAndGradient) {
  Tape tape(Tape::Kind::kRecording);
  const Value x(test::random_tensor({2, 6}, 1));
  const Value rows = reshape(tape, x, 4);
  ASSERT_EQ(rows.data().sizes(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(rows.data().const_data_ptr(), x.data().const_data_ptr());
  const at::Tensor upstream = test::random_tensor({3, 4}, 2);
  rows.add_grad(upstream);
  tape.backward();
  EXPECT_EQ(x.grad().sizes(), x.data().sizes());
  EXPECT_EQ(x.grad().const_data_ptr(), upstream.const_data_ptr());
}

TEST(Reshape, AddsToAGradientAndWantsNoneWhereItsInputWantsNone) {
  Tape tape(Tape::Kind::kRecording);
  const Value x(test::random_tensor({2, 2}, 1)), unused(test::random_tensor({2, 2}, 1)),
      input(test::random_tensor({2, 2}, 1), /*requires_grad=*/false);
  for (int i = 0; i < 2; ++i) reshape(tape, x, 1).add_grad(at::ones({4, 1}, at::kDouble));
  reshape(tape, unused, 4);
  EXPECT_FALSE(reshape(tape, input, 4).requires_grad());
  tape.backward();
  EXPECT_TRUE(at::equal(x.grad(), at::ones({2, 2}, at::kDouble) * 2));
  EXPECT_FALSE(unused.has_grad());
}

}  // namespace
}  // namespace tearless::engine::input_rows_test
