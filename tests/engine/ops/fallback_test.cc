// A backend that lacks a kernel: the operations that would use it run by their formulas.
#include <gtest/gtest.h>

#include "engine/ops/cross_entropy.h"
#include "tests/engine/ops/op_cases.h"

namespace tearless::engine::fallback_test {
namespace {

using Table = Kernels<float>;

struct Kernel {
  const char* name;
  void (*remove)(Table& table);
};

/// A backend in use that is as the one before, without one of its kernels.
class WithoutKernel {
 public:
  explicit WithoutKernel(const Kernel& kernel) : table_(*before_.float_kernels), backend_(before_) {
    kernel.remove(table_);
    backend_.float_kernels = &table_;
    use_cpu_backend(backend_);
  }
  ~WithoutKernel() { use_cpu_backend(before_); }
  WithoutKernel(const WithoutKernel&) = delete;
  WithoutKernel& operator=(const WithoutKernel&) = delete;

 private:
  const Backend& before_ = cpu_backend();
  Table table_;
  Backend backend_;
};

int64_t fallback_ops(const test::OpCase& c) {
  test::Values values;
  for (const at::Tensor& x : c.inputs) values.push_back(x.defined() ? Value(x.to(at::kFloat)) : Value());
  Tape tape(Tape::Kind::kForward);
  c.op(tape, values);
  return tape.fallback_ops();
}

class OneKernelLess : public testing::TestWithParam<Kernel> {};

TEST_P(OneKernelLess, GivesTheSameNumbersByFormula) {
  int64_t more = 0;
  for (const test::OpCase& c : test::all_cases(/*longest=*/40)) {
    SCOPED_TRACE(c.name);
    const int64_t before = fallback_ops(c);
    const WithoutKernel without(GetParam());
    test::expect_agreement_with_reference(c, at::kFloat, test::kFloatTolerance);
    more += fallback_ops(c) - before;
  }
  EXPECT_GT(more, 0) << "no operation asks for it";
}

INSTANTIATE_TEST_SUITE_P(
    All, OneKernelLess,
    testing::Values(Kernel{"add_norm", [](Table& t) { t.add_norm = nullptr; }},
                    Kernel{"add_norm_backward", [](Table& t) { t.add_norm_backward = nullptr; }},
                    Kernel{"bias_relu_dropout", [](Table& t) { t.bias_relu_dropout = nullptr; }},
                    Kernel{"bias_relu_dropout_backward", [](Table& t) { t.bias_relu_dropout_backward = nullptr; }},
                    Kernel{"attention_saved_size", [](Table& t) { t.attention_saved_size = nullptr; }},
                    Kernel{"attention", [](Table& t) { t.attention = nullptr; }},
                    Kernel{"attention_backward", [](Table& t) { t.attention_backward = nullptr; }},
                    Kernel{"relative_attention", [](Table& t) { t.relative_attention = nullptr; }},
                    Kernel{"relative_attention_backward", [](Table& t) { t.relative_attention_backward = nullptr; }},
                    Kernel{"embedding", [](Table& t) { t.embedding = nullptr; }},
                    Kernel{"embedding_backward", [](Table& t) { t.embedding_backward = nullptr; }},
                    Kernel{"span_means", [](Table& t) { t.span_means = nullptr; }},
                    Kernel{"span_means_backward", [](Table& t) { t.span_means_backward = nullptr; }},
                    Kernel{"running_means", [](Table& t) { t.running_means = nullptr; }},
                    Kernel{"running_means_backward", [](Table& t) { t.running_means_backward = nullptr; }},
                    Kernel{"gated_sum", [](Table& t) { t.gated_sum = nullptr; }},
                    Kernel{"gated_sum_backward", [](Table& t) { t.gated_sum_backward = nullptr; }},
                    Kernel{"cube", [](Table& t) { t.cube = nullptr; }},
                    Kernel{"cube_backward", [](Table& t) { t.cube_backward = nullptr; }},
                    Kernel{"patches", [](Table& t) { t.patches = nullptr; }},
                    Kernel{"patches_backward", [](Table& t) { t.patches_backward = nullptr; }},
                    Kernel{"max_pool", [](Table& t) { t.max_pool = nullptr; }},
                    Kernel{"max_pool_backward", [](Table& t) { t.max_pool_backward = nullptr; }}),
    [](const testing::TestParamInfo<Kernel>& info) { return std::string(info.param.name); });

TEST(ColumnSums, WithoutTheirKernelAreTheSame) {
  const WithoutKernel without({"column_sums", [](Table& t) { t.column_sums = nullptr; }});
  for (const test::OpCase& c : test::all_cases(/*longest=*/40)) {
    SCOPED_TRACE(c.name);
    test::expect_agreement_with_reference(c, at::kFloat, test::kFloatTolerance);
  }
}

TEST(CrossEntropy, WithoutItsKernelRunsByItsFormula) {
  struct Result {
    CrossEntropySums sums;
    at::Tensor gradient;
    int64_t fallback_ops;
  };
  const auto run = [] {
    Tape tape(Tape::Kind::kRecording);
    const Value logits(test::random_tensor({4, 7}, 3).to(at::kFloat));
    const CrossEntropySums sums = smoothed_cross_entropy(tape, logits, {2, 6, -1, 0}, 0.1);
    tape.backward();
    return Result{sums, logits.grad(), tape.fallback_ops()};
  };
  const Result whole = run();
  const WithoutKernel without({"cross_entropy", [](Table& t) { t.cross_entropy = nullptr; }});
  const Result formula = run();
  EXPECT_EQ(whole.fallback_ops, 0);
  EXPECT_EQ(formula.fallback_ops, 1);
  EXPECT_EQ(formula.sums.tokens, whole.sums.tokens);
  EXPECT_NEAR(formula.sums.loss, whole.sums.loss, 1e-5);
  EXPECT_NEAR(formula.sums.nll, whole.sums.nll, 1e-5);
  EXPECT_LT(test::distance(formula.gradient, whole.gradient), test::kFloatTolerance);
}

}  // namespace
}  // namespace tearless::engine::fallback_test
