// Attention with relative positions, one (span, head) at a time and in it a block of queries at a time (kernels.h:
// RelativeAttention).
//
// The position term is a matmul like the content term, with R in place of K, but its columns are distances and not
// keys. R is copied with the distance descending, so that its next row belongs to the next key; and what is row m for
// query i is row m - 1 for query i + 1. So if the rows of the result are taken to be one element longer than those of
// the scores, each lands one element further left than the one before it, on its own keys:
//
//   scores, rows of `stride`:        (q + u) Kᵀ
//   the same memory, stride + 1:   + (q + w) Rᵀ
//
// and backward reads ∂scores with rows of stride + 1 where it needs them by distance. Nothing is shifted or copied. A
// block's first queries have elements to the left of the block's first key: these fall in a margin before each row,
// which forward ignores and backward keeps at 0.
//
// Backward, with ∂scores as in attention.h and ∂scores' its view by distance:
//   ∂q = (∂scores k + ∂scores' r) / √d_h       ∂u = Σ_i (∂scores k)_i / √d_h
//   ∂k = ∂scoresᵀ (q + u) / √d_h               ∂w = Σ_i (∂scores' r)_i / √d_h
//   ∂r = ∂scores'ᵀ (q + w) / √d_h
// The sums over spans in ∂r, ∂u and ∂w are made of one partial sum for each span, added in order.
#pragma once

#include "engine/ops/cpu/attention_rows.h"

namespace tearless::engine::TEARLESS_ISA {

/// Queries of a block. Forward and backward must have the same: P is saved for the keys that a block sees.
inline constexpr int64_t kQueryBlock = 32;
/// Elements before each row of a block's scores. They also keep rows off multiples of 4096 bytes, which would all be in
/// the same few lines of the L1 cache; the operands that are as wide as scores have such rows for that alone.
inline constexpr int64_t kMargin = kQueryBlock;

/// Queries begin … end - 1 of a span, and the keys first … first + count - 1 that they see between them. `first` is
/// rounded down to whole vectors and whole Philox calls.
struct QueryBlock {
  int64_t begin, end, first, count;
  int64_t size() const { return end - begin; }
};

/// Calls f(block) for the blocks of a span.
template <class T, class F>
inline void for_query_blocks(const RelativeAttention<T>& a, const AttentionSpan& s, F&& f) {
  constexpr int64_t kStep = kLanes<float>;  // whole vectors of double too
  for (int64_t begin = 0; begin < s.query_count; begin += kQueryBlock) {
    const int64_t end = smaller(s.query_count, begin + kQueryBlock);
    const int64_t hidden = a.window > 0 ? larger(0, s.keys_before() + begin + 1 - a.window) : 0;
    const int64_t first = hidden / kStep * kStep;
    f(QueryBlock{begin, end, first, s.keys_before() + end - first});
  }
}

/// Row of R, with the distance descending, that belongs to a block's first key and its last query. A span's own rows
/// are the last key_count of them.
template <class T>
inline int64_t first_position(const RelativeAttention<T>& a, const AttentionSpan& s, const QueryBlock& block) {
  return a.attention.max_key_length - s.keys_before() - block.end + block.first;
}

/// Rows of R for each head, [max_key_length, width]: the last is of distance 0, the first of the farthest.
template <class T>
inline void copy_positions(const RelativeAttention<T>& a, int64_t h, int64_t width, T* to) {
  const int64_t rows = a.attention.max_key_length, d_head = a.attention.d_head;
  for (int64_t m = 0; m < rows; ++m) {
    const int64_t position = smaller(rows - 1 - m, a.positions - 1);
    copy_head(a.r + (position * a.attention.heads + h) * d_head, 0, 1, d_head, width, to + m * width);
  }
}

/// to = the rows of q of a block + bias, of one head, in rows of `width` whole vectors.
template <class T>
inline void copy_queries(const Attention<T>& a, const AttentionSpan& s, int64_t h, const QueryBlock& block,
                         const T* bias, int64_t width, T* to) {
  const int64_t column = h * a.d_head;
  const T* q = a.q + (s.query_begin + block.begin) * a.q_stride + column;
  copy_head(q, a.q_stride, block.size(), a.d_head, width, to);
  for (int64_t i = 0; i < block.size(); ++i) {
#pragma omp simd
    for (int64_t c = 0; c < a.d_head; ++c) to[i * width + c] += bias[column + c];
  }
}

/// A thread's scratch memory for forward.
template <class T>
struct RelativeForwardScratch {
  explicit RelativeForwardScratch(const RelativeAttention<T>& a)
      : keys(saved_row(a.attention.max_key_length)),
        width(padded<T>(a.attention.d_head)),
        stride(kMargin + keys),
        keys_t(a.attention.d_head * stride),
        values(keys * width),
        content(kQueryBlock * width),
        position(kQueryBlock * width),
        scores(kQueryBlock * stride),
        keep(keep_size(kQueryBlock, keys)),
        result(kQueryBlock * width) {}
  int64_t keys, width, stride;
  Scratch<T> keys_t, values, content, position, scores, keep, result;
};

/// Forward of one (span, head). positions_t: [d_h, columns] R of the head, transposed. `saved`: where to save P, or
/// null.
template <class T>
inline void attend(const RelativeAttention<T>& call, const AttentionSpan& s, int64_t h, const T* positions_t,
                   int64_t columns, T* saved, const RelativeForwardScratch<T>& scratch) {
  const Attention<T>& a = call.attention;
  const int64_t column = h * a.d_head, width = scratch.width, stride = scratch.stride;
  const int64_t row = saved_row(s.key_count);
  T* keys_t = scratch.keys_t.get();
  T* values = scratch.values.get();
  T* scores = scratch.scores.get() + kMargin;
  transpose_head(a.k + s.key_begin * a.k_stride + column, a.k_stride, s.key_count, a.d_head, stride,
                 T(1) / root_of(static_cast<T>(a.d_head)), keys_t);
  copy_head(a.v + s.key_begin * a.v_stride + column, a.v_stride, s.key_count, a.d_head, width, values);
  for_query_blocks(call, s, [&](const QueryBlock& block) {
    const int64_t queries = block.size(), seen = padded<T>(block.count);
    copy_queries(a, s, h, block, call.u, width, scratch.content.get());
    copy_queries(a, s, h, block, call.w, width, scratch.position.get());
    small_matmul<T>(queries, seen, a.d_head, {scratch.content.get(), width, 1}, keys_t + block.first, stride, scores,
                    stride);
    small_matmul<T>(queries, seen, a.d_head, {scratch.position.get(), width, 1},
                    positions_t + first_position(call, s, block), columns, scores - (queries - 1), stride + 1,
                    /*add=*/true);
    T* p = saved ? saved + block.begin * row + block.first : scores;
    const int64_t p_row = saved ? row : stride;
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t own = s.keys_before() + block.begin + i - block.first;  // the query's own key
      const int64_t hidden = call.window > 0 ? larger(0, own + 1 - call.window) : 0;
      for (int64_t j = 0; j < hidden; ++j) scores[i * stride + j] = -__builtin_inff();
      softmax_row(scores + i * stride, own + 1, seen, p + i * p_row);
      for (int64_t j = 0; j < hidden; ++j) p[i * p_row + j] = T(0);  // exp_of(-∞) is not quite 0
    }
    const T* weights = p;
    int64_t weights_row = p_row;
    if (a.dropout.active()) {
      const int64_t quarters = quarters_of(block.count);
      weights_row = 4 * quarters;
      T* keep = scratch.keep.get();
      fill_keep(
          a.dropout, queries, quarters,
          [&block, h](int64_t i) { return static_cast<uint32_t>(block.begin + i) | static_cast<uint32_t>(h) << 16; },
          [&s](int64_t) { return s.sentence_id; }, keep, block.first / 4);
      for (int64_t i = 0; i < queries; ++i) drop_row(block.count, p + i * p_row, keep + i * weights_row);
      weights = keep;
    }
    T* result = scratch.result.get();
    small_matmul<T>(queries, width, block.count, {weights, weights_row, 1}, values + block.first * width, width, result,
                    width);
    T* out = a.out + (s.query_begin + block.begin) * a.heads * a.d_head + column;
    for (int64_t i = 0; i < queries; ++i, out += a.heads * a.d_head) {
      for (int64_t c = 0; c < a.d_head; ++c) out[c] = result[i * width + c];
    }
  });
}

template <class T>
void relative_attention(const RelativeAttention<T>& call, void*) {
  const Attention<T>& a = call.attention;
  const int64_t rows = a.max_key_length, width = padded<T>(a.d_head);
  // One vector more: a block's last one may begin inside the last whole vector; and for the cache, as kMargin.
  const int64_t columns = padded<T>(rows) + kLanes<T>;
  const Scratch<T> positions_t(a.heads * a.d_head * columns);
  for_ranges(a.heads, rows * a.d_head, [&](int64_t begin, int64_t end) {
    const Scratch<T> positions(rows * width);
    for (int64_t h = begin; h < end; ++h) {
      copy_positions(call, h, width, positions.get());
      transpose_head(positions.get(), width, rows, a.d_head, columns, T(1) / root_of(static_cast<T>(a.d_head)),
                     positions_t.get() + h * a.d_head * columns);
    }
  });
  for_heads<RelativeForwardScratch<T>>(
      call, a, [&](const AttentionSpan& s, int64_t h, int64_t start, const RelativeForwardScratch<T>& scratch) {
        attend(call, s, h, positions_t.get() + h * a.d_head * columns, columns, a.saved ? a.saved + start : nullptr,
               scratch);
      });
}

/// A thread's scratch memory for backward.
template <class T>
struct RelativeBackwardScratch {
  explicit RelativeBackwardScratch(const RelativeAttention<T>& a)
      : keys(saved_row(a.attention.max_key_length)),
        width(padded<T>(a.attention.d_head)),
        stride(kMargin + keys),
        values_t(a.attention.d_head * stride),
        key_rows(keys * width),
        d_keys(keys * width),
        d_values(keys * width),
        content(kQueryBlock * width),
        position(kQueryBlock * width),
        d_out(kQueryBlock * width),
        d_content(kQueryBlock * width),
        d_position(kQueryBlock * width),
        d_scores(kQueryBlock * stride),
        weights(kQueryBlock * stride) {
    for (int64_t i = 0; i < kQueryBlock; ++i) fill_zeros(d_scores.get() + i * stride, kMargin);
  }
  int64_t keys, width, stride;
  Scratch<T> values_t, key_rows, d_keys, d_values, content, position, d_out, d_content, d_position, d_scores, weights;
};

/// What one (span, head) adds to ∂r, ∂u and ∂w.
template <class T>
struct PositionSums {
  T* d_r;  // [key_count, width], distance descending
  T* d_u;  // [width]
  T* d_w;  // [width]
};

/// to += the sum of `count` rows.
template <class T>
inline void add_rows(const T* rows, int64_t count, int64_t width, T* to) {
  for (int64_t i = 0; i < count; ++i, rows += width) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) to[c] += rows[c];
  }
}

/// Backward of one (span, head) from its saved P. `positions`: R of the head, as copy_positions() has it.
template <class T>
inline void attend_backward(const RelativeAttentionBackward<T>& b, const AttentionSpan& s, int64_t h,
                            const T* positions, const T* saved, const PositionSums<T>& sums,
                            const RelativeBackwardScratch<T>& scratch) {
  const Attention<T>& a = b.forward.attention;
  const int64_t column = h * a.d_head, width = scratch.width, stride = scratch.stride;
  const int64_t row = saved_row(s.key_count), out_row = a.heads * a.d_head;
  const T scale = T(1) / root_of(static_cast<T>(a.d_head));
  const T keep_scale = a.dropout.active() ? static_cast<T>(a.dropout.scale) : T(1);
  T* values_t = scratch.values_t.get();
  T* keys = scratch.key_rows.get();
  T* d_keys = scratch.d_keys.get();
  T* d_values = scratch.d_values.get();
  T* d_scores = scratch.d_scores.get() + kMargin;
  transpose_head(a.v + s.key_begin * a.v_stride + column, a.v_stride, s.key_count, a.d_head, stride, T(1), values_t);
  copy_head(a.k + s.key_begin * a.k_stride + column, a.k_stride, s.key_count, a.d_head, width, keys);
  for (T* sum : {d_keys, d_values, sums.d_r}) fill_zeros(sum, s.key_count * width);
  for (T* sum : {sums.d_u, sums.d_w}) fill_zeros(sum, width);
  for_query_blocks(b.forward, s, [&](const QueryBlock& block) {
    const int64_t queries = block.size(), seen = padded<T>(block.count);
    const int64_t at = block.first * width;
    const int64_t first = first_position(b.forward, s, block);
    const T* p = saved + block.begin * row + block.first;
    const T* d_out = b.d_out + (s.query_begin + block.begin) * out_row + column;
    T* weights = scratch.weights.get();  // m ⊙ P
    T* by_distance = d_scores - (queries - 1);
    copy_queries(a, s, h, block, b.forward.u, width, scratch.content.get());
    copy_queries(a, s, h, block, b.forward.w, width, scratch.position.get());
    copy_head(d_out, out_row, queries, a.d_head, width, scratch.d_out.get());

    small_matmul<T>(queries, seen, a.d_head, {d_out, out_row, 1}, values_t + block.first, stride, d_scores, stride);
    for (int64_t i = 0; i < queries; ++i) {
      softmax_row_backward(p + i * row, seen, keep_scale, weights + i * stride, d_scores + i * stride);
    }
    small_matmul<T>(block.count, width, queries, {weights, 1, stride}, scratch.d_out.get(), width, d_values + at, width,
                    /*add=*/true);
    small_matmul<T>(block.count, width, queries, {d_scores, 1, stride}, scratch.content.get(), width, d_keys + at,
                    width, /*add=*/true);
    small_matmul<T>(block.count, width, queries, {by_distance, 1, stride + 1}, scratch.position.get(), width,
                    sums.d_r + (first - (a.max_key_length - s.key_count)) * width, width, /*add=*/true);
    small_matmul<T>(queries, width, block.count, {d_scores, stride, 1}, keys + at, width, scratch.d_content.get(),
                    width);
    small_matmul<T>(queries, width, block.count, {by_distance, stride + 1, 1}, positions + first * width, width,
                    scratch.d_position.get(), width);
    add_rows(scratch.d_content.get(), queries, width, sums.d_u);
    add_rows(scratch.d_position.get(), queries, width, sums.d_w);
    if (!b.d_q) return;
    T* d_q = b.d_q + (s.query_begin + block.begin) * b.d_q_stride + column;
    for (const T* part : {scratch.d_content.get(), scratch.d_position.get()}) {
      add_head(part, width, queries, a.d_head, scale, d_q, b.d_q_stride);
    }
  });
  if (b.d_k) {
    add_head(d_keys, width, s.key_count, a.d_head, scale, b.d_k + s.key_begin * b.d_k_stride + column, b.d_k_stride);
  }
  if (b.d_v) {
    add_head(d_values, width, s.key_count, a.d_head, T(1), b.d_v + s.key_begin * b.d_v_stride + column, b.d_v_stride);
  }
}

template <class T>
void relative_attention_backward(const RelativeAttentionBackward<T>& b, void*) {
  const Attention<T>& a = b.forward.attention;
  const int64_t rows = a.max_key_length, width = padded<T>(a.d_head), spans = a.span_count;
  const T scale = T(1) / root_of(static_cast<T>(a.d_head));
  const Scratch<T> positions(a.heads * rows * width);
  for_ranges(a.heads, rows * width, [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) copy_positions(b.forward, h, width, positions.get() + h * rows * width);
  });
  const Scratch<int64_t> starts(spans + 1);  // key rows of the spans before each
  starts.get()[0] = 0;
  for (int64_t i = 0; i < spans; ++i) starts.get()[i + 1] = starts.get()[i] + a.spans[i].key_count;
  const Scratch<T> of_r(starts.get()[spans] * a.heads * width), of_u(spans * a.heads * width),
      of_w(spans * a.heads * width);
  const auto sums_of = [&](int64_t i, int64_t h) -> PositionSums<T> {
    const int64_t item = (i * a.heads + h) * width;
    return {of_r.get() + (starts.get()[i] * a.heads + h * a.spans[i].key_count) * width, of_u.get() + item,
            of_w.get() + item};
  };
  for_heads<RelativeBackwardScratch<T>>(
      b.forward, a, [&](const AttentionSpan& s, int64_t h, int64_t start, const RelativeBackwardScratch<T>& scratch) {
        attend_backward(b, s, h, positions.get() + h * rows * width, a.saved + start, sums_of(&s - a.spans, h),
                        scratch);
      });

  if (b.d_r) {
    for_ranges(smaller(b.forward.positions, rows), spans * a.heads * width, [&](int64_t begin, int64_t end) {
      for (int64_t position = begin; position < end; ++position) {
        const int64_t last = position == b.forward.positions - 1 ? rows - 1 : position;
        for (int64_t distance = position; distance <= last; ++distance) {
          for (int64_t i = 0; i < spans; ++i) {
            const int64_t m = a.spans[i].key_count - 1 - distance;
            for (int64_t h = 0; m >= 0 && h < a.heads; ++h) {
              add_head(sums_of(i, h).d_r + m * width, width, 1, a.d_head, scale,
                       b.d_r + (position * a.heads + h) * a.d_head, 0);
            }
          }
        }
      }
    });
  }
  for (int64_t i = 0; i < spans; ++i) {
    for (int64_t h = 0; h < a.heads; ++h) {
      const PositionSums<T> sums = sums_of(i, h);
      if (b.d_u) add_head(sums.d_u, width, 1, a.d_head, scale, b.d_u + h * a.d_head, 0);
      if (b.d_w) add_head(sums.d_w, width, 1, a.d_head, scale, b.d_w + h * a.d_head, 0);
    }
  }
}

}  // namespace tearless::engine::TEARLESS_ISA
