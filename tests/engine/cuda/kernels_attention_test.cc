// CUDA's attention, forward and backward, against loops in double.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/engine/cuda/kernel_check.h"

namespace tearless::engine::test {
namespace {

struct AttentionCase {
  std::vector<int32_t> queries, keys;  // lengths of the spans
  bool causal;
  int64_t heads, d_head;
  double p;
  bool aligned;
  bool named = false;  // keys by Attention::key_rows; no backward then
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

template <class T>
void check_attention(const AttentionCase& c) {
  SCOPED_TRACE(fmt::format("queries {}, keys {}, causal {}, {} heads of {}, p {}, aligned {}, named {}, {} bytes",
                           c.queries, c.keys, c.causal, c.heads, c.d_head, c.p, c.aligned, c.named, sizeof(T)));
  int64_t query_rows = 0, key_rows = 0;
  const std::vector<AttentionSpan> spans = spans_of(c, query_rows, key_rows);
  const int64_t d_model = c.heads * c.d_head;
  // q has columns around it; k and v are two parts of wider rows.
  const int64_t q_stride = d_model + (c.aligned ? 16 : 3), kv_stride = 2 * d_model + (c.aligned ? 8 : 1);
  const int64_t d_stride = d_model + 5;
  const size_t q_size = static_cast<size_t>(query_rows * q_stride), kv_size = static_cast<size_t>(key_rows * kv_stride);
  const size_t out_size = static_cast<size_t>(query_rows * d_model);
  const std::vector<double> q = normal_numbers<T>(q_size, 1), kv = normal_numbers<T>(kv_size, 2);
  const std::vector<double> d_out = normal_numbers<T>(out_size, 3);
  const std::vector<double> d_q_before = normal_numbers<T>(static_cast<size_t>(query_rows * d_stride), 4);
  const std::vector<double> d_k_before = normal_numbers<T>(static_cast<size_t>(key_rows * d_stride), 5);
  const std::vector<double> d_v_before = normal_numbers<T>(static_cast<size_t>(key_rows * d_stride), 6);
  const Dropout dropout = some_dropout(c.p);
  const size_t shift = c.aligned ? 0 : 1;
  // Rows in no order, each of the first half named by about two spans and the others by none.
  std::vector<int32_t> names;
  for (int64_t place = 0; place < key_rows; ++place) {
    names.push_back(static_cast<int32_t>((place * 101 + 5) % ((key_rows + 1) / 2)));
  }

  const Outputs got = run_twice([&] {
    const Array<T> qq = Array<T>::of(q, shift), kkvv = Array<T>::of(kv, shift), d = Array<T>::of(d_out, shift);
    const Array<AttentionSpan> device_spans(spans);
    const Array<int32_t> device_names(names);
    Array<T> out = Array<T>::of(std::vector<double>(out_size, 7), shift);
    const Kernels<T>& kernels = backend()->kernels<T>();
    Array<float> kept(
        static_cast<size_t>(kernels.attention_kept(spans.data(), static_cast<int64_t>(spans.size()), c.heads)));
    std::fill_n(kept.data(), kept.size(), 0.0f);
    Array<T> d_q = Array<T>::of(d_q_before), d_k = Array<T>::of(d_k_before), d_v = Array<T>::of(d_v_before);
    Attention<T> a{.spans = device_spans.data(),
                   .span_count = static_cast<int64_t>(spans.size()),
                   .longest_query = *std::max_element(c.queries.begin(), c.queries.end()),
                   .longest_key = *std::max_element(c.keys.begin(), c.keys.end()),
                   .causal = c.causal,
                   .heads = c.heads,
                   .d_head = c.d_head,
                   .q = qq.data(),
                   .k = kkvv.data(),
                   .v = kkvv.data() + d_model,
                   .q_stride = q_stride,
                   .k_stride = kv_stride,
                   .v_stride = kv_stride,
                   .key_rows = c.named ? device_names.data() : nullptr,
                   .dropout = dropout,
                   .out = out.data(),
                   .kept = c.named ? nullptr : kept.data()};
    kernels.attention(a, nullptr);
    if (c.named) {
      backend()->synchronise();
      return Outputs{out.values()};
    }
    a.out = nullptr;  // backward asks for `kept` alone
    kernels.attention_backward({.forward = a,
                                .d_out = d.data(),
                                .d_q = d_q.data(),
                                .d_k = d_k.data(),
                                .d_v = d_v.data(),
                                .d_q_stride = d_stride,
                                .d_k_stride = d_stride,
                                .d_v_stride = d_stride},
                               nullptr);
    backend()->synchronise();
    return Outputs{out.values(), d_q.values(), d_k.values(), d_v.values(), kept.values()};
  });

  std::vector<double> out(out_size, 7), d_q = d_q_before, d_k = d_k_before, d_v = d_v_before;
  const double scale = 1 / std::sqrt(static_cast<double>(c.d_head));
  for (const AttentionSpan& s : spans) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const auto q_at = [&](int64_t i, int64_t x) -> size_t {
        return static_cast<size_t>((s.query_begin + i) * q_stride + h * c.d_head + x);
      };
      const auto k_at = [&](int64_t j, int64_t x) -> size_t {
        const int64_t place = s.key_begin + j;
        const int64_t row = c.named ? names[static_cast<size_t>(place)] : place;
        return static_cast<size_t>(row * kv_stride + h * c.d_head + x);
      };
      const auto out_at = [&](int64_t i, int64_t x) -> size_t {
        return static_cast<size_t>((s.query_begin + i) * d_model + h * c.d_head + x);
      };
      const auto d_at = [&](int64_t row, int64_t x) -> size_t {
        return static_cast<size_t>(row * d_stride + h * c.d_head + x);
      };
      for (int64_t i = 0; i < s.query_count; ++i) {
        const int64_t seen = c.causal ? i + 1 : s.key_count;
        std::vector<double> p(static_cast<size_t>(seen)), g(static_cast<size_t>(seen)), keep(static_cast<size_t>(seen));
        double sum = 0, mean = 0, top = -INFINITY;
        for (int64_t j = 0; j < seen; ++j) {
          double dot = 0;
          for (int64_t x = 0; x < c.d_head; ++x) dot += q[q_at(i, x)] * kv[k_at(j, x)];
          p[static_cast<size_t>(j)] = scale * dot;
          top = std::max(top, scale * dot);
        }
        for (double& x : p) sum += x = std::exp(x - top);
        for (double& x : p) x /= sum;
        for (int64_t x = 0; x < c.d_head; ++x) out[out_at(i, x)] = 0;
        for (int64_t j = 0; j < seen; ++j) {
          const size_t at = static_cast<size_t>(j);
          keep[at] = keep_of(dropout, j, i | h << 16, s.line);
          double dot = 0;
          for (int64_t x = 0; x < c.d_head; ++x) {
            const double v = kv[k_at(j, x) + static_cast<size_t>(d_model)];
            out[out_at(i, x)] += keep[at] * p[at] * v;
            dot += d_out[out_at(i, x)] * v;
            d_v[d_at(s.key_begin + j, x)] += keep[at] * p[at] * d_out[out_at(i, x)];
          }
          g[at] = keep[at] * dot;
          mean += p[at] * g[at];
        }
        for (int64_t j = 0; j < seen; ++j) {
          const double d_score = p[static_cast<size_t>(j)] * (g[static_cast<size_t>(j)] - mean) * scale;
          for (int64_t x = 0; x < c.d_head; ++x) {
            d_q[d_at(s.query_begin + i, x)] += d_score * kv[k_at(j, x)];
            d_k[d_at(s.key_begin + j, x)] += d_score * q[q_at(i, x)];
          }
        }
      }
    }
  }
  // Scores are sums of d_head terms, and their error comes through the exponential as a relative one: scores here are
  // of size 4 at most, so 4 · arithmetic(d_head) of it; then sums over the keys or queries.
  const int64_t longest =
      std::max(*std::max_element(c.queries.begin(), c.queries.end()), *std::max_element(c.keys.begin(), c.keys.end()));
  const double error = 4 * arithmetic(c.d_head) + arithmetic(longest);
  expect_close<T>("out", got[0], out, error);
  if (c.named) return;
  expect_close<T>("d_q", got[1], d_q, error);
  expect_close<T>("d_k", got[2], d_k, error);
  expect_close<T>("d_v", got[3], d_v, error);
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
      check_both({.queries = {5, 17},
                  .keys = {33, 2},
                  .causal = false,
                  .heads = 1,
                  .d_head = d_head,
                  .p = p,
                  .aligned = false});
    }
  }
}

TEST_P(AttentionKernel, TakesSentencesOfAnyLength) {
  for (const bool causal : {false, true}) {
    for (const double p : {0.0, 0.2}) {
      std::vector<int32_t> lengths;
      for (int32_t n = 1; n <= 40; ++n) lengths.push_back(n);
      check_both(
          {.queries = lengths, .keys = lengths, .causal = causal, .heads = 1, .d_head = 8, .p = p, .aligned = true});
      lengths = {63, 64, 65, 96, 97, 127, 128};
      check_both(
          {.queries = lengths, .keys = lengths, .causal = causal, .heads = 1, .d_head = 16, .p = p, .aligned = true});
      lengths = {129, 160, 255, 300};
      check_both(
          {.queries = lengths, .keys = lengths, .causal = causal, .heads = 1, .d_head = 8, .p = p, .aligned = true});
    }
  }
}

TEST_P(AttentionKernel, TakesManyMoreKeysThanQueriesAndTheReverse) {
  for (const double p : {0.0, 0.2}) {
    check_both({.queries = {1, 3, 300},
                .keys = {300, 200, 2},
                .causal = false,
                .heads = 2,
                .d_head = 16,
                .p = p,
                .aligned = true});
    check_both({.queries = {4}, .keys = {1100}, .causal = false, .heads = 1, .d_head = 64, .p = p, .aligned = true});
  }
}

TEST_P(AttentionKernel, WideHeadsWithLongSentencesGetSmallerTiles) {
  check_both({.queries = {150}, .keys = {150}, .causal = true, .heads = 1, .d_head = 128, .p = 0.2, .aligned = true});
  check_both({.queries = {70}, .keys = {90}, .causal = false, .heads = 1, .d_head = 256, .p = 0, .aligned = true});
}

TEST_P(AttentionKernel, FindsKeysByTheirRows) {
  const std::vector<int32_t> keys = {1, 2, 7, 31, 32, 33, 100, 129, 300};
  for (const int64_t d_head : {5, 16, 64}) {
    for (const bool aligned : {true, false}) {
      if (aligned && d_head % 16 != 0) continue;
      check_both({.queries = std::vector<int32_t>(keys.size(), 1),
                  .keys = keys,
                  .causal = false,
                  .heads = 3,
                  .d_head = d_head,
                  .p = 0,
                  .aligned = aligned,
                  .named = true});
      check_both({.queries = {1, 6, 40},
                  .keys = {1, 150, 3},
                  .causal = false,
                  .heads = 2,
                  .d_head = d_head,
                  .p = 0.2,
                  .aligned = aligned,
                  .named = true});
    }
  }
}

// What fills up a batch to its bucket.
TEST_P(AttentionKernel, SpansWithoutKeysGiveZerosAndSpansWithoutQueriesNothing) {
  constexpr int64_t kHead = 8;
  const std::vector<AttentionSpan> spans = {{0, 3, 0, 0, 5}, {3, 0, 0, 4, 6}, {3, 2, 0, 4, 7}};
  const Array<AttentionSpan> device_spans(spans);
  const Array<float> x = Array<float>::of(normal_numbers<float>(5 * kHead, 1));
  Array<float> out = Array<float>::of(std::vector<double>(5 * kHead, 7)), kept(5),
               d_q = Array<float>::of(std::vector<double>(5 * kHead, 1));
  Array<float> d_kv = Array<float>::of(std::vector<double>(5 * kHead));
  const Attention<float> a{.spans = device_spans.data(),
                           .span_count = 3,
                           .longest_query = 3,
                           .longest_key = 4,
                           .heads = 1,
                           .d_head = kHead,
                           .q = x.data(),
                           .k = x.data(),
                           .v = x.data(),
                           .q_stride = kHead,
                           .k_stride = kHead,
                           .v_stride = kHead,
                           .out = out.data(),
                           .kept = kept.data()};
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

TEST_P(AttentionKernel, RefusesHeadsThatAreTooWide) {
  const Array<float> x(1);
  const Kernels<float>& kernels = *backend()->float_kernels;
  const Attention<float> a{
      .span_count = 1, .longest_query = 1, .longest_key = 1, .heads = 1, .d_head = kernels.widest_head + 1};
  EXPECT_THROW(kernels.attention(a, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace tearless::engine::test
