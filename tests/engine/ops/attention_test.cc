// Packed attention against the textbook formula: sentences padded to one length, scores masked, everything at once.
#include "engine/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/engine/ops/op_check.h"
#include "tests/support/error_of.h"

namespace tearless::engine::attention_test {
namespace {

using test::packed_rows;
using test::random_tensor;

constexpr int64_t kWidth = 12, kHeads = 3;

/// [T, D] packed rows → [N, longest, D], zeros where a sentence has ended.
at::Tensor pad(const at::Tensor& packed, const PackedRows& rows, int64_t longest) {
  at::Tensor padded = at::zeros({rows.sentence_count(), longest, packed.size(1)}, packed.options());
  for (int64_t i = 0; i < rows.sentence_count(); ++i) {
    const int32_t begin = rows.offsets[static_cast<size_t>(i)];
    const int32_t end = rows.offsets[static_cast<size_t>(i) + 1];
    padded[i].slice(0, 0, end - begin).copy_(packed.slice(0, begin, end));
  }
  return padded;
}

int64_t longest(const std::vector<int32_t>& lengths) { return *std::max_element(lengths.begin(), lengths.end()); }

at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int32_t>& key_lengths, bool causal) {
  const auto split = [](const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);  // [N, H, length, d_h]
  };
  at::Tensor scores = split(q).matmul(split(k).transpose(2, 3)) / std::sqrt(static_cast<double>(kWidth) / kHeads);
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < key_lengths.size(); ++i) {
    scores[static_cast<int64_t>(i)].slice(2, key_lengths[i]).fill_(kHidden);
  }
  if (causal) scores = scores + at::full({q.size(1), k.size(1)}, kHidden, scores.options()).triu(1);
  return at::softmax(scores, 3).matmul(split(v)).transpose(1, 2).flatten(2);
}

TEST(Attention, OverPackedRowsEqualsAttentionOverPaddedOnes) {
  const std::vector<int32_t> lengths = {5, 1, 40, 8};
  const std::vector<int32_t> source_lengths = {9, 3, 1, 17};
  const PackedRows rows = packed_rows(lengths);
  const PackedRows source = packed_rows(source_lengths);
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    for (const bool causal : {false, true}) {
      Tape tape(Tape::Kind::kForward, ops);
      const Value qkv(random_tensor({rows.row_count(), 3 * kWidth}, 1));
      const at::Tensor packed = attention(tape, {qkv, 0}, {qkv, kWidth}, {qkv, 2 * kWidth}, kWidth, kHeads,
                                          AttentionSpans::self(rows, causal), Dropout::off())
                                    .data();
      const auto part = [&](int64_t i) {
        return pad(qkv.data().slice(1, i * kWidth, (i + 1) * kWidth), rows, longest(lengths));
      };
      const at::Tensor padded = padded_attention(part(0), part(1), part(2), lengths, causal);
      for (int64_t i = 0; i < rows.sentence_count(); ++i) {
        const auto s = static_cast<size_t>(i);
        EXPECT_LT(
            test::distance(packed.slice(0, rows.offsets[s], rows.offsets[s + 1]), padded[i].slice(0, 0, lengths[s])),
            1e-13);
      }
    }
    Tape tape(Tape::Kind::kForward, ops);
    const Value q(random_tensor({rows.row_count(), kWidth}, 2));
    const Value kv(random_tensor({source.row_count(), 2 * kWidth}, 3));
    const at::Tensor packed = attention(tape, {q, 0}, {kv, 0}, {kv, kWidth}, kWidth, kHeads,
                                        AttentionSpans::cross(rows, source), Dropout::off())
                                  .data();
    const at::Tensor padded = padded_attention(
        pad(q.data(), rows, longest(lengths)), pad(kv.data().slice(1, 0, kWidth), source, longest(source_lengths)),
        pad(kv.data().slice(1, kWidth), source, longest(source_lengths)), source_lengths, false);
    for (int64_t i = 0; i < rows.sentence_count(); ++i) {
      const auto s = static_cast<size_t>(i);
      EXPECT_LT(
          test::distance(packed.slice(0, rows.offsets[s], rows.offsets[s + 1]), padded[i].slice(0, 0, lengths[s])),
          1e-13);
    }
  }
}

TEST(Attention, OfASegmentAfterItsMemoryEqualsTheLastRowsOfTheWhole) {
  const std::vector<int32_t> lengths = {5, 1, 40, 8}, segments = {2, 1, 17, 8};  // the last queries of each sentence
  const PackedRows rows = packed_rows(lengths);
  const Value qkv(random_tensor({rows.row_count(), 3 * kWidth}, 9));
  const auto part = [&](int64_t i) {
    return pad(qkv.data().slice(1, i * kWidth, (i + 1) * kWidth), rows, longest(lengths));
  };
  const at::Tensor whole = padded_attention(part(0), part(1), part(2), lengths, /*causal=*/true);
  std::vector<int32_t> queries;  // rows of the last ones
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (int32_t row = rows.offsets[i + 1] - segments[i]; row < rows.offsets[i + 1]; ++row) queries.push_back(row);
  }
  const Value q(qkv.data().index_select(0, index_tensor(queries, qkv.data())));
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Tape tape(Tape::Kind::kForward, ops);
    const auto run = [&](int32_t memory) {
      AttentionSpans spans;
      spans.causal = true;
      int32_t query = 0;
      for (size_t i = 0; i < lengths.size(); ++i) {
        const int32_t keys = std::min(lengths[i], segments[i] + memory);
        spans.add({query, segments[i], rows.offsets[i + 1] - keys, keys, 0});
        query += segments[i];
      }
      return attention(tape, {q, 0}, {qkv, kWidth}, {qkv, 2 * kWidth}, kWidth, kHeads, spans, Dropout::off()).data();
    };
    const at::Tensor all_before = run(100), four_before = run(4);
    int64_t begin = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto sentence = static_cast<int64_t>(i);
      const at::Tensor last = whole[sentence].slice(0, lengths[i] - segments[i], lengths[i]);
      EXPECT_LT(test::distance(all_before.slice(0, begin, begin + segments[i]), last), 1e-13) << "sentence " << i;
      // A shorter memory is another result, where there is more to see.
      const bool shorter = lengths[i] > segments[i] + 4;
      EXPECT_EQ(test::distance(four_before.slice(0, begin, begin + segments[i]), last) > 1e-3, shorter);
      begin += segments[i];
    }
  }
}

TEST(Attention, IsZeroInPaddingRowsOfABucket) {
  const PackedRows rows = packed_rows({4, 7});
  constexpr int64_t kMore = 3;
  const at::Tensor all = random_tensor({rows.row_count() + kMore, 3 * kWidth}, 5);
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Tape tape(Tape::Kind::kForward, ops);
    const auto run = [&](const at::Tensor& x, const AttentionSpans& spans) {
      const Value qkv(x);
      return attention(tape, {qkv, 0}, {qkv, kWidth}, {qkv, 2 * kWidth}, kWidth, kHeads, spans, Dropout::off()).data();
    };
    AttentionSpans spans = AttentionSpans::self(rows, true);
    const at::Tensor alone = run(all.slice(0, 0, rows.row_count()).contiguous(), spans);
    const auto end = static_cast<int32_t>(all.size(0));
    spans.spans.push_back({end, 0, end, 0, 0});
    spans.padded = true;
    const at::Tensor filled = run(all, spans);
    ASSERT_EQ(filled.size(0), all.size(0));
    EXPECT_TRUE(at::equal(filled.slice(0, 0, rows.row_count()), alone));
    EXPECT_EQ(filled.slice(0, rows.row_count()).count_nonzero().item<int64_t>(), 0);
  }
}

TEST(Attention, OfASentenceHasTheSameBitsInAnyBatch) {
  const PackedRows together = packed_rows({6, 11, 3});
  PackedRows alone;
  for (int32_t p = 0; p < 11; ++p) {
    alone.tokens.push_back(0);
    alone.positions.push_back(p);
    alone.sentence_ids.push_back(together.sentence_ids[6]);
  }
  alone.offsets = {0, 11};
  const at::Tensor rows = random_tensor({together.row_count(), 3 * kWidth}, 4).to(at::kFloat);
  const Dropout dropout = Dropout::with(0.3, RandomStream(1, "drop.weights"), 2);
  const auto run = [&](const at::Tensor& x, const PackedRows& packed) {
    Tape tape(Tape::Kind::kRecording);
    const Value qkv(x.clone());
    const Value out = attention(tape, {qkv, 0}, {qkv, kWidth}, {qkv, 2 * kWidth}, kWidth, kHeads,
                                tape.save(AttentionSpans::self(packed, true)), dropout);
    out.add_grad(out.data().clone());
    tape.backward();
    return std::pair{out.data(), qkv.grad()};
  };
  const auto [y, dx] = run(rows, together);
  const auto [y_alone, dx_alone] = run(rows.slice(0, 6, 17).contiguous(), alone);
  EXPECT_TRUE(at::equal(y.slice(0, 6, 17), y_alone));
  EXPECT_TRUE(at::equal(dx.slice(0, 6, 17), dx_alone));
}

TEST(Attention, OverCacheRowsByIndexEqualsAttentionOverCopiedRows) {
  // Two hypotheses of beam search: the second extends the first one, whose keys and values it reads from the cache.
  const std::vector<int32_t> key_rows = {4, 0, 3, 4, 2};
  AttentionSpans by_index;
  by_index.add({0, 1, 0, 2, 0});
  by_index.add({1, 1, 2, 3, 0});
  AttentionSpans copied = by_index;
  by_index.key_rows = key_rows;
  for (const int64_t d_head : {3, 4, 8, 16, 24, 32, 64, 128}) {  // whole vectors of some instruction sets, and not
    SCOPED_TRACE(d_head);
    const int64_t width = 2 * d_head;
    const at::Tensor q = random_tensor({2, width}, 6), cache = random_tensor({5, 2 * width}, 7);
    const auto run = [&](Tape::Ops ops, const at::Tensor& rows, const AttentionSpans& spans) {
      Tape tape(Tape::Kind::kForward, ops);
      const Value keys(rows), queries(q.to(rows.scalar_type()));
      return attention(tape, {queries, 0}, {keys, 0}, {keys, width}, width, 2, spans, Dropout::off()).data();
    };
    const at::Tensor copy = cache.index_select(0, index_tensor(key_rows, cache));
    const at::Tensor expected = run(Tape::Ops::kReference, copy, copied);
    EXPECT_LT(test::distance(run(Tape::Ops::kReference, cache, by_index), expected), 1e-14);
    test::for_each_cpu_backend([&] {
      EXPECT_LT(test::distance(run(Tape::Ops::kFast, cache, by_index), expected), 1e-14);
      EXPECT_LT(test::distance(run(Tape::Ops::kFast, cache.to(at::kFloat), by_index), expected), 1e-6);
    });
  }
}

TEST(Attention, OverCacheRowsByIndexIsRefusedOnARecordingTape) {
  AttentionSpans spans;
  spans.add({0, 1, 0, 2, 0});
  spans.key_rows = {4, 0};
  const Value q(random_tensor({1, kWidth}, 6)), cache(random_tensor({5, 2 * kWidth}, 7));
  for (const Tape::Ops ops : {Tape::Ops::kFast, Tape::Ops::kReference}) {
    Tape recording(Tape::Kind::kRecording, ops), forward(Tape::Kind::kForward, ops);
    const auto run = [&](Tape& tape) {
      return attention(tape, {q, 0}, {cache, 0}, {cache, kWidth}, kWidth, kHeads, spans, Dropout::off()).data();
    };
    EXPECT_EQ(tearless::test::error_of<std::logic_error>([&] { run(recording); }),
              "attention: key_rows on a recording tape have no gradient");
    EXPECT_EQ(run(forward).sizes(), q.data().sizes());
  }
}

TEST(Attention, OfColumnsBeyondItsRowsOrOfUnequalHeadsIsRefused) {
  const PackedRows rows = packed_rows({4});
  const AttentionSpans spans = AttentionSpans::self(rows, false);
  const Value qkv(random_tensor({4, 3 * kWidth}, 1));
  Tape tape(Tape::Kind::kForward);
  const auto run = [&](int64_t first, int64_t width, int64_t heads) {
    attention(tape, {qkv, 0}, {qkv, kWidth}, {qkv, first}, width, heads, spans, Dropout::off());
  };
  EXPECT_NO_THROW(run(2 * kWidth, kWidth, kHeads));
  EXPECT_THROW(run(2 * kWidth + 1, kWidth, kHeads), std::logic_error);
  EXPECT_THROW(run(2 * kWidth, kWidth, 5), std::logic_error);
  EXPECT_THROW(AttentionSpans::cross(rows, packed_rows({4, 2})), std::logic_error);
}

TEST(Attention, OfHeadsTooWideForItsKernelsGivesTheSameResult) {
  const PackedRows rows = packed_rows({4, 7});
  const Value qkv(random_tensor({rows.row_count(), 3 * kWidth}, 8).to(at::kFloat));
  AttentionSpans named = AttentionSpans::self(rows, false);
  for (int32_t row = 0; row < rows.row_count(); ++row) named.key_rows.push_back(10 - row);
  const Backend& whole = cpu_backend();
  Kernels<float> wide_enough = *whole.float_kernels, narrow = wide_enough;
  wide_enough.widest_head = kWidth / kHeads;
  narrow.widest_head = kWidth / kHeads - 1;
  const auto run = [&](const Kernels<float>& kernels, int64_t formulas) {
    Backend backend = whole;
    backend.name = "limited";
    backend.float_kernels = &kernels;
    use_cpu_backend(backend);
    Tape tape(Tape::Kind::kForward);
    const at::Tensor y =
        attention(tape, {qkv, 0}, {qkv, kWidth}, {qkv, 2 * kWidth}, kWidth, kHeads, named, Dropout::off()).data();
    use_cpu_backend(whole);
    EXPECT_EQ(tape.fallback_ops(), formulas);
    return y;
  };
  const at::Tensor expected = run(*whole.float_kernels, 0);
  EXPECT_TRUE(at::equal(run(wide_enough, 0), expected));
  EXPECT_LT(test::distance(run(narrow, 1), expected), test::kFloatTolerance) << "by formula";
}

TEST(Attention, IsFiniteForScoresFarApart) {
  const PackedRows rows = packed_rows({4});
  Tape tape(Tape::Kind::kForward);
  const Value qkv((random_tensor({4, 3 * kWidth}, 5) * 1e3).to(at::kFloat));
  const at::Tensor y = attention(tape, {qkv, 0}, {qkv, kWidth}, {qkv, 2 * kWidth}, kWidth, kHeads,
                                 AttentionSpans::self(rows, false), Dropout::off())
                           .data();
  EXPECT_TRUE(y.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace tearless::engine::attention_test
