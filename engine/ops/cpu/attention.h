// softmax(q kᵀ / √d_h) v over packed rows, one (span, head) at a time (kernels.h: Attention).
//
// Backward, with P the probabilities, m the dropout multipliers and δ the gradient of the output:
//   ∂v      = (m ⊙ P)ᵀ δ
//   ∂P      = m ⊙ (δ vᵀ)
//   ∂scores = P ⊙ (∂P - Σ_j P_j ∂P_j)
//   ∂q      = ∂scores k / √d_h
//   ∂k      = ∂scoresᵀ q / √d_h
//
// Saved for backward: P (attention_rows.h).
#pragma once

#include "engine/ops/cpu/attention_rows.h"

namespace tearless::engine::TEARLESS_ISA {

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
    for (int64_t i = begin; i < end; ++i) softmax_row(p + i * row, a.causal ? before + i + 1 : keys, row, p + i * row);
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
    for (int64_t i = 0; i < queries; ++i) drop_row(keys, p + i * row, keep + i * weights_row);
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
      softmax_row(scores, visible, padded<T>(visible), scores);
      Head sum = {};
      for (int64_t j = 0; j < visible; ++j) sum.add(scores[j], Head::at(value(j)));
      sum.write(out);
    } else {
      for (int64_t j = 0; j < visible; ++j) {
        const T* k = key(j);
        scores[j] = scale * sum_of<T>(width, [=](int64_t c) { return q[c] * k[c]; });
      }
      softmax_row(scores, visible, padded<T>(visible), scores);
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
  for_heads<HeadScratch<T>>(a, a, [&](const AttentionSpan& s, int64_t h, int64_t start, const HeadScratch<T>& scratch) {
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
    softmax_row_backward(p + i * row, row, keep_scale, weights + i * row, d_scores + i * row);
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
  for_heads<HeadScratch<T>>(b.forward, b.forward,
                            [&](const AttentionSpan& s, int64_t h, int64_t start, const HeadScratch<T>& scratch) {
                              attend_backward(b, s, h, b.forward.saved + start, scratch);
                            });
}

}  // namespace tearless::engine::TEARLESS_ISA
