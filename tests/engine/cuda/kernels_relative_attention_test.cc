// The CUDA kernels of attention with relative positions, forward and backward, against loops in double.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/engine/cuda/kernel_check.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::test::kernels_relative_attention_test {
namespace {

struct RelativeCase {
  std::vector<int32_t> queries, keys;  // lengths of the spans
  int64_t positions;
  int64_t window = 0;
  int64_t heads = 1, d_head;
  double p = 0;
  bool aligned = true;
};

/// The arguments of one call, as doubles that T stores exactly. Spans are in another order than their rows, which have
/// rows of no span between them.
template <class T>
struct Inputs {
  explicit Inputs(const RelativeCase& c)
      : width(c.heads * c.d_head),
        q_stride(width + (c.aligned ? 16 : 3)),
        kv_stride(2 * width + (c.aligned ? 8 : 1)),
        d_stride(width + (c.aligned ? 24 : 5)),
        dropout(some_dropout(c.p)) {
    for (size_t i = 0; i < c.queries.size(); ++i) {
      spans.push_back({static_cast<int32_t>(query_rows), c.queries[i], static_cast<int32_t>(key_rows), c.keys[i],
                       static_cast<int32_t>(17 + i * 1'000'003)});
      query_rows += c.queries[i] + 1;
      key_rows += c.keys[i] + 2;
    }
    std::reverse(spans.begin(), spans.end());
    uint64_t seed = 1;
    const auto numbers = [&seed](int64_t count) { return normal_numbers<T>(static_cast<size_t>(count), seed++); };
    q = numbers(query_rows * q_stride);
    kv = numbers(key_rows * kv_stride);
    r = numbers(c.positions * width);
    d_out = numbers(query_rows * width);
    u = normal_numbers<float>(static_cast<size_t>(width), 11);
    w = normal_numbers<float>(static_cast<size_t>(width), 12);
    before = {numbers(query_rows * d_stride),
              numbers(key_rows * d_stride),
              numbers(key_rows * d_stride),
              numbers(c.positions * width),
              normal_numbers<float>(static_cast<size_t>(width), 13),
              normal_numbers<float>(static_cast<size_t>(width), 14)};
  }

  int64_t query_rows = 1, key_rows = 2;
  std::vector<AttentionSpan> spans;
  int64_t width, q_stride, kv_stride, d_stride;
  Dropout dropout;
  std::vector<double> q, kv, r, u, w, d_out;
  Outputs before;  // the gradients of q, k, v, r, u, w, to be added to
};

constexpr double kUnwritten = 7;

/// out, then the gradients of q, k, v, r, u and w. `wanted`: which of the gradients.
template <class T>
Outputs run(const RelativeCase& c, const Inputs<T>& in, unsigned wanted = 0x3F) {
  const size_t shift = c.aligned ? 0 : 1;
  const auto array = [&](const std::vector<double>& values) { return Array<T>::of(values, shift); };
  const Array<T> q = array(in.q), kv = array(in.kv), r = array(in.r), d_out = array(in.d_out);
  const Array<float> u = Array<float>::of(in.u), w = Array<float>::of(in.w);
  const Array<AttentionSpan> spans(in.spans);
  Array<T> out = array(std::vector<double>(in.d_out.size(), kUnwritten));
  Array<T> gradients[] = {array(in.before[0]), array(in.before[1]), array(in.before[2]), array(in.before[3])};
  Array<float> biases[] = {Array<float>::of(in.before[4]), Array<float>::of(in.before[5])};
  const Kernels<T>& kernels = backend()->kernels<T>();
  const auto span_count = static_cast<int64_t>(in.spans.size());
  Array<float> saved(static_cast<size_t>(kernels.attention_saved_size(in.spans.data(), span_count, c.heads)));
  RelativeAttention<T> a{.attention = {.spans = spans.data(),
                                       .span_count = span_count,
                                       .max_query_length = std::ranges::max(c.queries),
                                       .max_key_length = std::ranges::max(c.keys),
                                       .causal = true,
                                       .heads = c.heads,
                                       .d_head = c.d_head,
                                       .q = q.data(),
                                       .k = kv.data(),
                                       .v = kv.data() + in.width,
                                       .q_stride = in.q_stride,
                                       .k_stride = in.kv_stride,
                                       .v_stride = in.kv_stride,
                                       .dropout = in.dropout,
                                       .out = out.data(),
                                       .saved = saved.data()},
                         .positions = c.positions,
                         .r = r.data(),
                         .u = u.data(),
                         .w = w.data(),
                         .window = c.window};
  kernels.relative_attention(a, nullptr);
  a.attention.out = nullptr;  // backward reads only what was saved
  const auto pointer = [wanted](unsigned i, auto& x) { return wanted >> i & 1 ? x.data() : nullptr; };
  kernels.relative_attention_backward({.forward = a,
                                       .d_out = d_out.data(),
                                       .d_q = pointer(0, gradients[0]),
                                       .d_k = pointer(1, gradients[1]),
                                       .d_v = pointer(2, gradients[2]),
                                       .d_q_stride = in.d_stride,
                                       .d_k_stride = in.d_stride,
                                       .d_v_stride = in.d_stride,
                                       .d_r = pointer(3, gradients[3]),
                                       .d_u = pointer(4, biases[0]),
                                       .d_w = pointer(5, biases[1])},
                                      nullptr);
  backend()->synchronise();
  return {out.values(),          gradients[0].values(), gradients[1].values(), gradients[2].values(),
          gradients[3].values(), biases[0].values(),    biases[1].values()};
}

/// The same by loops in double.
template <class T>
Outputs expected(const RelativeCase& c, const Inputs<T>& in) {
  Outputs y = {std::vector<double>(in.d_out.size(), kUnwritten)};
  y.insert(y.end(), in.before.begin(), in.before.end());
  const double scale = 1 / std::sqrt(static_cast<double>(c.d_head));
  for (const AttentionSpan& s : in.spans) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t i = 0; i < s.query_count; ++i) {
        const int64_t own = s.key_count - s.query_count + i, query = s.query_begin + i;
        const int64_t first = c.window > 0 ? std::max<int64_t>(0, own + 1 - c.window) : 0;
        const auto at = [&](int64_t row, int64_t stride, int64_t x) {
          return static_cast<size_t>(row * stride + h * c.d_head + x);
        };
        const auto position = [&](int64_t j) { return std::min(own - j, c.positions - 1); };
        std::vector<double> p(static_cast<size_t>(own + 1)), g(p.size()), keep(p.size());
        double sum = 0, p_dot_g = 0;
        for (int64_t j = first; j <= own; ++j) {
          const auto key = static_cast<size_t>(j);
          double score = 0;
          for (int64_t x = 0; x < c.d_head; ++x) {
            const double one = in.q[at(query, in.q_stride, x)];
            score += (one + in.u[at(0, 0, x)]) * in.kv[at(s.key_begin + j, in.kv_stride, x)] +
                     (one + in.w[at(0, 0, x)]) * in.r[at(position(j), in.width, x)];
            g[key] += in.d_out[at(query, in.width, x)] * in.kv[at(s.key_begin + j, in.kv_stride, in.width + x)];
          }
          sum += p[key] = std::exp(scale * score);
          keep[key] = keep_of(in.dropout, j, i | h << 16, s.sentence_id);
          g[key] *= keep[key];
        }
        for (double& x : p) x /= sum;
        for (size_t j = 0; j < p.size(); ++j) p_dot_g += p[j] * g[j];
        for (int64_t x = 0; x < c.d_head; ++x) y[0][at(query, in.width, x)] = 0;
        for (int64_t j = first; j <= own; ++j) {
          const auto key = static_cast<size_t>(j);
          const double d_score = scale * p[key] * (g[key] - p_dot_g);
          for (int64_t x = 0; x < c.d_head; ++x) {
            const double one = in.q[at(query, in.q_stride, x)], k = in.kv[at(s.key_begin + j, in.kv_stride, x)],
                         r = in.r[at(position(j), in.width, x)];
            y[0][at(query, in.width, x)] += keep[key] * p[key] * in.kv[at(s.key_begin + j, in.kv_stride, in.width + x)];
            y[1][at(query, in.d_stride, x)] += d_score * (k + r);
            y[2][at(s.key_begin + j, in.d_stride, x)] += d_score * (one + in.u[at(0, 0, x)]);
            y[3][at(s.key_begin + j, in.d_stride, x)] += keep[key] * p[key] * in.d_out[at(query, in.width, x)];
            y[4][at(position(j), in.width, x)] += d_score * (one + in.w[at(0, 0, x)]);
            y[5][at(0, 0, x)] += d_score * k;
            y[6][at(0, 0, x)] += d_score * r;
          }
        }
      }
    }
  }
  return y;
}

constexpr const char* kOutputs[] = {"out", "d_q", "d_k", "d_v", "d_r", "d_u", "d_w"};

template <class T>
void check_one(const RelativeCase& c) {
  SCOPED_TRACE(fmt::format("queries {}, keys {}, {} positions, window {}, {} heads of {}, p {}, aligned {}, {} bytes",
                           c.queries, c.keys, c.positions, c.window, c.heads, c.d_head, c.p, c.aligned, sizeof(T)));
  const Inputs<T> in(c);
  const Outputs got = run_twice([&] { return run(c, in); });
  const Outputs wanted = expected(c, in);
  // As in kernels_attention_test.cc, with scores of twice the terms and twice the size; ∂r, ∂u and ∂w are sums over all
  // queries.
  int64_t queries = 0;
  for (const int32_t n : c.queries) queries += n;
  const double error = 8 * arithmetic(2 * c.d_head) + arithmetic(std::max<int64_t>(queries, std::ranges::max(c.keys)));
  for (size_t i = 0; i < got.size(); ++i) {
    if (i < 5) {
      expect_close<T>(kOutputs[i], got[i], wanted[i], error);
    } else {
      expect_close<float>(kOutputs[i], got[i], wanted[i], error);
    }
  }
}

void check(const RelativeCase& c) {
  check_one<float>(c);
  check_one<bf16>(c);
}

class RelativeAttentionKernel : public OnEachBackend {};
TEARLESS_ON_EACH_BACKEND(RelativeAttentionKernel);

TEST_P(RelativeAttentionKernel, TakesHeadsOfAnyWidth) {
  for (const int64_t d_head : {1, 5, 8, 32, 33, 64, 100, 130}) {
    check({.queries = {9, 1, 19},
           .keys = {14, 1, 35},
           .positions = 35,
           .heads = 2,
           .d_head = d_head,
           .p = d_head == 8 ? 0.2 : 0,
           .aligned = d_head % 16 == 0});
  }
}

// A warp has 4 rows, a block 16, a chunk 32, a tile 128 at most; so have the distances.
TEST_P(RelativeAttentionKernel, TakesSegmentsAndMemoriesOfAnyLength) {
  for (const double p : {0.0, 0.2}) {
    check({.queries = {1, 3, 4, 5, 15, 16, 17, 31, 32, 33},
           .keys = {1, 4, 4, 20, 16, 32, 18, 31, 50, 65},
           .positions = 65,
           .d_head = 8,
           .p = p});
    check({.queries = {0, 2, 40}, .keys = {0, 129, 161}, .positions = 200, .heads = 2, .d_head = 8, .p = p});
  }
  if (!tearless::test::kSanitized) check({.queries = {150}, .keys = {270}, .positions = 270, .d_head = 8, .p = 0.2});
}

TEST_P(RelativeAttentionKernel, WithAWindowSeesTheKeysInItAlone) {
  for (const int64_t window : {1, 7, 16, 33, 100}) {
    check({.queries = {40, 5}, .keys = {80, 90}, .positions = 90, .window = window, .heads = 2, .d_head = 8, .p = 0.2});
  }
}

TEST_P(RelativeAttentionKernel, TakesTheLastPositionForAllThatAreFarther) {
  for (const int64_t positions : {1, 2, 17, 49}) {
    check({.queries = {20, 7}, .keys = {50, 9}, .positions = positions, .heads = 2, .d_head = 8});
  }
  check({.queries = {20}, .keys = {50}, .positions = 5, .window = 30, .d_head = 5, .p = 0.2, .aligned = false});
}

TEST_P(RelativeAttentionKernel, WritesTheGradientsThatAreWanted) {
  const RelativeCase c{.queries = {9, 20}, .keys = {30, 25}, .positions = 30, .heads = 2, .d_head = 8};
  const Inputs<float> in(c);
  const Outputs all = run(c, in);
  for (unsigned i = 0; i < 6; ++i) {
    const Outputs one = run(c, in, 1u << i);
    for (size_t j = 0; j < 6; ++j) {
      EXPECT_EQ(one[1 + j], j == i ? all[1 + j] : in.before[j]) << kOutputs[1 + j] << " of " << kOutputs[1 + i];
    }
  }
}

TEST_P(RelativeAttentionKernel, ReadsNoRowsThatNoSpanHas) {
  const RelativeCase c{
      .queries = {9, 20}, .keys = {30, 25}, .positions = 30, .window = 20, .heads = 2, .d_head = 8, .p = 0.2};
  const Inputs<bf16> in(c);
  Inputs<bf16> unfilled = in;
  std::vector<bool> covered(static_cast<size_t>(in.key_rows));
  for (const AttentionSpan& s : in.spans) std::fill_n(covered.begin() + s.key_begin, s.key_count, true);
  for (size_t i = 0; i < in.kv.size(); ++i) {
    if (!covered[i / static_cast<size_t>(in.kv_stride)]) unfilled.kv[i] = NAN;
  }
  EXPECT_EQ(run(c, unfilled), run(c, in));
}

TEST_P(RelativeAttentionKernel, RefusesHeadsThatAreTooWide) {
  const Kernels<float>& kernels = *backend()->float_kernels;
  const RelativeAttention<float> a{.attention = {.span_count = 1,
                                                 .max_query_length = 1,
                                                 .max_key_length = 1,
                                                 .heads = 1,
                                                 .d_head = kernels.widest_head + 1},
                                   .positions = 1};
  EXPECT_THROW(kernels.relative_attention(a, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace tearless::engine::test::kernels_relative_attention_test
