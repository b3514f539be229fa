// Attention with relative positions against loops in double, written from docs/spec/tasks.md §1.2.
#include "engine/ops/relative_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/engine/ops/op_check.h"
#include "tests/support/error_of.h"

namespace tearless::engine::relative_attention_test {
namespace {

using test::random_tensor;

constexpr int64_t kWidth = 12, kHeads = 3, kHead = kWidth / kHeads;

/// The operands of one call: segments after their memories, in two streams.
struct Inputs {
  at::Tensor q, kv, r, u, w;  // kv [S, 2 D]: k and v side by side
  AttentionSpans spans;
  int64_t window = 0;

  std::vector<at::Tensor> all() const { return {q, kv, r, u, w}; }
};

/// `memory` keys before the queries of the first stream, and one fewer before those of the second. Rows of kv that no
/// span has are between the two and after them.
Inputs inputs(int32_t queries, int32_t memory, int64_t positions, int64_t window = 0) {
  constexpr int32_t kUnused = 3;
  const int32_t first = memory + queries, second = first - 1;
  Inputs in{random_tensor({2 * queries, kWidth}, 1),
            random_tensor({first + second + 2 * kUnused, 2 * kWidth}, 2),
            random_tensor({positions, kWidth}, 3),
            random_tensor({kWidth}, 4),
            random_tensor({kWidth}, 5),
            {},
            window};
  in.spans.causal = true;
  in.spans.add({0, queries, 0, first, 7});
  in.spans.add({queries, queries, first + kUnused, second, 8});
  return in;
}

Value apply(Tape& tape, const Inputs& in, const std::vector<Value>& x) {
  return relative_attention(tape, {x[0], 0}, {x[1], 0}, {x[1], kWidth}, x[2], x[3], x[4], kWidth, kHeads, in.spans,
                            in.window, Dropout::off());
}

std::vector<Value> values_of(const Inputs& in, at::ScalarType type = at::kDouble) {
  std::vector<Value> values;
  for (const at::Tensor& x : in.all()) values.emplace_back(x.to(type).clone());
  return values;
}

at::Tensor output(const Inputs& in, Tape::Ops ops, at::ScalarType type = at::kDouble) {
  Tape tape(Tape::Kind::kForward, ops);
  return apply(tape, in, values_of(in, type)).data();
}

at::Tensor expected_output(const Inputs& in) {
  const auto q = in.q.accessor<double, 2>(), kv = in.kv.accessor<double, 2>(), r = in.r.accessor<double, 2>();
  const auto u = in.u.accessor<double, 1>(), w = in.w.accessor<double, 1>();
  at::Tensor out = at::zeros({in.q.size(0), kWidth}, at::kDouble);
  auto sum = out.accessor<double, 2>();
  for (const AttentionSpan& s : in.spans.spans) {
    for (int64_t i = 0; i < s.query_count; ++i) {
      for (int64_t column = 0; column < kWidth; column += kHead) {
        const int64_t own = s.key_count - s.query_count + i, query = s.query_begin + i;
        std::vector<double> e;
        double total = 0;
        for (int64_t j = 0; j <= own; ++j) {
          const int64_t distance = own - j;
          if (in.window > 0 && distance >= in.window) {
            e.push_back(0);
            continue;
          }
          double score = 0;
          for (int64_t c = column; c < column + kHead; ++c) {
            score += (q[query][c] + u[c]) * kv[s.key_begin + j][c] +
                     (q[query][c] + w[c]) * r[std::min(distance, in.r.size(0) - 1)][c];
          }
          e.push_back(std::exp(score / std::sqrt(static_cast<double>(kHead))));
          total += e.back();
        }
        for (int64_t j = 0; j <= own; ++j) {
          for (int64_t c = column; c < column + kHead; ++c) {
            sum[query][c] += e[static_cast<size_t>(j)] / total * kv[s.key_begin + j][kWidth + c];
          }
        }
      }
    }
  }
  return out;
}

/// Formula and kernels give `expected_output`, in all instruction sets.
void expect_right(const Inputs& in) {
  const at::Tensor expected = expected_output(in);
  EXPECT_LT(test::distance(output(in, Tape::Ops::kReference), expected), 1e-13) << "formula";
  test::for_each_cpu_backend([&] {
    EXPECT_LT(test::distance(output(in, Tape::Ops::kFast), expected), 1e-13) << "kernels";
    EXPECT_LT(test::distance(output(in, Tape::Ops::kFast, at::kFloat), expected), 1e-5) << "kernels in float";
  });
}

TEST(RelativeAttention, OfASegmentAfterItsMemoryEqualsThePlainLoops) {
  for (const int32_t queries : {1, 2, 31, 32, 33, 70}) {
    for (const int32_t memory : {1, 5, 64, 100}) {
      SCOPED_TRACE(fmt::format("{} queries after {}", queries, memory));
      expect_right(inputs(queries, memory, queries + memory));
    }
  }
}

TEST(RelativeAttention, WithAWindowSeesTheKeysInItAlone) {
  for (const int64_t window : {1, 2, 15, 16, 17, 40, 104, 105, 1000}) {
    SCOPED_TRACE(fmt::format("window {}", window));
    expect_right(inputs(65, 40, 105, window));
  }
}

TEST(RelativeAttention, GivesExactlyNothingToKeysOutsideTheWindow) {
  const Inputs in = inputs(4, 40, 44, /*window=*/20);
  constexpr int64_t kQuery = 3, kOwnKey = 40 + kQuery;
  test::for_each_cpu_backend([&] {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor before = output(in, Tape::Ops::kFast, type)[kQuery];
      for (const int64_t distance : {20, 21, 27}) {
        Inputs large = in;
        large.kv = in.kv.clone();
        large.kv[kOwnKey - distance].fill_(1e37);
        EXPECT_TRUE(at::equal(output(large, Tape::Ops::kFast, type)[kQuery], before)) << distance;
      }
      Inputs just_inside = in;
      just_inside.kv = in.kv.clone();
      just_inside.kv[kOwnKey - 19] += 1;
      EXPECT_GT(test::distance(output(just_inside, Tape::Ops::kFast, type)[kQuery], before), 1e-3);
    }
  });
}

TEST(RelativeAttention, TakesTheLastPositionForAllThatAreFarther) {
  for (const int64_t positions : {1, 2, 30, 63, 64}) {
    SCOPED_TRACE(fmt::format("{} positions", positions));
    expect_right(inputs(40, 24, positions));
  }
  // As if its row were repeated; its gradient is then the sum of theirs.
  const Inputs clamped = inputs(40, 24, 30);
  Inputs repeated = clamped;
  repeated.r = at::zeros({64, kWidth}, at::kDouble);
  repeated.r.slice(0, 0, 30).copy_(clamped.r);
  repeated.r.slice(0, 30).copy_(clamped.r[29].unsqueeze(0).expand({34, -1}));
  test::for_each_cpu_backend([&] {
    const auto gradient = [](const Inputs& in) {
      return test::forward_backward([&](Tape& tape, const std::vector<Value>& x) { return apply(tape, in, x); },
                                    in.all(), Tape::Ops::kFast, at::kDouble)
          .gradients[2];
    };
    const at::Tensor few = gradient(clamped), many = gradient(repeated);
    EXPECT_LT(test::distance(few.slice(0, 0, 29), many.slice(0, 0, 29)), 1e-13);
    EXPECT_LT(test::distance(few[29], many.slice(0, 29).sum(0)), 1e-13);
  });
}

TEST(RelativeAttention, TellsDistancesThatAnEqualContentDoesNot) {
  // Equal keys, and positions that favour the third key back: only u and w and R can tell.
  Inputs in = inputs(6, 10, 16);
  in.kv.slice(1, 0, kWidth).fill_(1);
  in.r.zero_();
  in.r[3].fill_(100);
  in.q.fill_(1);
  in.w.zero_();
  const at::Tensor out = output(in, Tape::Ops::kFast);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_LT(test::distance(out[i], in.kv[10 + i - 3].slice(0, kWidth)), 1e-12) << "query " << i;
  }
}

TEST(RelativeAttention, DoesNotReadRowsThatNoSpanHas) {
  const Inputs clean = inputs(33, 20, 53);
  Inputs unfilled = clean;
  std::vector<bool> covered(static_cast<size_t>(clean.kv.size(0)));
  for (const AttentionSpan& s : clean.spans.spans) {
    std::fill_n(covered.begin() + s.key_begin, s.key_count, true);
  }
  for (size_t row = 0; row < covered.size(); ++row) {
    if (!covered[row]) unfilled.kv[static_cast<int64_t>(row)].fill_(std::numeric_limits<double>::quiet_NaN());
  }
  const auto run = [](const Inputs& in, Tape::Ops ops) {
    return test::forward_backward([&](Tape& tape, const std::vector<Value>& x) { return apply(tape, in, x); }, in.all(),
                                  ops, at::kFloat);
  };
  const auto expect_unread = [&](Tape::Ops ops) {
    const test::ForwardBackward without = run(clean, ops), with = run(unfilled, ops);
    EXPECT_TRUE(at::equal(with.output, without.output));
    for (size_t i = 0; i < with.gradients.size(); ++i) {
      EXPECT_TRUE(at::equal(with.gradients[i], without.gradients[i])) << "gradient of input " << i;
    }
    for (size_t row = 0; row < covered.size(); ++row) {
      if (covered[row]) continue;
      EXPECT_EQ(with.gradients[1][static_cast<int64_t>(row)].count_nonzero().item<int64_t>(), 0) << "row " << row;
    }
  };
  expect_unread(Tape::Ops::kReference);
  test::for_each_cpu_backend([&] { expect_unread(Tape::Ops::kFast); });
}

TEST(RelativeAttention, GivesNoGradientToWhatWantsNone) {
  const Inputs in = inputs(9, 6, 15);
  const auto gradients = [&](size_t constant) {
    std::vector<Value> x;
    for (const at::Tensor& data : in.all()) x.emplace_back(data.clone(), x.size() != constant);
    Tape tape(Tape::Kind::kRecording);
    const Value out = apply(tape, in, x);
    out.add_grad(out.data().clone());
    tape.backward();
    std::vector<at::Tensor> all;
    for (const Value& value : x) all.push_back(value.grad());
    return all;
  };
  const std::vector<at::Tensor> wanted = gradients(SIZE_MAX);
  for (size_t constant = 0; constant < wanted.size(); ++constant) {
    const std::vector<at::Tensor> got = gradients(constant);
    for (size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(fmt::format("input {} where {} is constant", i, constant));
      ASSERT_EQ(got[i].defined(), i != constant);
      if (i != constant) {
        EXPECT_TRUE(at::equal(got[i], wanted[i]));
      }
    }
  }
}

TEST(RelativeAttention, OfAStreamHasTheSameBitsInAnyBatch) {
  const Inputs both = inputs(33, 20, 53, /*window=*/45);
  Inputs one = both;
  one.spans = {};
  one.spans.causal = one.spans.padded = true;
  one.spans.add(both.spans.spans[1]);
  EXPECT_TRUE(at::equal(output(both, Tape::Ops::kFast, at::kFloat).slice(0, 33),
                        output(one, Tape::Ops::kFast, at::kFloat).slice(0, 33)));
}

TEST(RelativeAttention, OfOtherSpansOrShapesIsRefused) {
  const Inputs in = inputs(4, 3, 7);
  const auto refuse = [](const Inputs& refused) {
    return tearless::test::error_of<std::logic_error>([&] { output(refused, Tape::Ops::kFast); });
  };
  const std::string of_spans = "relative attention: spans that are not causal, or with key_rows";
  Inputs listed = in;
  listed.spans.key_rows.resize(20);
  EXPECT_EQ(refuse(listed), of_spans);
  Inputs not_causal = in;
  not_causal.spans.causal = false;
  EXPECT_EQ(refuse(not_causal), of_spans);
  Inputs behind = in;
  behind.window = -1;
  EXPECT_EQ(refuse(behind), "relative attention: a negative window");
  const std::string of_width = "relative attention: positions or biases of another width";
  Inputs narrow = in;
  narrow.r = random_tensor({7, kWidth - 1}, 1);
  EXPECT_EQ(refuse(narrow), of_width);
  Inputs none = in;
  none.r = random_tensor({0, kWidth}, 1);
  EXPECT_EQ(refuse(none), of_width);
  Inputs short_bias = in;
  short_bias.u = random_tensor({kHead}, 1);
  EXPECT_EQ(refuse(short_bias), of_width);
  std::swap(short_bias.u, short_bias.w);
  EXPECT_EQ(refuse(short_bias), of_width);
}

TEST(RelativeAttention, CountsThePairsThatSeeEachOther) {
  const auto counted = [](const Inputs& in) {
    TapeProfile profile;
    Tape tape(Tape::Kind::kForward);
    tape.profile_to(&profile);
    apply(tape, in, values_of(in));
    return profile.attention_multiply_adds;
  };
  // Three queries after a memory of 4 and of 3: they see 5 + 6 + 7 and 4 + 5 + 6 keys, in a window of 5 five or fewer.
  EXPECT_EQ(counted(inputs(3, 4, 7)), 3 * kWidth * (18 + 15));
  EXPECT_EQ(counted(inputs(3, 4, 7, /*window=*/5)), 3 * kWidth * (15 + 14));
}

}  // namespace
}  // namespace tearless::engine::relative_attention_test
