// One (span, head) of an attention, which one thread block computes: where its rows are, which keys a query sees, how
// the other side's rows are cut into tiles, and its dropout counters. Both kinds of kernel (attention_body.h) use it,
// so they agree on all of these.
//
// Query i of a span sees its keys 0 … key_count - 1, or with `causal` keys 0 … keys_before() + i (kernels.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// The rows of one span, restricted to the channels of one head: [count, d_head].
template <class T>
struct HeadRows {
  T* data;         // first channel of the first row
  int64_t stride;  // from row to row, in elements
  int count, d_head;
  bool aligned;  // every row starts at a multiple of 16 bytes and has whole groups

  TEARLESS_BODY T* row(int i) const { return data + i * stride; }
};
/// The same by a table of indices (search over a KV cache): row i is row indices[i] of the matrix at `data`.
template <class T>
struct IndexedRows : HeadRows<T> {
  const int32_t* indices;

  TEARLESS_BODY T* row(int i) const { return this->data + indices[i] * this->stride; }
};

/// Whether q, k and v have rows at 16 bytes and heads of whole groups.
template <class T>
bool heads_are_aligned(const Attention<T>& a) {
  return a.d_head % kWideGroup<T> == 0 && is_aligned(a.q, a.q_stride) && is_aligned(a.k, a.k_stride) &&
         is_aligned(a.v, a.v_stride);
}

/// Scores are q · k times this: 1 / √d_head.
TEARLESS_BOTH float score_scale(int64_t d_head) { return 1.0f / sqrtf(static_cast<float>(d_head)); }

/// How many of `count` rows are in the tile that starts at row `begin`; ≤ 0 where it starts behind them.
TEARLESS_BODY int rows_in_tile(int count, int begin, int tile_rows) {
  return count - begin < tile_rows ? count - begin : tile_rows;
}

/// The (span, head) of block number `block`.
template <class T>
struct SpanHead {
  AttentionSpan span;
  int head;
  bool causal;
  HeadRows<const T> q, k, v;

  TEARLESS_BODY SpanHead(const Attention<T>& a, int64_t block, bool aligned)
      : span(a.spans[static_cast<uint32_t>(block) / static_cast<uint32_t>(a.heads)]),
        head(static_cast<int>(static_cast<uint32_t>(block) % static_cast<uint32_t>(a.heads))),
        causal(a.causal),
        q(query_rows(a, a.q, a.q_stride, aligned)),
        k(key_rows(a, a.k, a.k_stride, aligned)),
        v(key_rows(a, a.v, a.v_stride, aligned)) {}

  /// The span's rows of a matrix that has a row for each query, such as q and ∂q; or for each key.
  template <class U>
  TEARLESS_BODY HeadRows<U> query_rows(const Attention<T>& a, U* data, int64_t stride, bool aligned) const {
    return rows(a, data, stride, span.query_begin, span.query_count, aligned);
  }
  template <class U>
  TEARLESS_BODY HeadRows<U> key_rows(const Attention<T>& a, U* data, int64_t stride, bool aligned) const {
    return rows(a, data, stride, span.key_begin, span.key_count, aligned);
  }
  /// Keys that are looked up in Attention::key_rows.
  TEARLESS_BODY IndexedRows<const T> indexed_keys(const Attention<T>& a, const T* data, int64_t stride,
                                                  bool aligned) const {
    return {rows(a, data, stride, 0, span.key_count, aligned), a.key_rows + span.key_begin};
  }
  /// Index of a query's logsumexp in Attention::saved.
  TEARLESS_BODY int64_t saved_at(const Attention<T>& a, int query) const {
    return static_cast<int64_t>(span.query_begin + query) * a.heads + head;
  }

  /// The causal mask. A key past the last one counts as seen.
  TEARLESS_BODY bool sees(int query, int key) const { return !(causal && key - span.keys_before() > query); }
  /// How many keys the queries before `end` may see between them.
  TEARLESS_BODY int visible_keys(int end) const {
    return causal && end < span.query_count ? end + span.keys_before() : span.key_count;
  }
  /// The first of the queries begin, begin + 1, … that may see `key`: its distance from `begin`, rounded down to a
  /// multiple of `step`.
  TEARLESS_BODY int first_seeing(int key, int begin, int step) const {
    const int query = key - span.keys_before();
    return causal && query > begin ? (query - begin) / step * step : 0;
  }

  /// The words `outer` and `sentence` of the dropout counter of a query (random.h); the word `inner` is the key.
  TEARLESS_BODY uint32_t dropout_outer(int query) const {
    return static_cast<uint32_t>(query) | static_cast<uint32_t>(head) << 16;
  }
  TEARLESS_BODY uint32_t dropout_sentence() const { return static_cast<uint32_t>(span.sentence_id); }
  /// One Philox call: bit i is 1 where `query` keeps key 4 · quarter + i.
  TEARLESS_BODY uint32_t keep_bits(const Mask& mask, int query, int quarter) const {
    return mask.keep_bits(static_cast<uint32_t>(quarter), dropout_outer(query), dropout_sentence());
  }

  /// Sets the rows to 0 that no span covers, up to row `end` of a matrix with a row for each query. One of the spans
  /// without queries does it, the first. REQUIRES: rows at 16 bytes, and Attention::padded_rows.
  template <class Block>
  TEARLESS_BODY void zero_padding(Block& block, const Attention<T>& a, T* data, int64_t stride, int64_t end) const {
    const int64_t index = static_cast<uint32_t>(block.index()) / static_cast<uint32_t>(a.heads);
    if (span.query_count > 0 || (index > 0 && a.spans[index - 1].query_count == 0)) return;
    const int count = static_cast<int>(end) - span.query_begin;
    const HeadRows<T> padding = rows(a, data, stride, span.query_begin, count, true);
    const int groups = padding.d_head / kWideGroup<T>;
    for (int e = block.thread(); e < count * groups; e += block.threads()) {
      store_sixteen(padding.row(e / groups) + e % groups * kWideGroup<T>, SixteenBytes<T>{});
    }
  }
  /// Those of the gradients that are stored. REQUIRES: b.stored_rows > 0.
  template <class Block>
  TEARLESS_BODY void zero_padding(Block& block, const AttentionBackward<T>& b) const {
    zero_padding(block, b.forward, b.d_q, b.d_q_stride, b.stored_rows);
    if (!b.stores_keys) return;
    zero_padding(block, b.forward, b.d_k, b.d_k_stride, b.stored_rows);
    zero_padding(block, b.forward, b.d_v, b.d_v_stride, b.stored_rows);
  }

 private:
  template <class U>
  TEARLESS_BODY HeadRows<U> rows(const Attention<T>& a, U* data, int64_t stride, int begin, int count,
                                 bool aligned) const {
    return {data + begin * stride + head * a.d_head, stride, count, static_cast<int>(a.d_head), aligned};
  }
};

}  // namespace tearless::engine
