// Means of spans: small numbers by hand, empty spans, rows in no span, NaN.
#include "engine/ops/span_means.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/engine/ops/op_check.h"

namespace tearless::engine::span_means_test {
namespace {

std::vector<double> numbers(const at::Tensor& x) {
  const at::Tensor doubles = x.to(at::kDouble).contiguous();
  return {doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + doubles.numel()};
}

/// Spans of keys: the queries are not read.
AttentionSpans spans_of(const std::vector<std::pair<int32_t, int32_t>>& keys) {
  AttentionSpans spans;
  for (const auto& [begin, count] : keys) spans.add({99, 98, begin, count, 0});
  return spans;
}

TEST(SpanMeans, AreThoseOfTheKeys) {
  const AttentionSpans spans = spans_of({{4, 1}, {5, 0}, {0, 3}});
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    test::for_each_cpu_backend([&] {
      Tape tape(Tape::Kind::kRecording, ops);
      const Value x(at::tensor({1.0, -1.0, 2.0, -2.0, 6.0, 0.0, 50.0, 50.0, 7.0, 8.0}, at::kDouble).view({5, 2}));
      const Value means = span_means(tape, x, spans);
      EXPECT_EQ(numbers(means.data()), (std::vector<double>{7, 8, 0, 0, 3, -1}));
      means.add_grad(at::tensor({1.0, 2.0, 1000.0, 1000.0, 6.0, -9.0}, at::kDouble).view({3, 2}));
      tape.backward();
      EXPECT_EQ(numbers(x.grad()), (std::vector<double>{2, -3, 2, -3, 2, -3, 0, 0, 1, 2}));
    });
  }
}

TEST(SpanMeans, HaveNanOfTheirOwnRowsOnly) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const AttentionSpans spans = spans_of({{0, 2}, {2, 0}, {2, 1}});
  for (const auto ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Tape tape(Tape::Kind::kForward, ops);
    const Value x(at::tensor({1.0, nan, 5.0, nan}, at::kDouble).view({4, 1}));
    const std::vector<double> means = numbers(span_means(tape, x, spans).data());
    EXPECT_TRUE(std::isnan(means[0]));
    EXPECT_EQ(means[1], 0);
    EXPECT_EQ(means[2], 5);
  }
}

TEST(SpanMeans, OfRowsByIndexAreRefused) {
  AttentionSpans spans = spans_of({{0, 2}});
  spans.key_rows = {1, 0};
  Tape tape(Tape::Kind::kForward);
  EXPECT_THROW(span_means(tape, Value(test::random_tensor({2, 3}, 1)), spans), std::logic_error);
}

TEST(SpanMeans, GiveNoGradientWhereNoneIsWanted) {
  const AttentionSpans spans = spans_of({{0, 2}});
  Tape tape(Tape::Kind::kRecording);
  const Value x(test::random_tensor({2, 3}, 1), /*requires_grad=*/false), unused(test::random_tensor({2, 3}, 2));
  const Value means = span_means(tape, x, spans);
  span_means(tape, unused, spans);
  means.add_grad(test::random_tensor({1, 3}, 3));
  tape.backward();
  EXPECT_FALSE(means.has_grad());
  EXPECT_FALSE(x.has_grad());
  EXPECT_FALSE(unused.has_grad());
}

}  // namespace
}  // namespace tearless::engine::span_means_test
