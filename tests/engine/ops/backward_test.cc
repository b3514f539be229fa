// Every operation's hand-written backward against the reference (autograd over its formula) and finite differences,
// with the kernels for every instruction set that the processor has.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

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

LossAndGradient loss_and_gradient(const at::Tensor& logits, const std::vector<int32_t>& labels,
                                  const LabelSmoothing& smoothing, Tape::Ops ops, const RowWeights* weights = nullptr) {
  Tape tape(Tape::Kind::kRecording, ops);
  const Value x(logits.clone());
  const CrossEntropySums sums = smoothed_cross_entropy(tape, x, labels, smoothing, nullptr, weights);
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

// --- the four forms of docs/spec/training.md §6.0 ---

/// Four tokens (PAD, BOS, EOS, UNK), the logits ln 1, ln 2, ln 3, ln 4, so p = 0.1, 0.2, 0.3, 0.4. The label is EOS.
at::Tensor tenths(at::ScalarType type = at::kDouble) {
  return at::tensor({std::log(1.0), std::log(2.0), std::log(3.0), std::log(4.0)}, type).view({1, 4});
}

/// Σ_v q(v) · -ln p(v).
double against_tenths(const std::vector<double>& q) {
  double sum = 0;
  for (size_t v = 0; v < q.size(); ++v) sum -= q[v] * std::log(0.1 * static_cast<double>(v + 1));
  return sum;
}

struct Form {
  SmoothingForm form;
  std::vector<double> q;  // for ε = 0.3
  bool subtracts_entropy;
};
const std::vector<Form> kForms = {
    {SmoothingForm::kTwt, {0.075, 0.075, 0.775, 0.075}, false},
    {SmoothingForm::kFairseq, {0.075, 0.075, 0.775, 0.075}, false},
    {SmoothingForm::kZero, {0.1, 0.1, 0.7, 0.1}, true},
    {SmoothingForm::kJoey, {0.0, 0.15, 0.7, 0.15}, true},
};

TEST(SmoothingForms, AreTheDistributionsOfTheSpecification) {
  for (const Form& form : kForms) {
    double entropy = 0;
    for (const double mass : form.q) entropy -= mass > 0 ? mass * std::log(mass) : 0;
    const double wanted = against_tenths(form.q) - (form.subtracts_entropy ? entropy : 0);
    for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
      const LossAndGradient got = loss_and_gradient(tenths(), {kEos}, {0.3, form.form}, ops);
      EXPECT_NEAR(got.sums.loss, wanted, 1e-12) << static_cast<int>(form.form);
      EXPECT_NEAR(got.sums.nll, -std::log(0.3), 1e-12);
      for (int64_t v = 0; v < 4; ++v) {  // p - q
        EXPECT_NEAR(got.gradient.const_data_ptr<double>()[v], 0.1 * static_cast<double>(v + 1) - form.q.at(v), 1e-12);
      }
    }
  }
}

// training.md §5: the entropy of JoeyNMT's smoothed labels is about 3.0 nats a token at ε = 0.3, V = 2,915.
TEST(SmoothingForms, SubtractTheEntropyOfTheLabel) {
  const at::Tensor uniform = at::tensor(std::vector<double>(2915, 0.0), at::kDouble).view({1, 2915});
  const auto loss = [&](SmoothingForm form) {
    return loss_and_gradient(uniform, {7}, {0.3, form}, Tape::Ops::kFast).sums.loss;
  };
  EXPECT_NEAR(loss(SmoothingForm::kTwt), std::log(2915.0), 1e-9) << "under even probabilities all tokens cost alike";
  const double entropy = std::log(2915.0) - loss(SmoothingForm::kJoey);
  EXPECT_NEAR(entropy, 3.004, 5e-4);
  EXPECT_NEAR(loss(SmoothingForm::kJoey) - loss(SmoothingForm::kZero), 0.3 * std::log(2914.0 / 2913.0), 1e-9);
}

TEST(SmoothingForms, AreOneWithoutMass) {
  for (const Form& form : kForms) {
    const LossAndGradient got = loss_and_gradient(tenths(), {kEos}, {0.0, form.form}, Tape::Ops::kFast);
    EXPECT_EQ(got.sums.loss, got.sums.nll);
    EXPECT_FALSE(LabelSmoothing(0.0, form.form).over_whole_vocabulary());
  }
}

TEST(SmoothingForms, HaveBackwardPassesThatAgreeWithFiniteDifferences) {
  const at::Tensor logits = random_tensor({9, 13}, 52) * 2.0;
  const std::vector<int32_t> labels = {1, 2, 3, 4, 5, -1, 7, 12, 2};
  // Sentences of 2, 3 (and a padding row) and 3 labels.
  const std::vector<float> thirds = {0.5f, 0.5f, 1 / 3.0f, 1 / 3.0f, 1 / 3.0f, 0, 1 / 3.0f, 1 / 3.0f, 1 / 3.0f};
  const RowWeights by_sentence{thirds, 3};
  for (const Form& form : kForms) {
    for (const RowWeights* weights : {static_cast<const RowWeights*>(nullptr), &by_sentence}) {
      const LabelSmoothing smoothing(0.2, form.form);
      for (const auto& [type, tolerance] :
           {std::pair{at::kFloat, test::kFloatTolerance}, {at::kDouble, test::kDoubleTolerance}}) {
        const auto fast = loss_and_gradient(logits.to(type), labels, smoothing, Tape::Ops::kFast, weights);
        const auto reference = loss_and_gradient(logits.to(type), labels, smoothing, Tape::Ops::kReference, weights);
        EXPECT_NEAR(fast.sums.loss, reference.sums.loss, tolerance * reference.sums.loss);
        EXPECT_LT(test::distance(fast.gradient, reference.gradient), tolerance);
      }
      const LossAndGradient fast = loss_and_gradient(logits, labels, smoothing, Tape::Ops::kFast, weights);
      for (int64_t i = 0; i < logits.numel(); i += 5) {
        const auto mean_at = [&](double offset) {
          at::Tensor x = logits.clone();
          x.mutable_data_ptr<double>()[i] += offset;
          if (!weights) return loss_and_gradient(x, labels, smoothing, Tape::Ops::kFast).sums.loss / 8;
          double mean = 0;  // of the means of the sentences
          for (int64_t t = 0; t < 9; ++t) {
            if (labels.at(t) < 0) continue;
            mean += loss_and_gradient(x.narrow(0, t, 1), {labels.at(t)}, smoothing, Tape::Ops::kFast).sums.loss *
                    static_cast<double>(thirds.at(t)) / 3;
          }
          return mean;
        };
        EXPECT_NEAR(fast.gradient.const_data_ptr<double>()[i], (mean_at(1e-5) - mean_at(-1e-5)) / 2e-5, 1e-8);
      }
    }
  }
}

TEST(CrossEntropy, WithoutALabelOrAWeightForEachRowIsRefused) {
  const Value logits(test::random_tensor({2, 5}, 1));
  const std::vector<float> weights = {1, 2};
  const RowWeights both{weights};
  Tape tape(Tape::Kind::kForward);
  EXPECT_THROW(smoothed_cross_entropy(tape, logits, {3}, 0.1), std::logic_error);
  EXPECT_THROW(smoothed_cross_entropy(tape, logits, {3, 4, 2}, 0.1), std::logic_error);
  EXPECT_NO_THROW(smoothed_cross_entropy(tape, logits, {3, 4}, 0.1, nullptr, &both));
  EXPECT_THROW(smoothed_cross_entropy(tape, Value(test::random_tensor({1, 5}, 1)), {3}, 0.1, nullptr, &both),
               std::logic_error);
}

TEST(CrossEntropy, StaysFiniteForLogitsFarApart) {
  const LossAndGradient result =
      loss_and_gradient(at::tensor({-4000.0, 4000.0, 0.0}, at::kFloat).view({1, 3}), {0}, 0.1, Tape::Ops::kFast);
  EXPECT_NEAR(result.sums.nll, 8000, 1e-2);
  EXPECT_TRUE(result.gradient.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace tearless::engine::backward_test
