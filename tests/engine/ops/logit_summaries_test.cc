// What a search reads of rows of logits besides these: numbers that are known, all sizes against the formula.
#include "engine/ops/logit_summaries.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/ops/op_check.h"

namespace tearless::engine::logit_summaries_test {
namespace {

TEST(LogitSummaries, AreTheLogOfTheSumOfExponentialsAndTheMaximaOfBlocks) {
  // Two blocks: 40 logits of log 2, of which one is log 20 and one, in the second block, log 30.
  const at::Tensor logits = at::full({1, 40}, std::log(2.0), at::kDouble);
  logits.mutable_data_ptr<double>()[31] = std::log(20.0);
  logits.mutable_data_ptr<double>()[32] = std::log(30.0);
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    test::for_each_cpu_backend([&] {
      const LogitSummary summary = summary_of(Tape(Tape::Kind::kForward, ops), logits);
      EXPECT_NEAR(summary.log_sums[0].item<double>(), std::log(38 * 2 + 20 + 30.0), 1e-14);
      ASSERT_EQ(summary.maxima.size(1), 2);
      EXPECT_EQ(summary.maxima[0][0].item<double>(), std::log(20.0));
      EXPECT_EQ(summary.maxima[0][1].item<double>(), std::log(30.0));
    });
  }
}

TEST(LogitSummaries, OfEverySizeEqualTheFormula) {
  for (const int64_t vocab_size : {1, 2, 31, 32, 33, 100, 5000}) {
    SCOPED_TRACE(vocab_size);
    // Without the largest logit the exponentials would overflow.
    const at::Tensor logits = 5 * test::random_tensor({3, vocab_size}, 9) + 800;
    const LogitSummary expected = summary_of(Tape(Tape::Kind::kForward, Tape::Ops::kReference), logits);
    test::for_each_cpu_backend([&] {
      const Tape tape(Tape::Kind::kForward);
      const LogitSummary in_double = summary_of(tape, logits), in_float = summary_of(tape, logits.to(at::kFloat));
      EXPECT_LT(test::distance(in_double.log_sums, expected.log_sums), 1e-14);
      EXPECT_LT(test::distance(in_float.log_sums, expected.log_sums), 1e-6);
      EXPECT_TRUE(at::equal(in_double.maxima, expected.maxima));
      EXPECT_TRUE(at::equal(in_float.maxima, expected.maxima.to(at::kFloat)));
    });
  }
}

TEST(LogitSummaries, HaveMaximaThatAreNumbersWhereLogitsAreNot) {
  const at::Tensor logits = at::full({1, 70}, std::nan(""), at::kFloat);
  logits.mutable_data_ptr<float>()[33] = 2;
  test::for_each_cpu_backend([&] {
    const at::Tensor maxima = summary_of(Tape(Tape::Kind::kForward), logits).maxima;
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(maxima[0][0].item<float>(), kNone);
    EXPECT_EQ(maxima[0][1].item<float>(), 2);
    EXPECT_EQ(maxima[0][2].item<float>(), kNone);
  });
}

}  // namespace
}  // namespace tearless::engine::logit_summaries_test
