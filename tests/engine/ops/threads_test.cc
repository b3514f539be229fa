// The loops give the same bits for one thread and for two, on tensors large enough to be split.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "engine/ops/adam.h"
#include "engine/ops/add_norm.h"
#include "engine/ops/attention.h"
#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/embedding.h"
#include "engine/ops/gates.h"
#include "engine/ops/images.h"
#include "engine/ops/linear.h"
#include "engine/ops/relative_attention.h"
#include "engine/ops/span_means.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::threads_test {
namespace {

using test::Operation;
using test::random_tensor;
using Values = std::vector<Value>;

constexpr int64_t kWidth = 48;

class Threads : public testing::Test {
 public:
  ~Threads() override { at::set_num_threads(before_); }

 protected:
  void expect_same_bits(const char* what, const std::vector<at::Tensor>& inputs, const Operation& op) {
    test::for_each_cpu_backend([&] { expect_same_bits_with_these_kernels(what, inputs, op); });
  }

  static void expect_same_bits_with_these_kernels(const char* what, const std::vector<at::Tensor>& inputs,
                                                  const Operation& op) {
    at::set_num_threads(1);
    const test::ForwardBackward one = test::forward_backward(op, inputs, Tape::Ops::kFast, at::kFloat);
    at::set_num_threads(2);
    const test::ForwardBackward two = test::forward_backward(op, inputs, Tape::Ops::kFast, at::kFloat);
    EXPECT_TRUE(at::equal(one.output, two.output)) << what;
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(at::equal(one.gradients[i], two.gradients[i])) << what << ", gradient of input " << i;
    }
  }

  const int before_ = at::get_num_threads();
  const PackedRows rows_ = test::packed_rows(std::vector<int32_t>(97, 17));  // 1649 rows: five shares of 16k elements
  const int64_t count_ = rows_.row_count();
  const Dropout dropout_ = Dropout::with(0.3, RandomStream(1, "drop.threads"), 4);
};

TEST_F(Threads, DoNotChangeTheBitsOfAnyLoop) {
  expect_same_bits("add_dropped", {random_tensor({count_, kWidth}, 1), random_tensor({count_, kWidth}, 2)},
                   [&](Tape& tape, const Values& in) { return add_dropped(tape, in[0], in[1], dropout_, rows_); });
  expect_same_bits(
      "bias_relu_dropout", {random_tensor({count_, kWidth}, 3), random_tensor({kWidth}, 4)},
      [&](Tape& tape, const Values& in) { return bias_relu_dropout(tape, in[0], in[1], dropout_, rows_); });
  expect_same_bits("norm_rows",
                   {random_tensor({count_, kWidth}, 5), random_tensor({kWidth}, 6), random_tensor({kWidth}, 7)},
                   [&](Tape& tape, const Values& in) {
                     NormOp norm;
                     norm.row = RowNorm{true, RowNorm::Denominator::kRootAddEps, 1e-5};
                     norm.gain = in[1];
                     norm.bias = in[2];
                     return norm_rows(tape, in[0], norm);
                   });
  expect_same_bits("attention", {random_tensor({count_, 3 * kWidth}, 8)}, [&](Tape& tape, const Values& in) {
    return attention(tape, {in[0], 0}, {in[0], kWidth}, {in[0], 2 * kWidth}, kWidth, 4,
                     tape.save(AttentionSpans::self(rows_, true)), dropout_);
  });
  expect_same_bits("relative attention",
                   {random_tensor({count_, 3 * kWidth}, 20), random_tensor({14, kWidth}, 21),
                    random_tensor({kWidth}, 22), random_tensor({kWidth}, 23)},
                   [&](Tape& tape, const Values& in) {
                     return relative_attention(tape, {in[0], 0}, {in[0], kWidth}, {in[0], 2 * kWidth}, in[1], in[2],
                                               in[3], kWidth, 4, tape.save(AttentionSpans::self(rows_, true)), 0,
                                               dropout_);
                   });
  expect_same_bits("running_means", {random_tensor({count_, kWidth}, 17)}, [&](Tape& tape, const Values& in) {
    return running_means(tape, in[0], tape.save(AttentionSpans::self(rows_, true)));
  });
  expect_same_bits("gated_sum", {random_tensor({count_, 2 * kWidth}, 18), random_tensor({count_, 2 * kWidth}, 19)},
                   [](Tape& tape, const Values& in) { return gated_sum(tape, in[0], in[1]); });
  const at::Tensor positions = sinusoid_positions(40, kWidth);
  expect_same_bits("embedding", {random_tensor({11, kWidth}, 9)}, [&](Tape& tape, const Values& in) {
    return embedding(tape, in[0], rows_, positions, 2, dropout_, in[0].data().scalar_type());
  });
  expect_same_bits("embedding with language", {random_tensor({11, kWidth}, 9), random_tensor({kWidth}, 16)},
                   [&](Tape& tape, const Values& in) {
                     return embedding(tape, in[0], rows_, positions, 2, dropout_, in[0].data().scalar_type(), in[1]);
                   });
  PackedRows starts = rows_;
  for (size_t t = 0; t < starts.tokens.size(); ++t) {
    if (starts.positions[t] == 0) starts.tokens[t] = kNoToken;
  }
  expect_same_bits("embedding with vector of words", {random_tensor({11, kWidth}, 9), random_tensor({kWidth}, 16)},
                   [&](Tape& tape, const Values& in) {
                     return embedding(tape, in[0], starts, positions, 2, dropout_, in[0].data().scalar_type(), in[1],
                                      AddedTo::kAllButFirst);
                   });
}

TEST_F(Threads, DoNotChangeTheBitsOfAClassifiersLoops) {
  expect_same_bits("relu_dropout", {random_tensor({count_, kWidth}, 13)},
                   [&](Tape& tape, const Values& in) { return bias_relu_dropout(tape, in[0], {}, dropout_, rows_); });
  expect_same_bits("span_means", {random_tensor({count_, kWidth}, 14)}, [&](Tape& tape, const Values& in) {
    return span_means(tape, in[0], tape.save(AttentionSpans::self(rows_, false)));
  });
  constexpr int64_t kImages = 33;  // an odd number: the threads' ranges end within an image
  const ImageShape image{13, 11, 20};
  const std::vector<at::Tensor> pixels = {random_tensor({kImages * image.pixels(), image.channels}, 15)};
  expect_same_bits("patches", pixels, [&](Tape& tape, const Values& in) { return patches(tape, in[0], image, 5); });
  expect_same_bits("max_pool", pixels, [&](Tape& tape, const Values& in) { return max_pool(tape, in[0], image); });
}

TEST_F(Threads, DoNotChangeTheBitsOfTheLoss) {
  const at::Tensor logits = random_tensor({count_, kWidth}, 10).to(at::kFloat);
  const std::vector<int32_t> labels(static_cast<size_t>(count_), 7);
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    Tape tape(Tape::Kind::kRecording);
    const Value x(logits.clone());
    const CrossEntropySums sums = smoothed_cross_entropy(tape, x, labels, 0.1);
    tape.backward();
    return std::pair{sums.loss, x.grad()};
  };
  const auto [loss_one, gradient_one] = run(1);
  const auto [loss_two, gradient_two] = run(2);
  EXPECT_EQ(loss_one, loss_two);
  EXPECT_TRUE(at::equal(gradient_one, gradient_two));
}

TEST_F(Threads, DoNotChangeTheBitsOfNormClippingAndAdam) {
  const at::Tensor gradients = random_tensor({200'001}, 11).to(at::kFloat);
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    at::Tensor parameters = random_tensor({200'001}, 12).to(at::kFloat);
    at::Tensor first = parameters * 0, second = parameters * 0;
    at::Tensor g = gradients.clone();
    const double norm = global_norm(g);
    adam_step({.learning_rate = 1e-3}, norm, g, parameters, first, second);
    return std::pair{norm, parameters};
  };
  const auto [norm_one, one] = run(1);
  const auto [norm_two, two] = run(2);
  EXPECT_EQ(norm_one, norm_two);
  EXPECT_TRUE(at::equal(one, two));
}

}  // namespace
}  // namespace tearless::engine::threads_test
