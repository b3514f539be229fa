// What the two kinds of attention (attention.h, relative_attention.h) share: the rows of one head as contiguous
// operands, the softmax of a row and its backward, dropout's mask in the saved probabilities, and the loop over spans
// and heads.
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

template <class T>
inline void fill_zeros(T* to, int64_t count) {
  __builtin_memset(to, 0, static_cast<size_t>(count) * sizeof(T));
}

/// to += scale · from, for `count` rows of `width` in `from`, of which the first d_head columns are used.
template <class T>
inline void add_head(const T* from, int64_t width, int64_t count, int64_t d_head, T scale, T* to, int64_t stride) {
  for (int64_t i = 0; i < count; ++i, from += width, to += stride) {
#pragma omp simd
    for (int64_t c = 0; c < d_head; ++c) to[c] += scale * from[c];
  }
}

/// Softmax over the first `visible` of `width` scores (whole vectors); the rest of `to` becomes 0. `to` may be `row`,
/// which is overwritten in any case.
template <class T>
inline void softmax_row(T* row, int64_t visible, int64_t width, T* to) {
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
  for (int64_t j = 0; j < visible; j += kLanes<T>) store(to + j, load(row + j) * inverse);
  for (int64_t j = padded<T>(visible); j < width; j += kLanes<T>) store(to + j, Vector<T>{});
}

/// Dropout of one row of `count` probabilities: `keep`, its multipliers m, becomes m ⊙ P, and P the row to save.
template <class T>
inline void drop_row(int64_t count, T* probability, T* keep) {
#pragma omp simd
  for (int64_t j = 0; j < count; ++j) {
    const bool dropped = keep[j] == T(0);
    keep[j] *= probability[j];
    probability[j] = dropped ? -probability[j] : probability[j];
  }
}

/// From a saved row of P: `weight` becomes m ⊙ P, and d, which holds δ vᵀ, becomes ∂scores. keep_scale: of dropout,
/// or 1.
template <class T>
inline void softmax_row_backward(const T* probability, int64_t width, T keep_scale, T* weight, T* d) {
  T mean = 0;
#pragma omp simd reduction(+ : mean)
  for (int64_t j = 0; j < width; ++j) {
    weight[j] = probability[j] > T(0) ? keep_scale * probability[j] : T(0);
    mean += weight[j] * d[j];
  }
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) {
    const T size = probability[j] < T(0) ? -probability[j] : probability[j];
    d[j] = weight[j] * d[j] - size * mean;
  }
}

/// Calls f(span, head, offset of its saved P, scratch) for every (span, head), in parallel. Each thread makes its
/// HeadScratch from `call`, of which `a` is the part that attention has.
template <class HeadScratch, class Call, class T, class F>
inline void for_heads(const Call& call, const Attention<T>& a, F&& f) {
  const Scratch<int64_t> starts(a.span_count + 1);
  int64_t size = 0, pairs = 0;
  for (int64_t i = 0; i < a.span_count; ++i) {
    starts.get()[i] = size;
    size += a.heads * a.spans[i].query_count * saved_row(a.spans[i].key_count);
    pairs += static_cast<int64_t>(a.spans[i].query_count) * a.spans[i].key_count;
  }
  const int64_t items = a.span_count * a.heads;
  for_ranges(items, 1 + pairs * a.d_head / larger(1, a.span_count), [&](int64_t begin, int64_t end) {
    const HeadScratch scratch(call);
    for (int64_t item = begin; item < end; ++item) {
      const AttentionSpan& s = a.spans[item / a.heads];
      const int64_t h = item % a.heads;
      f(s, h, starts.get()[item / a.heads] + h * s.query_count * saved_row(s.key_count), scratch);
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
