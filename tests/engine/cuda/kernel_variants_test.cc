// Variants of CUDA's kernels, which runs do not use: `bench --variants` chooses them, and they give the same gradients.
#include "engine/ops/kernel_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cuda/kernel_table.h"
#include "tests/engine/cuda/bodies.h"
#include "tests/engine/ops/op_cases.h"
#include "tests/support/error_of.h"

namespace tearless::engine::kernel_variants_test {
namespace {

using testing::HasSubstr;

/// What the kernels were last called with.
struct Called {
  bool short_spans = false, one_query = false, ahead = false, bias = false, stores_keys = false;
  int64_t padded_rows = 0, stored_rows = 0;
};
Called called;

const Backend& recording_backend() {
  static const Kernels<bf16> kernels = [] {
    Kernels<bf16> table = test::bf16_kernels_on_host;
    table.attention = [](const Attention<bf16>& a, void* stream) {
      called.padded_rows = a.padded_rows;
      called.one_query = a.one_query;
      test::bf16_kernels_on_host.attention(a, stream);
    };
    table.attention_backward = [](const AttentionBackward<bf16>& b, void* stream) {
      called.short_spans = b.short_spans;
      called.stored_rows = b.stored_rows;
      called.stores_keys = b.stores_keys;
      test::bf16_kernels_on_host.attention_backward(b, stream);
    };
    table.add_norm_backward = [](const AddNormBackward<bf16>& b, void* stream) {
      called.ahead = b.ahead;
      test::bf16_kernels_on_host.add_norm_backward(b, stream);
    };
    table.weight_gradient = [](const WeightGradient<bf16>& g, void* stream) {
      called.bias = true;
      return test::bf16_kernels_on_host.weight_gradient(g, stream);
    };
    return table;
  }();
  static const Backend backend = [] {
    Backend recording = test::cuda_bodies();
    recording.bf16_kernels = &kernels;
    return recording;
  }();
  return backend;
}

/// With a backend, and variants that are off again afterwards.
class KernelVariantsTest : public testing::Test {
 protected:
  void SetUp() override { use_cpu_backend(recording_backend()); }
  void TearDown() override {
    use_cpu_backend(before_);
    kernel_variants() = {};
  }

 private:
  std::string_view before_ = cpu_backend().name;
};

constexpr int64_t kWidth = 16, kPadding = 3;

/// q, k and v by one linear map; attention; a residual and a norm. Of sentences of these lengths and some rows of no
/// sentence, in bf16. With `apart` keys and values are of rows of their own; the map has `parts` times the width. With
/// `elsewhere` another operation has read its result, too.
std::vector<at::Tensor> gradients_of_a_layer(bool apart, int64_t parts, bool elsewhere = false) {
  const std::vector<int32_t> lengths = {3, 17, 1};
  PackedRows rows = test::packed_rows(lengths);
  AttentionSpans spans = AttentionSpans::self(rows, /*causal=*/!apart);
  const int64_t sentences = rows.row_count(), count = sentences + kPadding;
  const auto covered = static_cast<int32_t>(sentences);
  spans.spans.resize(lengths.size() + 2, {covered, 0, covered, 0, 0});
  spans.padded = true;
  for (std::vector<int32_t>* column : {&rows.tokens, &rows.positions, &rows.sentence_ids}) {
    column->resize(static_cast<size_t>(count));
  }
  const auto parameter = [](std::vector<int64_t> shape, uint64_t seed) {
    return Value(test::random_tensor(shape, seed).to(at::kFloat));
  };
  const Value x(test::random_tensor({count, kWidth}, 1).to(at::kBFloat16));
  const Value memory(test::random_tensor({count, 2 * kWidth}, 2).to(at::kBFloat16));
  const Value weight = parameter({parts * kWidth, kWidth}, 3), bias = parameter({parts * kWidth}, 4);
  const NormOp norm{.formula = {},
                    .row = RowNorm{.centred = true, .denominator = RowNorm::Denominator::kRootAddEps, .eps = 1e-5},
                    .gain = parameter({kWidth}, 5),
                    .bias = parameter({kWidth}, 6)};

  Tape tape(Tape::Kind::kRecording);
  const Value q = linear(tape, x, weight, bias);
  const ColumnSlice k{apart ? memory : q, apart ? 0 : kWidth}, v{apart ? memory : q, apart ? kWidth : 2 * kWidth};
  const Value heads = attention(tape, {q, 0}, k, v, kWidth, /*heads=*/1, spans, test::dropout(0.2));
  const Normed out = add_norm(tape, x, heads, test::dropout(0.2), rows, norm);
  out.normed.add_grad(test::random_tensor({count, kWidth}, 7).to(at::kBFloat16));
  if (elsewhere) q.add_grad(test::random_tensor({count, parts * kWidth}, 8).to(at::kBFloat16));
  tape.backward();
  std::vector<at::Tensor> gradients;
  for (const Value& value : {x, memory, weight, bias, norm.gain, norm.bias}) {
    if (value.has_grad()) gradients.push_back(value.grad());
  }
  return gradients;
}

void expect_near(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected, double error) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(test::distance(got[i], expected[i]), error) << "gradient " << i;
}

TEST_F(KernelVariantsTest, NoneIsUsedUnlessItIsNamed) {
  called = {};
  gradients_of_a_layer(false, 3);
  EXPECT_FALSE(called.short_spans || called.one_query || called.ahead || called.bias || called.stores_keys);
  EXPECT_EQ(called.padded_rows + called.stored_rows, 0);
}

TEST_F(KernelVariantsTest, EachReachesItsKernelAndHasTheGradientsOfTheOthers) {
  for (const auto& [apart, parts] : {std::pair<bool, int64_t>{false, 3}, {true, 1}, {true, 3}, {false, 4}}) {
    SCOPED_TRACE(fmt::format("apart {}, {} parts", apart, parts));
    const bool all_written = parts == (apart ? 1 : 3);
    kernel_variants() = {};
    const std::vector<at::Tensor> expected = gradients_of_a_layer(apart, parts);
    const auto with = [&](const char* name, double error) {
      SCOPED_TRACE(name);
      called = {};
      kernel_variants() = kernel_variants_of(name);
      expect_near(gradients_of_a_layer(apart, parts), expected, error);
    };
    with("short-attention", test::kBf16Tolerance);
    EXPECT_TRUE(called.short_spans);
    with("norm-backward", 0);
    EXPECT_TRUE(called.ahead);
    with("stored-gradients", 0);
    EXPECT_EQ(called.padded_rows, 21 + kPadding);
    EXPECT_EQ(called.stored_rows, all_written ? 21 + kPadding : 0);
    EXPECT_EQ(called.stores_keys, all_written && !apart);
    with("search-attention", 0);  // no kernel of training
    EXPECT_TRUE(called.one_query);
    with("bias-gradients", test::kBf16Tolerance);
    EXPECT_TRUE(called.bias);
    with("all", test::kBf16Tolerance);
    EXPECT_TRUE(called.short_spans && called.ahead && called.bias && called.padded_rows > 0);
  }
}

/// Notes which kernels a call launches.
struct Launches {
  std::vector<std::string> names;
  std::vector<float> memory = std::vector<float>(1 << 12);
  template <class Body>
  void run(const Body&) {
    names.emplace_back(Body::kName);
  }
  template <class V>
  V* workspace(int64_t) {
    return reinterpret_cast<V*>(memory.data());
  }
};
template <class Call>
std::string first_launch_of(const Call& call) {
  Launches launches;
  launch(call, launches);
  return launches.names.at(0);
}

TEST_F(KernelVariantsTest, NoGradientIsStoredOverOneThatIsThere) {
  const std::vector<at::Tensor> expected = gradients_of_a_layer(false, 3, /*elsewhere=*/true);
  kernel_variants() = kernel_variants_of("stored-gradients");
  expect_near(gradients_of_a_layer(false, 3, /*elsewhere=*/true), expected, 0);
}

TEST(KernelVariants, AreLaunchedForCallsThatTheySupport) {
  alignas(16) bf16 rows[64];
  Attention<bf16> a{.span_count = 1, .max_query_length = 64, .max_key_length = 64, .heads = 1, .d_head = 64};
  a.q = a.k = a.v = a.out = rows;
  a.q_stride = a.k_stride = a.v_stride = 64;
  AttentionBackward<bf16> b{.forward = a, .d_out = rows, .d_q = rows, .d_k = rows, .d_v = rows};
  b.d_q_stride = b.d_k_stride = b.d_v_stride = 64;
  EXPECT_EQ(first_launch_of(b), "attention_mma_backward");
  b.short_spans = true;
  EXPECT_EQ(first_launch_of(b), "attention_mma_backward_short");
  b.forward.max_key_length = 65;
  EXPECT_EQ(first_launch_of(b), "attention_mma_backward");

  a.max_query_length = 1;
  const int32_t key_rows = 0;
  a.key_rows = &key_rows;
  EXPECT_EQ(first_launch_of(a), "attention");
  a.one_query = true;
  EXPECT_EQ(first_launch_of(a), "attention_one_query");
  std::vector<Attention<bf16>> others(4, a);
  others[0].max_query_length = 2;
  others[1].dropout = test::dropout(0.1);
  others[2].key_rows = nullptr;
  others[3].q_stride = 65;
  for (const Attention<bf16>& other : others) EXPECT_NE(first_launch_of(other), "attention_one_query");

  AddNormBackward<bf16> norm{.rows = 1, .width = 64, .x = rows, .d_normed = rows, .d_residual = rows};
  EXPECT_EQ(first_launch_of(norm), "add_norm_backward");
  norm.ahead = true;
  EXPECT_EQ(first_launch_of(norm), "add_norm_backward_ahead");
  norm.width = 63;
  EXPECT_EQ(first_launch_of(norm), "add_norm_backward");
}

TEST(KernelVariants, OnAGpuHaveTheGradientsOfTheOthers) {
  if (!test::gpu_is_there()) GTEST_SKIP() << "needs an NVIDIA GPU";
  use_cuda_backend(cuda_backend());
  kernel_variants() = kernel_variants_of("all");
  for (const test::OpCase& c : test::all_cases()) {
    if (c.first_parameter == 0) continue;
    SCOPED_TRACE(c.name);
    test::expect_agreement_with_reference(c, at::kBFloat16, test::kBf16Tolerance, at::Device(at::kCUDA, 0));
  }
  kernel_variants() = {};
}

TEST(KernelVariants, AnUnknownNameIsOneSentence) {
  EXPECT_THAT(tearless::test::error_of([] { kernel_variants_of("all,fast"); }),
              HasSubstr("there is no variant \"fast\" of the kernels; choose from: short-attention, norm-backward"));
}

}  // namespace
}  // namespace tearless::engine::kernel_variants_test
