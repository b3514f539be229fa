// A linear map of embeddings by distinct pairs, and by the embeddings side by side.
#include "engine/ops/linear_of_embeddings.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

#include "engine/ops/backend.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::linear_of_embeddings_test {
namespace {

constexpr int64_t kTypes = 9, kFeatures = 3, kWidth = 4, kOutputs = 5;

PackedRows some_tokens(const std::vector<int32_t>& tokens) {
  PackedRows rows = test::packed_rows({static_cast<int32_t>(tokens.size())});
  rows.tokens = tokens;
  rows.positions.assign(tokens.size(), 0);
  return rows;
}

struct Results {
  at::Tensor out, d_table, d_weight, d_bias;
};

Results results(const PackedRows& tokens) {
  const Value table(test::random_tensor({kTypes, kWidth}, 1).to(at::kFloat)),
      weight(test::random_tensor({kOutputs, kFeatures * kWidth}, 2).to(at::kFloat)),
      bias(test::random_tensor({kOutputs}, 3).to(at::kFloat));
  Tape tape(Tape::Kind::kRecording);
  const Value out = linear_of_embeddings(tape, table, tokens, kFeatures, weight, bias, at::kFloat);
  out.add_grad(test::random_tensor({out.data().size(0), kOutputs}, 4).to(at::kFloat));
  const at::Tensor computed = out.data().clone();
  tape.backward();
  EXPECT_EQ(tape.fallback_ops(), 0);
  return {computed, table.grad(), weight.grad(), bias.grad()};
}

TEST(LinearOfEmbeddings, ByPairsIsThatOfTheEmbeddingsSideBySide) {
  static Kernels<float> kernels;
  static Backend backend;
  std::vector<int32_t> many;  // 5,000 inputs: most tokens at each, and one more often than all others
  for (int32_t i = 0; i < 15'000; ++i) many.push_back(i % 4 == 0 ? i * i % 9 : 7);
  for (const std::vector<int32_t>& tokens :
       {std::vector<int32_t>{8, 8, 8}, {0, 1, 2, 0, 1, 2, 0, 1, 2}, {0, 1, 2, 2, 1, 0, 1, 8, 2, 4, 4, 4}, many}) {
    const PackedRows rows = some_tokens(tokens);
    const Backend& whole = cpu_backend();
    const Results by_pairs = results(rows);
    kernels = *whole.float_kernels;
    kernels.sums_of_terms = nullptr;
    backend = whole;
    backend.float_kernels = &kernels;
    use_cpu_backend(backend);
    const Results side_by_side = results(rows);
    use_cpu_backend(whole);
    EXPECT_LT(test::distance(by_pairs.out, side_by_side.out), test::kFloatTolerance);
    EXPECT_LT(test::distance(by_pairs.d_table, side_by_side.d_table), test::kFloatTolerance);
    EXPECT_LT(test::distance(by_pairs.d_weight, side_by_side.d_weight), test::kFloatTolerance);
    EXPECT_LT(test::distance(by_pairs.d_bias, side_by_side.d_bias), test::kFloatTolerance);
  }
}

// In double, by hand: a place has columns of its own in the weight.
TEST(LinearOfEmbeddings, MultipliesEachPlaceWithItsColumns) {
  const std::vector<int32_t> tokens = {3, 3, 7, 5, 3, 3};
  const at::Tensor table = test::random_tensor({kTypes, kWidth}, 1),
                   weight = test::random_tensor({kOutputs, kFeatures * kWidth}, 2),
                   bias = test::random_tensor({kOutputs}, 3);
  const Results got = results(some_tokens(tokens));
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t o = 0; o < kOutputs; ++o) {
      double sum = bias[o].item<double>();
      for (int64_t f = 0; f < kFeatures; ++f) {
        for (int64_t c = 0; c < kWidth; ++c) {
          sum += weight[o][f * kWidth + c].item<double>() *
                 table[tokens[static_cast<size_t>(n * kFeatures + f)]][c].item<double>();
        }
      }
      EXPECT_NEAR(got.out[n][o].item<double>(), sum, 1e-5);
    }
  }
  EXPECT_EQ(got.d_table[0].abs().sum().item<float>(), 0) << "a token that no place has";
}

}  // namespace
}  // namespace tearless::engine::linear_of_embeddings_test
