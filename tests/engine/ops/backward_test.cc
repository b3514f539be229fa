// Every operation's hand-written backward against the reference (autograd over its formula) and finite differences,
// with the kernels for every instruction set that the processor has.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/ops/cross_entropy.h"
#include "tests/engine/ops/op_cases.h"

namespace tearless::engine::backward_test {
namespace {

using test::OpCase;
using test::random_tensor;

class Operations : public testing::TestWithParam<OpCase> {};

TEST_P(Operations, BackwardAgreesWithTheReferenceAndWithFiniteDifferences) {
  test::for_each_cpu_backend([] { test::expect_right_backward(GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(All, Operations, testing::ValuesIn(test::all_cases()),
                         [](const testing::TestParamInfo<OpCase>& info) { return info.param.name; });

// --- the loss, which is the root and has no upstream gradient --------------------------------------------------------

struct LossAndGradient {
  CrossEntropySums sums;
  at::Tensor gradient;
};

LossAndGradient loss_and_gradient(const at::Tensor& logits, const std::vector<int32_t>& labels, double smoothing,
                                  Tape::Ops ops) {
  Tape tape(Tape::Kind::kRecording, ops);
  const Value x(logits.clone());
  const CrossEntropySums sums = smoothed_cross_entropy(tape, x, labels, smoothing);
  tape.backward();
  return {sums, x.grad()};
}

TEST(CrossEntropySums, AddUpTermByTerm) {
  CrossEntropySums sums{.loss = 1.5, .nll = 2.5, .tokens = 3};
  sums += {.loss = 10, .nll = 20, .tokens = 30};
  EXPECT_EQ(sums.loss, 11.5);
  EXPECT_EQ(sums.nll, 22.5);
  EXPECT_EQ(sums.tokens, 33);
}

TEST(CrossEntropy, BackwardAgreesWithTheReferenceAndWithFiniteDifferences) {
  for (const int64_t rows : {1, 3, 70}) {
    for (const int64_t vocabulary : {2, 5, 33}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(fmt::format("{} rows, {} tokens, smoothing {}", rows, vocabulary, smoothing));
        const at::Tensor logits = random_tensor({rows, vocabulary}, 51) * 3.0;
        std::vector<int32_t> labels;
        for (int64_t t = 0; t < rows; ++t) labels.push_back(static_cast<int32_t>((5 * t + 1) % vocabulary));

        for (const auto& [type, tolerance] :
             {std::pair{at::kFloat, test::kFloatTolerance}, {at::kDouble, test::kDoubleTolerance}}) {
          const LossAndGradient fast = loss_and_gradient(logits.to(type), labels, smoothing, Tape::Ops::kFast);
          const LossAndGradient reference =
              loss_and_gradient(logits.to(type), labels, smoothing, Tape::Ops::kReference);
          EXPECT_EQ(fast.sums.tokens, rows);
          EXPECT_NEAR(fast.sums.loss, reference.sums.loss, tolerance * reference.sums.loss);
          EXPECT_NEAR(fast.sums.nll, reference.sums.nll, tolerance * reference.sums.nll);
          EXPECT_LT(test::distance(fast.gradient, reference.gradient), tolerance);
        }

        const LossAndGradient fast = loss_and_gradient(logits, labels, smoothing, Tape::Ops::kFast);
        for (int64_t i = 0; i < std::min<int64_t>(logits.numel(), 40); ++i) {
          const auto mean_at = [&](double offset) {
            at::Tensor x = logits.clone();
            x.mutable_data_ptr<double>()[i] += offset;
            return loss_and_gradient(x, labels, smoothing, Tape::Ops::kFast).sums.loss / static_cast<double>(rows);
          };
          EXPECT_NEAR(fast.gradient.const_data_ptr<double>()[i], (mean_at(1e-5) - mean_at(-1e-5)) / 2e-5, 1e-8);
        }
      }
    }
  }
}

TEST(CrossEntropy, SmoothsOverTheOutputVocabularyTheGoldTokenIncluded) {
  // Two tokens, logits 0 and ln 3: p = 1/4, 3/4. Gold is the second.
  Tape tape(Tape::Kind::kForward);
  const Value logits(at::tensor({0.0, std::log(3.0)}, at::kDouble).view({1, 2}));
  const CrossEntropySums sums = smoothed_cross_entropy(tape, logits, {1}, 0.1);
  EXPECT_NEAR(sums.nll, std::log(4.0 / 3.0), 1e-12);
  EXPECT_NEAR(sums.loss, 0.9 * std::log(4.0 / 3.0) + 0.05 * (std::log(4.0) + std::log(4.0 / 3.0)), 1e-12);
}

TEST(CrossEntropy, StaysFiniteForLogitsFarApart) {
  const LossAndGradient result =
      loss_and_gradient(at::tensor({-4000.0, 4000.0, 0.0}, at::kFloat).view({1, 3}), {0}, 0.1, Tape::Ops::kFast);
  EXPECT_NEAR(result.sums.nll, 8000, 1e-2);
  EXPECT_TRUE(result.gradient.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace tearless::engine::backward_test
