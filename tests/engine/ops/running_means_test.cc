// Running means: small numbers by hand, sums of earlier rows wherever they lie, what is refused.
#include "engine/ops/span_means.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/engine/ops/op_check.h"

namespace tearless::engine::running_means_test {
namespace {

std::vector<double> numbers(const at::Tensor& x) {
  const at::Tensor doubles = x.to(at::kDouble).contiguous();
  return {doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + doubles.numel()};
}

AttentionSpans causal(const std::vector<AttentionSpan>& list) {
  AttentionSpans spans;
  spans.causal = true;
  for (const AttentionSpan& span : list) spans.add(span);
  return spans;
}

TEST(RunningMeans, AreOfTheRowsOfASentenceUpToEach) {
  const AttentionSpans spans = causal({{0, 3, 0, 3, 0}, {3, 1, 3, 1, 0}});
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    test::for_each_cpu_backend([&] {
      Tape tape(Tape::Kind::kRecording, ops);
      const Value x(at::tensor({1.0, 0.0, 3.0, 2.0, 8.0, -8.0, 5.0, 7.0}, at::kDouble).view({4, 2}));
      const Value means = running_means(tape, x, spans);
      EXPECT_EQ(numbers(means.data()), (std::vector<double>{1, 0, 2, 1, 4, -2, 5, 7}));
      means.add_grad(at::tensor({1.0, 0.0, 2.0, 4.0, 3.0, 9.0, 1.0, 2.0}, at::kDouble).view({4, 2}));
      tape.backward();
      // Of the first row: 1 + 2/2 + 3/3, and 0 + 4/2 + 9/3.
      EXPECT_EQ(numbers(x.grad()), (std::vector<double>{3, 5, 2, 5, 1, 3, 1, 2}));
    });
  }
}

TEST(RunningMeans, GoOnFromTheSumsOfEarlierRowsAndKeepTheirs) {
  const double unread = std::nan("");
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    test::for_each_cpu_backend([&] {
      // Two sentences of two earlier rows and one new one, whose sums lie in rows 4, 1, 3 and 0, 5, 2.
      AttentionSpans spans = causal({{0, 1, 0, 3, 0}, {1, 1, 3, 3, 0}});
      spans.key_rows = {4, 1, 3, 0, 5, 2};
      const at::Tensor sums = at::tensor({unread, 4.0, unread, unread, unread, -1.0}, at::kDouble).view({6, 1});
      Tape tape(Tape::Kind::kForward, ops);
      const Value means = running_means(tape, Value(at::tensor({5.0, 4.0}, at::kDouble).view({2, 1})), spans, sums);
      EXPECT_EQ(numbers(means.data()), (std::vector<double>{3, 1}));
      EXPECT_EQ(sums[3].item<double>(), 9);
      EXPECT_EQ(sums[2].item<double>(), 3);
      EXPECT_EQ(sums[1].item<double>(), 4) << "what earlier passes left stays";
    });
  }
}

TEST(RunningMeans, PassGradientsToTheRowsOfThisPassAlone) {
  const AttentionSpans spans = causal({{0, 2, 1, 4, 0}});
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    const at::Tensor sums = at::tensor({0.0, 1.0, 3.0, 0.0, 0.0}, at::kDouble).view({5, 1});
    Tape tape(Tape::Kind::kRecording, ops);
    const Value x(at::tensor({3.0, 6.0}, at::kDouble).view({2, 1}));
    const Value means = running_means(tape, x, spans, sums);
    EXPECT_EQ(numbers(means.data()), (std::vector<double>{2, 3}));
    means.add_grad(at::tensor({3.0, 4.0}, at::kDouble).view({2, 1}));
    tape.backward();
    EXPECT_EQ(numbers(x.grad()), (std::vector<double>{2, 1}));
    EXPECT_EQ(numbers(sums), (std::vector<double>{0, 1, 3, 6, 12}));
  }
}

TEST(RunningMeans, OfRowsThatDoNotComeOneAfterAnotherAreRefused) {
  const Value x(test::random_tensor({3, 2}, 1));
  Tape tape(Tape::Kind::kRecording);
  AttentionSpans not_causal = causal({{0, 3, 0, 3, 0}});
  not_causal.causal = false;
  EXPECT_THROW(running_means(tape, x, not_causal), std::logic_error);
  EXPECT_THROW(running_means(tape, x, causal({{0, 3, 0, 4, 0}})), std::logic_error) << "no sum of the row before";
  AttentionSpans listed = causal({{0, 3, 0, 3, 0}});
  listed.key_rows = {0, 1, 2};
  EXPECT_THROW(running_means(tape, x, listed, test::random_tensor({3, 2}, 2)), std::logic_error);
}

}  // namespace
}  // namespace tearless::engine::running_means_test
