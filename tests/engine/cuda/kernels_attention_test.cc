// The CUDA attention kernels, forward and backward, against loops in double.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/cuda/attention_mma_short.h"
#include "tests/engine/cuda/kernel_check.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::test::kernels_attention_test {
namespace {

struct AttentionCase {
  std::vector<int32_t> queries, keys;  // lengths of the spans
  bool causal = false;
  int64_t heads = 1, d_head;
  double p = 0;
  bool aligned = true;
  bool indexed = false;  // keys by Attention::key_rows; no backward then
  bool short_spans = false, one_query = false;

  int64_t longest() const {
    return std::max(*std::max_element(queries.begin(), queries.end()), *std::max_element(keys.begin(), keys.end()));
  }
};

/// Whether tensor cores take it: then the weights of a sum are rounded to bf16 first.
template <class T>
bool by_mma(const AttentionCase& c) {
  return std::is_same_v<T, bf16> && c.aligned && !c.indexed && c.d_head % 16 == 0 && c.d_head <= 128;
}

/// A sum of products, and what its weights' roundings to bf16 may add to it: independent as they are, the root of the
/// squares, three times that for the tails.
class Sum {
 public:
  Sum(std::vector<double> start) : value(std::move(start)), squares_(value.size()) {}
  void add(size_t at, double weight, double x) {
    value[at] += weight * x;
    squares_[at] += weight * x * weight * x;
  }
  std::vector<double> roundings(bool by_mma) const {
    std::vector<double> allowed(value.size());
    for (size_t i = 0; by_mma && i < value.size(); ++i) allowed[i] = 3 * 0x1p-8 * std::sqrt(squares_[i]);
    return allowed;
  }
  std::vector<double> value;

 private:
  std::vector<double> squares_;
};

/// Spans over rows in another order than their own, with a row between them that no span covers.
std::vector<AttentionSpan> spans_of(const AttentionCase& c, int64_t& query_rows, int64_t& key_rows) {
  std::vector<AttentionSpan> spans;
  query_rows = 1;
  key_rows = 2;
  for (size_t i = 0; i < c.queries.size(); ++i) {
    spans.push_back({static_cast<int32_t>(query_rows), c.queries[i], static_cast<int32_t>(key_rows), c.keys[i],
                     static_cast<int32_t>(17 + i * 1'000'003)});
    query_rows += c.queries[i] + 1;
    key_rows += c.keys[i];
  }
  std::reverse(spans.begin(), spans.end());
  return spans;
}

/// The arguments of one call, as doubles that T stores exactly, and their sizes.
template <class T>
struct AttentionInputs {
  explicit AttentionInputs(const AttentionCase& c)
      : spans(spans_of(c, query_rows, key_rows)),
        d_model(c.heads * c.d_head),
        q_stride(d_model + (c.aligned ? 16 : 3)),
        kv_stride(2 * d_model + (c.aligned ? 8 : 1)),
        d_stride(d_model + (c.aligned ? 24 : 5)),
        q(normal_numbers<T>(static_cast<size_t>(query_rows * q_stride), 1)),
        kv(normal_numbers<T>(static_cast<size_t>(key_rows * kv_stride), 2)),
        d_out(normal_numbers<T>(static_cast<size_t>(query_rows * d_model), 3)),
        d_q_before(normal_numbers<T>(static_cast<size_t>(query_rows * d_stride), 4)),
        d_k_before(normal_numbers<T>(static_cast<size_t>(key_rows * d_stride), 5)),
        d_v_before(normal_numbers<T>(static_cast<size_t>(key_rows * d_stride), 6)),
        out_before(d_out.size(), 7),
        dropout(some_dropout(c.p)) {
    for (int64_t i = 0; i < key_rows; ++i) {
      indices.push_back(static_cast<int32_t>((i * 101 + 5) % ((key_rows + 1) / 2)));
    }
  }

  int64_t query_rows = 0, key_rows = 0;
  std::vector<AttentionSpan> spans;
  int64_t d_model;
  // q has columns around it; k and v are two parts of wider rows.
  int64_t q_stride, kv_stride, d_stride;
  std::vector<double> q, kv, d_out, d_q_before, d_k_before, d_v_before, out_before;
  Dropout dropout;
  std::vector<int32_t> indices;  // rows in no order, each of the first half by about two spans, the others by none
};

/// out, ∂q, ∂k, ∂v and the saved logsumexp of the kernels; `out` alone for indexed keys.
template <class T>
Outputs run_attention(const AttentionCase& c, const AttentionInputs<T>& in) {
  const size_t shift = c.aligned ? 0 : 1;
  const Array<T> q = Array<T>::of(in.q, shift), kv = Array<T>::of(in.kv, shift), d = Array<T>::of(in.d_out, shift);
  const Array<AttentionSpan> spans(in.spans);
  const Array<int32_t> indices(in.indices);
  Array<T> out = Array<T>::of(in.out_before, shift);
  const Kernels<T>& kernels = backend()->kernels<T>();
  const int64_t span_count = static_cast<int64_t>(in.spans.size());
  Array<float> logsumexp(static_cast<size_t>(kernels.attention_saved_size(in.spans.data(), span_count, c.heads)));
  std::fill_n(logsumexp.data(), logsumexp.size(), 0.0f);
  Attention<T> a{.spans = spans.data(),
                 .span_count = span_count,
                 .max_query_length = *std::max_element(c.queries.begin(), c.queries.end()),
                 .max_key_length = *std::max_element(c.keys.begin(), c.keys.end()),
                 .causal = c.causal,
                 .heads = c.heads,
                 .d_head = c.d_head,
                 .q = q.data(),
                 .k = kv.data(),
                 .v = kv.data() + in.d_model,
                 .q_stride = in.q_stride,
                 .k_stride = in.kv_stride,
                 .v_stride = in.kv_stride,
                 .key_rows = c.indexed ? indices.data() : nullptr,
                 .dropout = in.dropout,
                 .one_query = c.one_query,
                 .out = out.data(),
                 .saved = c.indexed ? nullptr : logsumexp.data()};
  kernels.attention(a, nullptr);
  if (c.indexed) {
    backend()->synchronise();
    return {out.values()};
  }
  a.out = nullptr;  // backward reads only the saved logsumexp
  Array<T> d_q = Array<T>::of(in.d_q_before), d_k = Array<T>::of(in.d_k_before), d_v = Array<T>::of(in.d_v_before);
  kernels.attention_backward({.forward = a,
                              .d_out = d.data(),
                              .d_q = d_q.data(),
                              .d_k = d_k.data(),
                              .d_v = d_v.data(),
                              .d_q_stride = in.d_stride,
                              .d_k_stride = in.d_stride,
                              .d_v_stride = in.d_stride,
                              .short_spans = c.short_spans},
                             nullptr);
  backend()->synchronise();
  return {out.values(), d_q.values(), d_k.values(), d_v.values(), logsumexp.values()};
}

/// The expected values, by loops in double.
template <class T>
struct ExpectedAttention {
  Sum out, d_q, d_k, d_v;
  std::vector<double> logsumexp;  // [query row, heads]; 0 for rows of no span, -∞ for queries without keys

  ExpectedAttention(const AttentionCase& c, const AttentionInputs<T>& in)
      : out(in.out_before),
        d_q(in.d_q_before),
        d_k(in.d_k_before),
        d_v(in.d_v_before),
        logsumexp(static_cast<size_t>((in.query_rows - 1) * c.heads)) {  // no span has the last row
    for (const AttentionSpan& s : in.spans) {
      for (int64_t h = 0; h < c.heads; ++h) {
        for (int64_t i = 0; i < s.query_count; ++i) add_query(c, in, s, h, i);
      }
    }
  }

 private:
  /// What query i of a span gives for head h.
  void add_query(const AttentionCase& c, const AttentionInputs<T>& in, const AttentionSpan& s, int64_t h, int64_t i) {
    const double scale = 1 / std::sqrt(static_cast<double>(c.d_head));
    const auto element = [&](int64_t row, int64_t stride, int64_t x) {
      return static_cast<size_t>(row * stride + h * c.d_head + x);
    };
    const auto k_at = [&](int64_t j, int64_t x) {
      const int64_t row = s.key_begin + j;
      return element(c.indexed ? in.indices[static_cast<size_t>(row)] : row, in.kv_stride, x);
    };
    const int64_t query = s.query_begin + i;
    const size_t seen = static_cast<size_t>(c.causal ? s.key_count - s.query_count + i + 1 : s.key_count);
    std::vector<double> p(seen), g(seen), keep(seen);
    double sum = 0, p_dot_g = 0, max = -INFINITY;
    for (size_t j = 0; j < seen; ++j) {
      double dot = 0;
      for (int64_t x = 0; x < c.d_head; ++x) {
        dot += in.q[element(query, in.q_stride, x)] * in.kv[k_at(static_cast<int64_t>(j), x)];
      }
      p[j] = scale * dot;
      max = std::max(max, p[j]);
    }
    for (double& x : p) sum += x = std::exp(x - max);
    for (double& x : p) x /= sum;
    logsumexp[static_cast<size_t>(query * c.heads + h)] = seen > 0 ? max + std::log(sum) : -INFINITY;
    for (int64_t x = 0; x < c.d_head; ++x) out.value[element(query, in.d_model, x)] = 0;
    for (size_t j = 0; j < seen; ++j) {
      const int64_t key = static_cast<int64_t>(j);
      keep[j] = keep_of(in.dropout, key, i | h << 16, s.sentence_id);
      double dot = 0;
      for (int64_t x = 0; x < c.d_head; ++x) {
        const double v = in.kv[k_at(key, x) + static_cast<size_t>(in.d_model)];
        const double d = in.d_out[element(query, in.d_model, x)];
        out.add(element(query, in.d_model, x), keep[j] * p[j], v);
        dot += d * v;
        d_v.add(element(s.key_begin + key, in.d_stride, x), keep[j] * p[j], d);
      }
      g[j] = keep[j] * dot;
      p_dot_g += p[j] * g[j];
    }
    for (size_t j = 0; j < seen; ++j) {
      const int64_t key = static_cast<int64_t>(j);
      const double d_score = p[j] * (g[j] - p_dot_g) * scale;
      for (int64_t x = 0; x < c.d_head; ++x) {
        d_q.add(element(query, in.d_stride, x), d_score, in.kv[k_at(key, x)]);
        d_k.add(element(s.key_begin + key, in.d_stride, x), d_score, in.q[element(query, in.q_stride, x)]);
      }
    }
  }
};

/// Where -∞ is expected, exactly that.
void expect_close_or_infinite(const char* what, std::vector<double> got, std::vector<double> expected, double error) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isinf(expected[i])) continue;
    EXPECT_EQ(got[i], expected[i]) << what << ", element " << i;
    got[i] = expected[i] = 0;
  }
  expect_close<float>(what, got, expected, error, 1);
}

/// By the kernels in use, and by the variants of them that take such a case.
template <class T>
void check_attention(const AttentionCase& c) {
  SCOPED_TRACE(fmt::format("queries {}, keys {}, causal {}, {} heads of {}, p {}, aligned {}, indexed {}, {} bytes",
                           c.queries, c.keys, c.causal, c.heads, c.d_head, c.p, c.aligned, c.indexed, sizeof(T)));
  const AttentionInputs<T> in(c);
  const ExpectedAttention<T> expected(c, in);
  // Scores are sums of d_head terms, and their error comes through the exponential as a relative one: scores here are
  // of size 4 at most, so 4 · arithmetic(d_head) of it; then sums over the keys or queries.
  const double error = 4 * arithmetic(c.d_head) + arithmetic(c.longest());
  const bool rounds = by_mma<T>(c);
  const auto check = [&](const char* variant, const AttentionCase& as) {
    SCOPED_TRACE(variant);
    const Outputs got = run_twice([&] { return run_attention(as, in); });
    expect_close<T>("out", got[0], expected.out.value, error, 0, expected.out.roundings(rounds));
    if (c.indexed) return;
    expect_close<T>("d_q", got[1], expected.d_q.value, error, 0, expected.d_q.roundings(rounds));
    expect_close<T>("d_k", got[2], expected.d_k.value, error, 0, expected.d_k.roundings(rounds));
    expect_close<T>("d_v", got[3], expected.d_v.value, error, 0, expected.d_v.roundings(rounds));
    expect_close_or_infinite("logsumexp", got[4], expected.logsumexp, error);
  };
  check("in use", c);
  AttentionCase as = c;
  as.one_query = as.short_spans = true;
  const bool one_query = *std::max_element(c.queries.begin(), c.queries.end()) == 1;
  if (c.indexed ? one_query && c.aligned && c.p == 0 : rounds && c.longest() <= kMaxShort) check("a variant", as);
}

void check_both(const AttentionCase& c) {
  check_attention<float>(c);
  check_attention<bf16>(c);
}

class AttentionKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(AttentionKernel);

TEST_P(AttentionKernel, TakesHeadsOfAnyWidth) {
  for (const int64_t d_head : {1, 5, 8, 16, 31, 32, 33, 64, 100, 128, 130, 256}) {
    for (const double p : {0.0, 0.2}) {
      check_both({.queries = {9, 1, 35},
                  .keys = {9, 1, 35},
                  .causal = p > 0,
                  .heads = 2,
                  .d_head = d_head,
                  .p = p,
                  .aligned = d_head % 16 == 0});
      check_both({.queries = {5, 17}, .keys = {33, 2}, .d_head = d_head, .p = p, .aligned = false});
    }
  }
}

TEST_P(AttentionKernel, TakesSentencesOfAnyLength) {
  for (const bool causal : {false, true}) {
    for (const double p : {0.0, 0.2}) {
      // A warp owns 4 rows and a lane has one of 32: the lengths around whole fours and whole chunks.
      std::vector<int32_t> lengths = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40};
      check_both({.queries = lengths, .keys = lengths, .causal = causal, .d_head = 8, .p = p});
      lengths = {63, 65, 97, 128};
      check_both({.queries = lengths, .keys = lengths, .causal = causal, .d_head = 16, .p = p});
      lengths = {129, 160};  // a tile has 128 rows at most: one more, and a chunk more
      check_both({.queries = lengths, .keys = lengths, .causal = causal, .d_head = 8, .p = p});
    }
  }
}

TEST_P(AttentionKernel, TakesManyMoreKeysThanQueriesAndTheReverse) {
  for (const double p : {0.0, 0.2}) {
    check_both({.queries = {1, 3, 300}, .keys = {300, 200, 2}, .heads = 2, .d_head = 16, .p = p});
    check_both({.queries = {4}, .keys = {1100}, .d_head = 64, .p = p});
  }
}

// The queries are the last of their keys. Memories that are no multiple of a tile, a chunk or a warp's rows.
TEST_P(AttentionKernel, CausalQueriesSeeAMemoryBeforeThem) {
  for (const double p : {0.0, 0.2}) {
    const std::vector<int32_t> queries = {1, 5, 16, 33, 20, 3, 0, 40}, keys = {7, 9, 16, 50, 150, 300, 0, 41};
    for (const int64_t d_head : {8, 64}) {
      check_both({.queries = queries, .keys = keys, .causal = true, .heads = 2, .d_head = d_head, .p = p});
    }
    check_both({.queries = {129, 40, 17}, .keys = {257, 200, 48}, .causal = true, .d_head = 16, .p = p});
    check_both({.queries = {7, 12}, .keys = {19, 40}, .causal = true, .d_head = 5, .p = p, .aligned = false});
    check_both({.queries = {3, 20}, .keys = {40, 33}, .causal = true, .d_head = 16, .p = p, .indexed = true});
  }
}

TEST_P(AttentionKernel, WideHeadsWithLongSentencesGetSmallerTiles) {
  check_both({.queries = {150}, .keys = {150}, .causal = true, .d_head = 128, .p = 0.2});
  check_both({.queries = {70}, .keys = {90}, .d_head = 256});
}

TEST_P(AttentionKernel, OnTensorCoresIsTheSame) {
  std::vector<int32_t> lengths;
  for (int32_t n = 1; n <= 50; n += n < 18 ? 1 : 6) lengths.push_back(n);
  const std::vector<double> rates = tearless::test::kSanitized ? std::vector{0.2} : std::vector{0.0, 0.2};
  for (const bool causal : {false, true}) {
    for (const double p : rates) {
      const auto check = [&](const std::vector<int32_t>& queries, const std::vector<int32_t>& keys, int64_t heads,
                             int64_t d_head) {
        check_attention<bf16>({.queries = queries,
                               .keys = causal ? queries : keys,
                               .causal = causal,
                               .heads = heads,
                               .d_head = d_head,
                               .p = p});
      };
      check(lengths, {lengths.rbegin(), lengths.rend()}, 1, 64);
      check({25, 7, 31, 18, 0, 16}, {33, 0, 1, 48, 5, 16}, 8, 64);
      // Warps own 16 queries each and 64 together; a tile has 128 keys at most.
      check({63, 64, 65}, {65, 1, 130}, 1, 48);
      check({129, 257}, {257, 31}, 1, 16);
      for (const int64_t d_head : {32, 80, 96, 112, 128}) check({33, 2}, {17, 70}, 1, d_head);
    }
  }
  // What backward holds of many queries leaves little shared memory for tiles; then none, and it takes the kernel
  // without tensor cores.
  check_attention<bf16>({.queries = {3600}, .keys = {17}, .d_head = 128, .p = 0.2});
  check_attention<bf16>({.queries = {12200}, .keys = {1}, .d_head = 16});
}

/// One attention in bf16, forward and backward, each with rows on 16 bytes or not: tensor cores take the one, and
/// the kernel without them the other.
struct TwoPaths {
  std::vector<AttentionSpan> spans;
  int64_t rows;
  bool causal;
  int64_t heads, d_head;
  double p;
  std::vector<double> q = {}, k = {}, v = {}, d_out = {};  // [rows, heads · d_head]

  /// out, logsumexp, ∂q, ∂k, ∂v.
  Outputs run(bool forward_by_mma, bool backward_by_mma) const {
    const int64_t d_model = heads * d_head;
    const auto call = [&](bool mma, Array<bf16>& out, Array<float>& logsumexp, Array<bf16>* gradients) {
      const size_t shift = mma ? 0 : 1;
      const Array<AttentionSpan> device_spans(spans);
      const Array<bf16> qq = Array<bf16>::of(q, shift), kk = Array<bf16>::of(k, shift), vv = Array<bf16>::of(v, shift),
                        dd = Array<bf16>::of(d_out, shift);
      const Attention<bf16> a{.spans = device_spans.data(),
                              .span_count = static_cast<int64_t>(spans.size()),
                              .max_query_length = rows,
                              .max_key_length = rows,
                              .causal = causal,
                              .heads = heads,
                              .d_head = d_head,
                              .q = qq.data(),
                              .k = kk.data(),
                              .v = vv.data(),
                              .q_stride = d_model,
                              .k_stride = d_model,
                              .v_stride = d_model,
                              .dropout = some_dropout(p),
                              .out = out.data(),
                              .saved = logsumexp.data()};
      if (!gradients) {
        backend()->bf16_kernels->attention(a, nullptr);
      } else {
        backend()->bf16_kernels->attention_backward({.forward = a,
                                                     .d_out = dd.data(),
                                                     .d_q = gradients[0].data(),
                                                     .d_k = gradients[1].data(),
                                                     .d_v = gradients[2].data(),
                                                     .d_q_stride = d_model,
                                                     .d_k_stride = d_model,
                                                     .d_v_stride = d_model},
                                                    nullptr);
      }
      backend()->synchronise();
    };
    const std::vector<double> zeros(q.size());
    Array<bf16> out = Array<bf16>::of(zeros);
    Array<float> logsumexp(static_cast<size_t>(rows * heads));
    std::fill_n(logsumexp.data(), logsumexp.size(), 0.0f);
    call(forward_by_mma, out, logsumexp, nullptr);
    Array<bf16> gradients[] = {Array<bf16>::of(zeros), Array<bf16>::of(zeros), Array<bf16>::of(zeros)};
    call(backward_by_mma, out, logsumexp, gradients);
    return {out.values(), logsumexp.values(), gradients[0].values(), gradients[1].values(), gradients[2].values()};
  }
};

TEST_P(AttentionKernel, WithAndWithoutTensorCoresMayBeMixed) {
  for (const bool causal : {false, true}) {
    for (const double p : {0.0, 0.3}) {
      constexpr int64_t kRows = 160;
      TwoPaths paths{.spans = {{0, 25, 0, 25, 7}, {25, 40, 25, 40, 1'000'003}, {65, 95, 65, 95, 9}},
                     .rows = kRows,
                     .causal = causal,
                     .heads = 2,
                     .d_head = 64,
                     .p = p};
      const size_t size = static_cast<size_t>(kRows * paths.heads * paths.d_head);
      paths.q = normal_numbers<bf16>(size, 1);
      paths.k = normal_numbers<bf16>(size, 2);
      paths.v = normal_numbers<bf16>(size, 3);
      paths.d_out = normal_numbers<bf16>(size, 4);
      const Outputs simt = paths.run(false, false);
      for (const auto& [forward, backward] : {std::pair{true, true}, {true, false}, {false, true}}) {
        SCOPED_TRACE(
            fmt::format("causal {}, p {}, forward on tensor cores {}, backward {}", causal, p, forward, backward));
        const Outputs got = paths.run(forward, backward);
        expect_close<bf16>("out", got[0], simt[0], 0x1p-8);
        expect_close<float>("logsumexp", got[1], simt[1], arithmetic(paths.d_head));
        const char* const names[] = {"d_q", "d_k", "d_v"};
        for (size_t i = 0; i < 3; ++i) {
          expect_close<bf16>(names[i], got[2 + i], simt[2 + i], backward ? 0x1p-8 : 0x1p-12);
        }
      }
    }
  }
}

// With scores all the same and an identity for the values, the output shows which weights were dropped; with one for
// its gradient, ∂v does.
TEST_P(AttentionKernel, OnTensorCoresDropsTheSameWeights) {
  constexpr int64_t kRows = 128, kHeads = 3;
  TwoPaths paths{.spans = {{0, 128, 0, 128, 1'000'003}},
                 .rows = kRows,
                 .causal = false,
                 .heads = kHeads,
                 .d_head = kRows,
                 .p = 0.3};
  paths.q = paths.k = std::vector<double>(kRows * kHeads * kRows);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kHeads * kRows; ++c) paths.v.push_back(c % kRows == row ? 1 : 0);
  }
  paths.d_out = paths.v;
  const Outputs got = paths.run(true, true);
  const Dropout dropout = some_dropout(paths.p);
  int64_t wrong = 0;
  for (int64_t query = 0; query < kRows; ++query) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t key = 0; key < kRows; ++key) {
        const bool kept = keep_of(dropout, key, query | h << 16, 1'000'003) != 0;
        wrong += kept != (got[0][static_cast<size_t>((query * kHeads + h) * kRows + key)] != 0);
        wrong += kept != (got[4][static_cast<size_t>((key * kHeads + h) * kRows + query)] != 0);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(AttentionKernel, OnTensorCoresReadsNoRowsOfOthers) {
  constexpr int64_t kRows = 70, kHead = 32;
  constexpr size_t kFirst = 20 * kHead, kLast = 45 * kHead;  // the span that is looked at
  for (const bool causal : {false, true}) {
    TwoPaths paths{.spans = {{0, 20, 0, 20, 1}, {20, 25, 20, 25, 2}, {47, 23, 47, 23, 3}},
                   .rows = kRows,
                   .causal = causal,
                   .heads = 1,
                   .d_head = kHead,
                   .p = 0.1};
    for (uint64_t seed = 1; std::vector<double> * x : {&paths.q, &paths.k, &paths.v, &paths.d_out}) {
      *x = normal_numbers<bf16>(kRows * kHead, seed++);
    }
    const Outputs wanted = paths.run(true, true);
    for (std::vector<double>* x : {&paths.q, &paths.k, &paths.v, &paths.d_out}) {
      for (size_t i = 0; i < x->size(); ++i) {
        if (i < kFirst || i >= kLast) (*x)[i] = NAN;
      }
    }
    const Outputs got = paths.run(true, true);
    for (const size_t i : {0, 2, 3, 4}) {
      for (size_t at = kFirst; at < kLast; ++at) {
        ASSERT_EQ(got[i][at], wanted[i][at]) << "output " << i << ", element " << at;
      }
    }
  }
}

TEST_P(AttentionKernel, FindsKeysByTheirRows) {
  const std::vector<int32_t> keys = {1, 2, 7, 31, 32, 33, 100, 129, 300};
  for (const int64_t d_head : {5, 16, 64}) {
    for (const bool aligned : {true, false}) {
      if (aligned && d_head % 16 != 0) continue;
      check_both({.queries = std::vector<int32_t>(keys.size(), 1),
                  .keys = keys,
                  .heads = 3,
                  .d_head = d_head,
                  .aligned = aligned,
                  .indexed = true});
      check_both({.queries = {1, 0, 1},
                  .keys = {0, 3, 70},
                  .causal = true,
                  .heads = 5,
                  .d_head = d_head,
                  .aligned = aligned,
                  .indexed = true});
      check_both({.queries = {1, 6, 40},
                  .keys = {1, 150, 3},
                  .heads = 2,
                  .d_head = d_head,
                  .p = 0.2,
                  .aligned = aligned,
                  .indexed = true});
    }
  }
}

// What fills up a batch to its bucket.
TEST_P(AttentionKernel, SpansWithoutKeysGiveZerosAndSpansWithoutQueriesNothing) {
  constexpr int64_t kHead = 8;
  const std::vector<AttentionSpan> spans = {{0, 3, 0, 0, 5}, {3, 0, 0, 4, 6}, {3, 2, 0, 4, 7}};
  const Array<AttentionSpan> device_spans(spans);
  const Array<float> x = Array<float>::of(normal_numbers<float>(5 * kHead, 1));
  Array<float> out = Array<float>::of(std::vector<double>(5 * kHead, 7)), logsumexp(5),
               d_q = Array<float>::of(std::vector<double>(5 * kHead, 1));
  Array<float> d_kv = Array<float>::of(std::vector<double>(5 * kHead));
  const Attention<float> a{.spans = device_spans.data(),
                           .span_count = 3,
                           .max_query_length = 3,
                           .max_key_length = 4,
                           .heads = 1,
                           .d_head = kHead,
                           .q = x.data(),
                           .k = x.data(),
                           .v = x.data(),
                           .q_stride = kHead,
                           .k_stride = kHead,
                           .v_stride = kHead,
                           .out = out.data(),
                           .saved = logsumexp.data()};
  backend()->float_kernels->attention(a, nullptr);
  backend()->float_kernels->attention_backward({.forward = a,
                                                .d_out = x.data(),
                                                .d_q = d_q.data(),
                                                .d_k = d_kv.data(),
                                                .d_v = d_kv.data(),
                                                .d_q_stride = kHead,
                                                .d_k_stride = kHead,
                                                .d_v_stride = kHead},
                                               nullptr);
  backend()->synchronise();
  for (size_t i = 0; i < 3 * kHead; ++i) {
    EXPECT_EQ(out[i], 0);
    EXPECT_EQ(d_q[i], 1);
  }
  for (size_t i = 3 * kHead; i < 5 * kHead; ++i) EXPECT_NE(out[i], 7);
  for (size_t i = 4 * kHead; i < 5 * kHead; ++i) EXPECT_EQ(d_kv[i], 0);
}

/// Self-attention over rows of which the spans of `lengths` cover the first, then two without queries; as many rows
/// behind them that are no sentence's. With `stores` out, ∂q, ∂k and ∂v begin as NaN, without as 0.
template <class T>
Outputs run_padded(const std::vector<int32_t>& lengths, int64_t d_head, bool short_spans, bool stores) {
  constexpr int64_t kHeads = 2, kPadding = 21;
  std::vector<AttentionSpan> spans;
  int32_t begin = 0;
  for (const int32_t length : lengths) {
    spans.push_back({begin, length, begin, length, begin + 1});
    begin += length;
  }
  for (int i = 0; i < 2; ++i) spans.push_back({begin, 0, begin, 0, 0});
  const int64_t rows = begin + kPadding, d_model = kHeads * d_head, width = 3 * d_model;
  const Array<AttentionSpan> device_spans(spans);
  const Array<T> qkv = Array<T>::of(normal_numbers<T>(static_cast<size_t>(rows * width), 1)),
                 d_out = Array<T>::of(normal_numbers<T>(static_cast<size_t>(rows * d_model), 2));
  const double before = stores ? NAN : 0;
  Array<T> out = Array<T>::of(std::vector<double>(d_out.size(), before)),
           d_qkv = Array<T>::of(std::vector<double>(qkv.size(), before));
  Array<float> logsumexp(static_cast<size_t>(rows * kHeads));
  const Attention<T> a{.spans = device_spans.data(),
                       .span_count = static_cast<int64_t>(spans.size()),
                       .max_query_length = *std::max_element(lengths.begin(), lengths.end()),
                       .max_key_length = *std::max_element(lengths.begin(), lengths.end()),
                       .causal = true,
                       .heads = kHeads,
                       .d_head = d_head,
                       .q = qkv.data(),
                       .k = qkv.data() + d_model,
                       .v = qkv.data() + 2 * d_model,
                       .q_stride = width,
                       .k_stride = width,
                       .v_stride = width,
                       .dropout = some_dropout(0.2),
                       .out = out.data(),
                       .padded_rows = stores ? rows : 0,
                       .saved = logsumexp.data()};
  backend()->kernels<T>().attention(a, nullptr);
  backend()->kernels<T>().attention_backward({.forward = a,
                                              .d_out = d_out.data(),
                                              .d_q = d_qkv.data(),
                                              .d_k = d_qkv.data() + d_model,
                                              .d_v = d_qkv.data() + 2 * d_model,
                                              .d_q_stride = width,
                                              .d_k_stride = width,
                                              .d_v_stride = width,
                                              .short_spans = short_spans,
                                              .stored_rows = stores ? rows : 0,
                                              .stores_keys = stores},
                                             nullptr);
  backend()->synchronise();
  return {out.values(), d_qkv.values()};
}

template <class T>
void expect_stored_as_added(const std::vector<int32_t>& lengths, int64_t d_head, bool short_spans) {
  SCOPED_TRACE(fmt::format("{}, heads of {}, short {}, {} bytes", lengths, d_head, short_spans, sizeof(T)));
  const Outputs added = run_padded<T>(lengths, d_head, short_spans, false);
  const Outputs stored = run_twice([&] { return run_padded<T>(lengths, d_head, short_spans, true); });
  EXPECT_EQ(stored[0], added[0]) << "out";
  EXPECT_EQ(stored[1], added[1]) << "d_qkv";
}

TEST_P(AttentionKernel, StoresGradientsWhereNothingIsToBeAddedTo) {
  const std::vector<int32_t> lengths = {1, 16, 33, 64};
  expect_stored_as_added<float>(lengths, 8, false);
  expect_stored_as_added<bf16>(lengths, 5, false);
  for (const int64_t d_head : {16, 64, 80}) {
    expect_stored_as_added<bf16>(lengths, d_head, false);
    expect_stored_as_added<bf16>(lengths, d_head, true);
  }
  expect_stored_as_added<bf16>({70, 3}, 64, true);
}

TEST_P(AttentionKernel, RefusesHeadsThatAreTooWide) {
  const Array<float> x(1);
  const Kernels<float>& kernels = *backend()->float_kernels;
  const Attention<float> a{
      .span_count = 1, .max_query_length = 1, .max_key_length = 1, .heads = 1, .d_head = kernels.widest_head + 1};
  EXPECT_THROW(kernels.attention(a, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace tearless::engine::test::kernels_attention_test
