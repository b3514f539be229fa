// softmax(q kᵀ / √d_h) v over packed rows, one (span, head) at a time (kernels.h: Attention).
//
// Backward, with P the probabilities, m the dropout multipliers and δ the gradient of the output:
//   ∂v      = (m ⊙ P)ᵀ δ
//   ∂P      = m ⊙ (δ vᵀ)
//   ∂scores = P ⊙ (∂P - Σ_j P_j ∂P_j)
//   ∂q      = ∂scores k / √d_h
//   ∂k      = ∂scoresᵀ q / √d_h
//
// Saved for backward: P, negated where dropout dropped the element, so that the mask is neither stored nor recomputed.
// (A probability that has underflowed to 0 loses its sign, but then m ⊙ P and ∂scores are 0 anyway.)
#pragma once

#include "engine/ops/cpu/dropout.h"
#include "engine/ops/cpu/small_matmul.h"

namespace tearless::engine::TEARLESS_ISA {

/// Length of a saved row of P: padded to whole vectors of float, which are whole vectors of double too.
inline int64_t saved_row(int64_t key_count) { return padded<float>(key_count); }

/// Elements saved for backward: P of every span and head.
inline int64_t attention_saved_size(const AttentionSpan* spans, int64_t span_count, int64_t heads) {
  int64_t size = 0;
  for (int64_t i = 0; i < span_count; ++i) size += heads * spans[i].query_count * saved_row(spans[i].key_count);
  return size;
}

/// Copies the columns of one head of `count` rows to contiguous rows of `width` (whole vectors), zeros after d_head.
template <class T>
inline void copy_head(const T* from, int64_t stride, int64_t count, int64_t d_head, int64_t width, T* to) {
  for (int64_t i = 0; i < count; ++i, from += stride, to += width) {
#pragma omp simd
    for (int64_t c = 0; c < d_head; ++c) to[c] = from[c];
    for (int64_t c = d_head; c < width; ++c) to[c] = T(0);
  }
}

/// An 8 × 8 matrix, transposed in registers and scaled. Row strides: from_row and to_row.
inline void transpose_8x8(const float* from, int64_t from_row, float scale, float* to, int64_t to_row) {
  typedef float Eight __attribute__((vector_size(32)));
  Eight r[8], s[8];
  for (int i = 0; i < 8; ++i) {
    __builtin_memcpy(&r[i], from + i * from_row, sizeof(Eight));
    r[i] *= scale;
  }
  for (int i = 0; i < 8; i += 2) {
    s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      r[i + j] = __builtin_shufflevector(s[i + j], s[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      r[i + j + 2] = __builtin_shufflevector(s[i + j], s[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    const Eight upper = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    const Eight lower = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    __builtin_memcpy(to + i * to_row, &upper, sizeof(Eight));
    __builtin_memcpy(to + (i + 4) * to_row, &lower, sizeof(Eight));
  }
}
inline void transpose_8x8(const double* from, int64_t from_row, double scale, double* to, int64_t to_row) {
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) to[j * to_row + i] = scale * from[i * from_row + j];
  }
}

/// copy_head() transposed and scaled: to[c][j] for c < d_head, j < width; zeros for j ≥ count.
template <class T>
inline void transpose_head(const T* from, int64_t stride, int64_t count, int64_t d_head, int64_t width, T scale,
                           T* to) {
  int64_t c = 0;
  for (; c + 8 <= d_head; c += 8) {
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) transpose_8x8(from + j * stride + c, stride, scale, to + c * width + j, width);
    for (; j < count; ++j) {
      for (int64_t i = c; i < c + 8; ++i) to[i * width + j] = scale * from[j * stride + i];
    }
  }
  for (; c < d_head; ++c) {
    for (int64_t j = 0; j < count; ++j) to[c * width + j] = scale * from[j * stride + c];
  }
  if (count == width) return;
  for (c = 0; c < d_head; ++c) {
    for (int64_t j = count; j < width; ++j) to[c * width + j] = T(0);
  }
}

/// to += scale · from, for `count` rows of `width` in `from`, of which the first d_head columns are used.
template <class T>
inline void add_head(const T* from, int64_t width, int64_t count, int64_t d_head, T scale, T* to, int64_t stride) {
  for (int64_t i = 0; i < count; ++i, from += width, to += stride) {
#pragma omp simd
    for (int64_t c = 0; c < d_head; ++c) to[c] += scale * from[c];
  }
}

/// In-place softmax over the first `visible` of `width` scores (whole vectors); the rest becomes 0.
template <class T>
inline void softmax_row(T* row, int64_t visible, int64_t width) {
  constexpr T kNever = -__builtin_inff();
  const Vector<T> end = broadcast(static_cast<T>(visible));
  Vector<T> largest = broadcast(kNever);
  for (int64_t j = 0; j < visible; j += kLanes<T>) {
    const Vector<T> x = count_from<T>(j) < end ? load(row + j) : broadcast(kNever);
    largest = largest < x ? x : largest;
  }
  const T top = largest_of_lanes<T>(largest);
  Vector<T> sum = {};
  for (int64_t j = 0; j < visible; j += kLanes<T>) {
    const Vector<T> e = count_from<T>(j) < end ? exp_of(load(row + j) - top) : Vector<T>{};
    store(row + j, e);
    sum += e;
  }
  const T inverse = T(1) / sum_of_lanes<T>(sum);
  for (int64_t j = 0; j < visible; j += kLanes<T>) store(row + j, load(row + j) * inverse);
  for (int64_t j = padded<T>(visible); j < width; j += kLanes<T>) store(row + j, Vector<T>{});
}

/// A thread's scratch memory: the operands of one head, in rows of whole vectors.
template <class T>
struct HeadScratch {
  explicit HeadScratch(const Attention<T>& a)
      : keys(saved_row(a.max_key_length)),
        width(padded<T>(a.d_head)),
        first(a.d_head * keys),
        second(larger(a.max_query_length, a.max_key_length) * width),
        result(larger(a.max_query_length, a.max_key_length) * width),
        scores(a.max_query_length * keys),
        keep(keep_size(a.max_query_length, keys)) {}
  int64_t keys, width;
  Scratch<T> first, second, result, scores, keep;
};

/// Calls f(span, head, offset of its saved P, scratch) for every (span, head), in parallel.
template <class T, class F>
inline void for_heads(const Attention<T>& a, F&& f) {
  const Scratch<int64_t> starts(a.span_count + 1);
  int64_t size = 0, pairs = 0;
  for (int64_t i = 0; i < a.span_count; ++i) {
    starts.get()[i] = size;
    size += a.heads * a.spans[i].query_count * saved_row(a.spans[i].key_count);
    pairs += static_cast<int64_t>(a.spans[i].query_count) * a.spans[i].key_count;
  }
  const int64_t items = a.span_count * a.heads;
  for_ranges(items, 1 + pairs * a.d_head / larger(1, a.span_count), [&](int64_t begin, int64_t end) {
    const HeadScratch<T> scratch(a);
    for (int64_t item = begin; item < end; ++item) {
      const AttentionSpan& s = a.spans[item / a.heads];
      const int64_t h = item % a.heads;
      f(s, h, starts.get()[item / a.heads] + h * s.query_count * saved_row(s.key_count), scratch);
    }
  });
}

/// Forward of one (span, head). `saved`: where to save P, or null.
template <class T>
inline void attend(const Attention<T>& a, const AttentionSpan& s, int64_t h, T* saved, const HeadScratch<T>& scratch) {
  const int64_t queries = s.query_count, keys = s.key_count, column = h * a.d_head;
  const int64_t row = saved_row(keys), before = s.keys_before();
  const int64_t width = scratch.width;
  const T scale = T(1) / root_of(static_cast<T>(a.d_head));
  T* p = saved ? saved : scratch.scores.get();
  T* keys_t = scratch.first.get();
  T* values = scratch.second.get();
  transpose_head(a.k + s.key_begin * a.k_stride + column, a.k_stride, keys, a.d_head, row, scale, keys_t);
  copy_head(a.v + s.key_begin * a.v_stride + column, a.v_stride, keys, a.d_head, width, values);
  const T* q = a.q + s.query_begin * a.q_stride + column;
  constexpr int64_t kQueries = 16;  // in blocks: a causal block skips the keys after its last query
  for (int64_t begin = 0; begin < queries; begin += kQueries) {
    const int64_t end = smaller(queries, begin + kQueries);
    const int64_t seen = a.causal ? padded<T>(before + end) : row;
    small_matmul<T>(end - begin, seen, a.d_head, {q + begin * a.q_stride, a.q_stride, 1}, keys_t, row, p + begin * row,
                    row);
    for (int64_t i = begin; i < end; ++i) softmax_row(p + i * row, a.causal ? before + i + 1 : keys, row);
  }
  const T* weights = p;
  int64_t weights_row = row;
  if (a.dropout.active()) {
    const int64_t quarters = quarters_of(keys);
    weights_row = 4 * quarters;
    T* keep = scratch.keep.get();
    fill_keep(
        a.dropout, queries, quarters,
        [h](int64_t i) { return static_cast<uint32_t>(i) | static_cast<uint32_t>(h) << 16; },
        [&s](int64_t) { return s.sentence_id; }, keep);
    for (int64_t i = 0; i < queries; ++i) {
      T* probability = p + i * row;
      T* weight = keep + i * weights_row;
#pragma omp simd
      for (int64_t j = 0; j < keys; ++j) {
        const bool dropped = weight[j] == T(0);
        weight[j] *= probability[j];
        probability[j] = dropped ? -probability[j] : probability[j];
      }
    }
    weights = keep;
  }
  T* out = a.out + s.query_begin * a.heads * a.d_head + column;
  const int64_t out_row = a.heads * a.d_head;
  if (width == a.d_head) {
    small_matmul<T>(queries, width, keys, {weights, weights_row, 1}, values, width, out, out_row);
    return;
  }
  small_matmul<T>(queries, width, keys, {weights, weights_row, 1}, values, width, scratch.result.get(), width);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t c = 0; c < a.d_head; ++c) out[i * out_row + c] = scratch.result.get()[i * width + c];
  }
}

/// One head of a row in registers: kVectors whole vectors.
template <class T, int kVectors>
struct HeadVectors {
  Vector<T> of[kVectors];

  static HeadVectors at(const T* from) {
    HeadVectors head;
    for (int i = 0; i < kVectors; ++i) head.of[i] = load(from + i * kLanes<T>);
    return head;
  }
  T dot(const HeadVectors& other) const {
    Vector<T> sum = of[0] * other.of[0];
    for (int i = 1; i < kVectors; ++i) sum += of[i] * other.of[i];
    return sum_of_lanes<T>(sum);
  }
  void add(T weight, const HeadVectors& other) {
    for (int i = 0; i < kVectors; ++i) of[i] += weight * other.of[i];
  }
  void write(T* to) const {
    for (int i = 0; i < kVectors; ++i) store(to + i * kLanes<T>, of[i]);
  }
};

/// Forward for a few queries with many keys, as in search, where transposing the keys would cost as much as the scores.
/// kVectors: of a head; 0: any width.
template <class T, int kVectors>
inline void attend_few(const Attention<T>& a, const AttentionSpan& s, int64_t h, T* scores) {
  const int64_t column = h * a.d_head, width = a.d_head;
  const T scale = T(1) / root_of(static_cast<T>(width));
  const auto row_of = [&](int64_t j) -> int64_t { return a.key_rows ? a.key_rows[s.key_begin + j] : s.key_begin + j; };
  const auto key = [&](int64_t j) { return a.k + row_of(j) * a.k_stride + column; };
  const auto value = [&](int64_t j) { return a.v + row_of(j) * a.v_stride + column; };
  for (int64_t i = 0; i < s.query_count; ++i) {
    const T* q = a.q + (s.query_begin + i) * a.q_stride + column;
    T* out = a.out + (s.query_begin + i) * a.heads * width + column;
    const int64_t visible = a.causal ? s.keys_before() + i + 1 : s.key_count;
    if constexpr (kVectors > 0) {
      using Head = HeadVectors<T, kVectors>;
      const Head query = Head::at(q);
      for (int64_t j = 0; j < visible; ++j) scores[j] = scale * query.dot(Head::at(key(j)));
      softmax_row(scores, visible, padded<T>(visible));
      Head sum = {};
      for (int64_t j = 0; j < visible; ++j) sum.add(scores[j], Head::at(value(j)));
      sum.write(out);
    } else {
      for (int64_t j = 0; j < visible; ++j) {
        const T* k = key(j);
        scores[j] = scale * sum_of<T>(width, [=](int64_t c) { return q[c] * k[c]; });
      }
      softmax_row(scores, visible, padded<T>(visible));
      for (int64_t c = 0; c < width; ++c) out[c] = T(0);
      for (int64_t j = 0; j < visible; ++j) {
        const T weight = scores[j];
        const T* v = value(j);
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) out[c] += weight * v[c];
      }
    }
  }
}

/// The attend_few() for the width of a head.
template <class T>
inline auto attend_few_of(int64_t d_head) {
  if (d_head == kLanes<T>) return attend_few<T, 1>;
  if (d_head == 2 * kLanes<T>) return attend_few<T, 2>;
  if (d_head == 4 * kLanes<T>) return attend_few<T, 4>;
  if (d_head == 8 * kLanes<T>) return attend_few<T, 8>;
  return attend_few<T, 0>;
}

template <class T>
void attention(const Attention<T>& a, void*) {
  constexpr int64_t kFew = 4;
  const auto few = attend_few_of<T>(a.d_head);
  for_heads(a, [&](const AttentionSpan& s, int64_t h, int64_t start, const HeadScratch<T>& scratch) {
    if (a.key_rows || (!a.saved && !a.dropout.active() && s.query_count <= kFew)) {
      few(a, s, h, scratch.scores.get());
    } else {
      attend(a, s, h, a.saved ? a.saved + start : nullptr, scratch);
    }
  });
}

/// Backward of one (span, head) from its saved P.
template <class T>
inline void attend_backward(const AttentionBackward<T>& b, const AttentionSpan& s, int64_t h, const T* p,
                            const HeadScratch<T>& scratch) {
  const Attention<T>& a = b.forward;
  const int64_t queries = s.query_count, keys = s.key_count, column = h * a.d_head;
  const int64_t row = saved_row(keys);
  const int64_t width = scratch.width;
  const int64_t out_row = a.heads * a.d_head;
  const T scale = T(1) / root_of(static_cast<T>(a.d_head));
  const T keep_scale = a.dropout.active() ? static_cast<T>(a.dropout.scale) : T(1);
  const T* d_out = b.d_out + s.query_begin * out_row + column;

  // δ vᵀ, then in its place ∂scores = (m ⊙ P) ⊙ (δ vᵀ) - P Σ_j P_j ∂P_j.
  T* values_t = scratch.first.get();
  T* d_scores = scratch.scores.get();
  T* weights = scratch.keep.get();  // m ⊙ P
  transpose_head(a.v + s.key_begin * a.v_stride + column, a.v_stride, keys, a.d_head, row, T(1), values_t);
  small_matmul<T>(queries, row, a.d_head, {d_out, out_row, 1}, values_t, row, d_scores, row);
  for (int64_t i = 0; i < queries; ++i) {
    const T* probability = p + i * row;
    T* d = d_scores + i * row;
    T* weight = weights + i * row;
    T mean = 0;
#pragma omp simd reduction(+ : mean)
    for (int64_t j = 0; j < row; ++j) {
      weight[j] = probability[j] > T(0) ? keep_scale * probability[j] : T(0);
      mean += weight[j] * d[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < row; ++j) {
      const T size = probability[j] < T(0) ? -probability[j] : probability[j];
      d[j] = weight[j] * d[j] - size * mean;
    }
  }

  T* operand = scratch.second.get();
  T* result = scratch.result.get();
  copy_head(d_out, out_row, queries, a.d_head, width, operand);
  small_matmul<T>(keys, width, queries, {weights, 1, row}, operand, width, result, width);
  add_head(result, width, keys, a.d_head, T(1), b.d_v + s.key_begin * b.d_v_stride + column, b.d_v_stride);

  copy_head(a.k + s.key_begin * a.k_stride + column, a.k_stride, keys, a.d_head, width, operand);
  small_matmul<T>(queries, width, keys, {d_scores, row, 1}, operand, width, result, width);
  add_head(result, width, queries, a.d_head, scale, b.d_q + s.query_begin * b.d_q_stride + column, b.d_q_stride);

  copy_head(a.q + s.query_begin * a.q_stride + column, a.q_stride, queries, a.d_head, width, operand);
  small_matmul<T>(keys, width, queries, {d_scores, 1, row}, operand, width, result, width);
  add_head(result, width, keys, a.d_head, scale, b.d_k + s.key_begin * b.d_k_stride + column, b.d_k_stride);
}

template <class T>
void attention_backward(const AttentionBackward<T>& b, void*) {
  for_heads(b.forward, [&](const AttentionSpan& s, int64_t h, int64_t start, const HeadScratch<T>& scratch) {
    attend_backward(b, s, h, b.forward.saved + start, scratch);
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
