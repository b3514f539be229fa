// One update gives the same bits on one thread and on two, matmuls included, as main() of the engine arranges.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/engine/model/tiny_model.h"
#include "tests/engine/ops/matmul_libraries.h"

namespace tearless::engine::threads_test {
namespace {

struct Outcome {
  double loss;
  at::Tensor gradients;
};

Outcome forward_and_backward(const PackedBatch& batch, int threads) {
  ModelOptions options;
  options.encoder_layers = options.decoder_layers = 2;
  options.d_model = 64;
  options.d_ff = 256;
  options.heads = 4;
  test::TinyModel model(options, test::usual_output_vocabulary(500));
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  Tape tape(Tape::Kind::kRecording);
  const CrossEntropySums sums = model.transformer.loss({tape, 3}, batch, 0.1);
  tape.backward();
  at::set_num_threads(before);
  return {sums.loss, model.parameters.gradients().clone()};
}

TEST(Threads, DoNotChangeTheBitsOfAnUpdate) {
  ASSERT_TRUE(test::kMatmulOrderIsFixed);
  test::Sentences sources, targets;
  std::vector<int32_t> sentence_ids;
  for (int32_t i = 0; i < 40; ++i) {
    sources.emplace_back();
    targets.emplace_back();
    for (int32_t p = 0; p < 5 + i % 17; ++p) {
      sources.back().push_back(4 + (31 * i + 7 * p) % 496);
      targets.back().push_back(4 + (17 * i + 13 * p) % 496);
    }
    sources.back().push_back(kEos);
    sentence_ids.push_back(1000 * i);
  }
  const PackedBatch batch = test::batch_of(sources, targets, sentence_ids);
  const auto expect_equal_bits = [&] {
    const Outcome one = forward_and_backward(batch, 1), two = forward_and_backward(batch, 2);
    EXPECT_EQ(one.loss, two.loss);
    EXPECT_TRUE(at::equal(one.gradients, two.gradients));
  };
  test::for_each_matmul_library(expect_equal_bits);
  test::with_bf16_matmuls(expect_equal_bits);
}

}  // namespace
}  // namespace tearless::engine::threads_test
