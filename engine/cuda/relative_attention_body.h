// Attention with relative positions over packed rows (kernels.h: RelativeAttention), without tensor cores. A block
// takes 16 rows of one side, four a warp, and loops over tiles of the other side, as in attention_simt.h; but for long
// spans there is a block for each such 16 rows:
//
//   RelativeForward             queries of a (span, head); tiles of keys
//   RelativeQueryGradients      queries of a (span, head); tiles of keys: ∂q, its sums for ∂u and ∂w, and Σ_j P_j G_j
//   RelativeKeyGradients        keys of a (span, head); tiles of queries: ∂k and ∂v
//   RelativePositionGradients   distances of a head; tiles of the queries of one span after another: ∂r by distance
//   RelativePositionSums        ∂r += what the distances of each row have
//
// With the letters of attention_body.h and P' the view of ∂scores by distance (engine/ops/cpu/relative_attention.h):
//   ∂q = (∂scores k + P' r) / √d_h    ∂k = ∂scoresᵀ (q + u) / √d_h    ∂r = P'ᵀ (q + w) / √d_h
// P is recomputed from the saved logsumexp in each. ∂scores = P ⊙ (G - D) with D = Σ_j P_j G_j of a query. So that one
// pass over the keys is enough, the first of these kernels sums what P ⊙ G and what P weighs apart.
//
// Which row of r belongs to a row of a tile and a row of a warp depends on their difference alone. These rows are
// loaded to a third tile, skewed: for a tile of n rows it has n + 15. For ∂r the tile's rows are queries and the warp's
// are distances; then the keys and values that are so far back are the skewed tiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/cuda/attention_body.h"
#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_simt.h"
#include "engine/cuda/attention_simt_forward.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/column_sums_body.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// Rows of which those before row 0 are row 0 and those after row `last` are row `last`.
template <class T>
struct ClampedRows : HeadRows<T> {
  int last;

  TEARLESS_BODY T* row(int i) const { return HeadRows<T>::row(i < 0 ? 0 : i < last ? i : last); }
};

/// One (span, head), with what its positions need.
template <class T>
struct RelativeSpanHead : SpanHead<T> {
  int64_t window;
  ClampedRows<const T> positions;  // row a is that of distance a
  const float *u, *w;              // of the head

  TEARLESS_BODY RelativeSpanHead(const RelativeAttention<T>& a, int64_t span_head, bool aligned)
      : SpanHead<T>(a.attention, span_head, aligned),
        window(a.window),
        positions(positions_of(a, this->head, aligned)),
        u(a.u + this->head * a.attention.d_head),
        w(a.w + this->head * a.attention.d_head) {}

  TEARLESS_BODY static ClampedRows<const T> positions_of(const RelativeAttention<T>& a, int head, bool aligned) {
    const int64_t d_head = a.attention.d_head;
    return {{a.r + head * d_head, a.attention.heads * d_head, static_cast<int>(a.attention.max_key_length),
             static_cast<int>(d_head), aligned},
            static_cast<int>(a.positions - 1)};
  }
  TEARLESS_BODY ClampedRows<const T> clamped(const HeadRows<const T>& rows) const { return {rows, rows.count - 1}; }

  TEARLESS_BODY int distance(int query, int key) const { return this->span.keys_before() + query - key; }
  TEARLESS_BODY bool sees_at(int distance) const { return distance >= 0 && (window == 0 || distance < window); }
  TEARLESS_BODY bool sees(int query, int key) const { return sees_at(distance(query, key)); }
  /// The first key that a query sees, rounded down to whole chunks.
  TEARLESS_BODY int first_visible_key(int query) const {
    const int64_t key = window > 0 ? this->span.keys_before() + query + 1 - window : 0;
    return key > 0 ? static_cast<int>(key) / kLanes * kLanes : 0;
  }
  /// The first query that sees a key, and the one after the last.
  TEARLESS_BODY int first_query_of(int key) const {
    const int query = key - this->span.keys_before();
    return query > 0 ? query : 0;
  }
  TEARLESS_BODY int last_query_of(int key) const {
    const int64_t query = window > 0 ? window + key - this->span.keys_before() : this->span.query_count;
    return query < this->span.query_count ? static_cast<int>(query) : this->span.query_count;
  }
};

/// Operands of a warp: the first two are of tiles 0 and 1, the third is of the skewed tile, or holds a vector.
inline constexpr int kRelativeOperands = 3, kThird = 2;

/// SimtWarp with skewed tiles. Their numbers are those of the tiles that they are multiplied with.
template <class Block, class T, int kPerLane>
class RelativeWarp : public SimtWarp<Block, T, kPerLane> {
 public:
  using Warp = SimtWarp<Block, T, kPerLane>;
  using Accumulator = typename Warp::Accumulator;
  static constexpr int kMore = SimtLayout::kRoundRows - 1;  // rows of a skewed tile, more than of the tile

  TEARLESS_BODY RelativeWarp(Block& block, const SimtLayout& layout) : Warp(block, layout, kRelativeOperands) {}

  TEARLESS_BODY T* skewed(int tile) const {
    return reinterpret_cast<T*>(this->block_.shared() + this->layout_.skewed_at) +
           tile * this->layout_.skewed_rows() * this->layout_.row_elements;
  }

  /// Loads a vector to the third operand. The caller synchronises the warp.
  TEARLESS_BODY void load_vector(const float* vector, int d_head) const {
    for (int c = this->block_.lane(); c < this->layout_.channels; c += kLanes) {
      this->warp_rows(kThird)[c] = c < d_head ? vector[c] : 0.0f;
    }
  }

  /// dot[r] = the warp's row r of the third operand · its row of the skewed tile, which is at + r.
  TEARLESS_BODY void skewed_dots(int at, float (&dot)[kWarpRows]) const {
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      dot[r] = dot_with(this->warp_rows(kThird) + r * this->layout_.channels, skewed(0) + row_at(at + r));
    }
  }

  /// dot[r] = row `row` of a tile · row at - r of the skewed tile of that number; where kBiased, (row + the vector of
  /// the third operand) · row at - r.
  template <bool kBiased>
  TEARLESS_BODY void dots_with_skewed(int tile, int row, int at, float (&dot)[kWarpRows]) const {
    constexpr int kSize = kWideGroup<T>;
    const T* tile_row = this->tile(tile) + row_at(row);
    const float* bias = this->warp_rows(kThird);
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) dot[r] = 0;
    TEARLESS_UNROLL_BY(1)
    for (int c = 0; c < this->layout_.channels; c += kSize) {
      float x[kSize];
      load_group<true>(tile_row + c, kSize, x);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) x[i] += kBiased ? bias[c + i] : 0.0f;
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        float y[kSize];
        load_group<true>(skewed(tile) + row_at(at - r) + c, kSize, y);
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) dot[r] += x[i] * y[i];
      }
    }
  }

  /// sum[·][r] += Σ weight · row at - i + r of the skewed tile, over rows i = 0 … end - 1 of the tile.
  TEARLESS_BODY void add_weighted_skewed(int weights, int at, int end, Accumulator& sum) const {
    const float* weight_rows = this->weights_ + weights * this->layout_.tile_rows * kWarpRows;
    for (int i = 0; i < end; ++i) {
      const SixteenBytes<float> weight = load_sixteen(weight_rows + i * kWarpRows);
      for_channels([&](int k, int c) {
        TEARLESS_UNROLL
        for (int r = 0; r < kWarpRows; ++r) {
          sum[k][r] += weight.at[r] * static_cast<float>(skewed(0)[row_at(at - i + r) + c]);
        }
      });
    }
  }

  /// sum[c][r] += factor[r] · bias[c].
  TEARLESS_BODY void add_bias(const float* bias, int d_head, const float (&factor)[kWarpRows], Accumulator& sum) const {
    for_channels([&](int k, int c) {
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) sum[k][r] += c < d_head ? factor[r] * bias[c] : 0.0f;
    });
  }

  /// dot[r] = the warp's row r of an operand · bias; the same in every lane.
  TEARLESS_BODY void dots_with_bias(int operand, const float* bias, int d_head, float (&dot)[kWarpRows]) const {
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      float part = 0;
      for (int c = this->block_.lane(); c < d_head; c += kLanes) {
        part += this->warp_rows(operand)[r * this->layout_.channels + c] * bias[c];
      }
      dot[r] = warp_sum(this->block_, part);
    }
  }

  /// to[c] = Σ over the warps, in order, of Σ_r sum[c][r], and the same of `other`. All threads of the block must call.
  /// Overwrites the rows of operand 0.
  TEARLESS_BODY void sum_over_rows(const Accumulator& sum, const Accumulator& other, int d_head, float scale, float* to,
                                   float* to_other) const {
    this->block_.sync();
    float* own = this->warp_rows(0);
    for_channels([&](int k, int c) {
      own[c] = own[this->layout_.channels + c] = 0;
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        own[c] += sum[k][r];
        own[this->layout_.channels + c] += other[k][r];
      }
    });
    this->block_.sync();
    const int of_a_warp = kRelativeOperands * kWarpRows * this->layout_.channels;
    const float* first = own - this->block_.warp() * of_a_warp;
    for (int c = this->block_.thread(); c < d_head; c += SimtLayout::kThreads) {
      float all = 0, all_other = 0;
      for (int warp = 0; warp < SimtLayout::kWarps; ++warp) {
        all += first[warp * of_a_warp + c];
        all_other += first[warp * of_a_warp + this->layout_.channels + c];
      }
      to[c] = scale * all;
      to_other[c] = scale * all_other;
    }
  }

 private:
  TEARLESS_BODY int row_at(int row) const { return row * this->layout_.row_elements; }

  TEARLESS_BODY float dot_with(const float* x, const T* row) const {
    constexpr int kSize = kWideGroup<T>;
    float dot = 0;
    TEARLESS_UNROLL_BY(1)
    for (int c = 0; c < this->layout_.channels; c += kSize) {
      float y[kSize];
      load_group<true>(row + c, kSize, y);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) dot += x[c + i] * y[i];
    }
    return dot;
  }

  /// Calls f(k, channel) for the channels that the lane accumulates.
  template <class F>
  TEARLESS_BODY void for_channels(F&& f) const {
    TEARLESS_UNROLL
    for (int k = 0; k < kPerLane; ++k) {
      const int c = this->channel(k / Warp::kPair) + k % Warp::kPair;
      if (c < this->layout_.channels) f(k, c);
    }
  }
};

/// What the bodies of this file share: the launch, and a block's part of it.
struct RelativeLaunch {
  static constexpr int kThreads = SimtLayout::kThreads;
  SimtLayout layout;
  bool aligned;      // q, k, v, r, and in backward δ
  uint32_t rounds;   // blocks of a (span, head), or of a head
  int64_t of_spans;  // how many of these there are

  Shape shape() const { return {of_spans * rounds, kThreads, layout.bytes}; }
  /// The (span, head), and the block's first row in it.
  template <class Block>
  TEARLESS_BODY int64_t span_head(const Block& block) const {
    return static_cast<uint32_t>(block.index()) / rounds;
  }
  template <class Block>
  TEARLESS_BODY int first_row(const Block& block) const {
    return static_cast<int>(static_cast<uint32_t>(block.index()) % rounds) * SimtLayout::kRoundRows;
  }
  /// Loads the tile of the span's keys from `begin` on, and their positions for the block's queries from `round` on.
  template <class Block, class Warp, class T>
  TEARLESS_BODY void load_keys(Block& block, const Warp& warp, const RelativeSpanHead<T>& s, int round, int begin,
                               int count) const {
    block.sync();
    warp.load_tile(s.k, begin, count, warp.tile(0));
    warp.load_tile(s.v, begin, count, warp.tile(1));
    warp.load_tile(s.positions, s.distance(round, begin + count - 1), count + Warp::kMore, warp.skewed(0));
    block.sync();
  }
  /// In a tile of `count` keys: the position of row `row` of it and of the warp's first query.
  TEARLESS_BODY static int position_of_key(int warp, int count, int row) { return warp * kWarpRows + count - 1 - row; }
  /// In a tile of queries: that of row `row` of it and of the warp's first row, which is a key or a distance.
  TEARLESS_BODY static int position_of_query(int warp, int row) {
    return row + SimtLayout::kRoundRows - 1 - warp * kWarpRows;
  }
};

template <class T, int kPerLane>
struct RelativeForward : RelativeLaunch {
  static constexpr const char* kName = "relative_attention";
  RelativeAttention<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const RelativeSpanHead<T> s(a, span_head(block), aligned);
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int round = first_row(block), first = round + block.warp() * kWarpRows;
    if (round >= queries) return;
    const RelativeWarp<Block, T, kPerLane> warp(block, layout);
    const Mask mask(a.attention.dropout);
    const float scale = score_scale(a.attention.d_head);
    warp.load_warp_rows(s.q, first, scale, 0, s.u);
    warp.load_warp_rows(s.q, first, scale, kThird, s.w);
    SimtQueries<Block, T, kPerLane> rows;
    const int seen_by_block = s.visible_keys(round + SimtLayout::kRoundRows);
    const int seen_by_warp = s.visible_keys(first + kWarpRows);
    for (int begin = s.first_visible_key(round); begin < seen_by_block; begin += layout.tile_rows) {
      const int in_tile = rows_in_tile(keys, begin, layout.tile_rows);
      load_keys(block, warp, s, round, begin, in_tile);
      const int end = rows_in_tile(seen_by_warp, begin, in_tile);
      if (first >= queries || end <= 0) continue;
      rows.attend_tile(
          block, warp, s, mask, first, begin, end,
          [&](int row, float(&score)[kWarpRows]) {
            float of_position[kWarpRows];
            warp.dots(0, row, score);
            warp.skewed_dots(position_of_key(block.warp(), in_tile, row), of_position);
            TEARLESS_UNROLL
            for (int r = 0; r < kWarpRows; ++r) score[r] += of_position[r];
          },
          [&](int query, int key) { return s.sees(query, key); });
    }
    if (first < queries) rows.store(block, warp, s, a.attention, first);
  }
};

/// What the kernels of one backward call leave to each other.
struct RelativeWorkspace {
  float* d_u;      // [spans, rounds, heads · d_h] of the queries of each block
  float* d_w;      // the same
  float* p_dot_g;  // [spans, max_query_length, heads] D
  float* d_r;      // [max_key_length, heads · d_h] by distance
};

/// The base of the backward bodies.
template <class T>
struct RelativeBackwardBody : RelativeLaunch {
  RelativeAttentionBackward<T> b;
  RelativeWorkspace workspace;

  TEARLESS_BODY const Attention<T>& attention() const { return b.forward.attention; }
  TEARLESS_BODY float scale() const { return score_scale(attention().d_head); }
  TEARLESS_BODY int64_t width() const { return attention().heads * attention().d_head; }
  TEARLESS_BODY HeadRows<const T> d_out(const RelativeSpanHead<T>& s) const {
    return s.query_rows(attention(), b.d_out, width(), aligned);
  }
  TEARLESS_BODY float* p_dot_g(const RelativeSpanHead<T>& s, int64_t span, int query) const {
    return workspace.p_dot_g + (span * attention().max_query_length + query) * attention().heads + s.head;
  }
  TEARLESS_BODY float logsumexp(const RelativeSpanHead<T>& s, int query) const {
    return attention().saved[s.saved_at(attention(), query)];
  }
};

template <class T, int kPerLane>
struct RelativeQueryGradients : RelativeBackwardBody<T> {
  static constexpr const char* kName = "relative_attention_backward, queries";

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    using Warp = RelativeWarp<Block, T, kPerLane>;
    const auto& a = this->attention();
    const SimtLayout& layout = this->layout;
    const RelativeSpanHead<T> s(this->b.forward, this->span_head(block), this->aligned);
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int round = this->first_row(block), first = round + block.warp() * kWarpRows;
    const Warp warp(block, layout);
    const Mask mask(a.dropout);
    const float scale = this->scale();
    warp.load_warp_rows(s.q, first, scale, 0, s.u);
    warp.load_warp_rows(this->d_out(s), first, 1.0f, 1);
    warp.load_warp_rows(s.q, first, scale, kThird, s.w);
    float logsumexp[kWarpRows], dot[kWarpRows] = {};
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      logsumexp[r] = first + r < queries ? this->logsumexp(s, first + r) : 0.0f;  // where δ is 0, too
    }
    typename Warp::Accumulator content = {}, content_of_p = {}, position = {}, position_of_p = {};
    const int seen_by_block = round < queries ? s.visible_keys(round + SimtLayout::kRoundRows) : 0;
    const int seen_by_warp = s.visible_keys(first + kWarpRows);
    for (int begin = s.first_visible_key(round); begin < seen_by_block; begin += layout.tile_rows) {
      const int in_tile = rows_in_tile(keys, begin, layout.tile_rows);
      this->load_keys(block, warp, s, round, begin, in_tile);
      const int end = rows_in_tile(seen_by_warp, begin, in_tile);
      if (first >= queries || end <= 0) continue;
      for (int chunk = 0; chunk < end; chunk += kLanes) {
        const int row = chunk + block.lane();
        const int readable = row < end ? row : end - 1;
        float p[kWarpRows], of_position[kWarpRows], g[kWarpRows], keep[kWarpRows];
        warp.dots(0, readable, p);
        warp.skewed_dots(this->position_of_key(block.warp(), in_tile, readable), of_position);
        warp.dots(1, readable, g);
        warp.dropout_of_keys(mask, s, first, begin + chunk, keep);
        TEARLESS_UNROLL
        for (int r = 0; r < kWarpRows; ++r) {
          const bool seen = row < end && s.sees(first + r, begin + row);
          p[r] = seen ? expf(p[r] + of_position[r] - logsumexp[r]) : 0.0f;
          g[r] *= keep[r] * p[r];
          dot[r] += g[r];
        }
        warp.set_weights(0, row, g);
        warp.set_weights(1, row, p);
      }
      block.warp_sync();
      const int at = this->position_of_key(block.warp(), in_tile, 0);
      warp.add_weighted(0, 0, 0, end, content);
      warp.add_weighted(0, 1, 0, end, content_of_p);
      warp.add_weighted_skewed(0, at, end, position);
      warp.add_weighted_skewed(1, at, end, position_of_p);
    }
    typename Warp::Accumulator d_q;
    const int64_t span = this->span_head(block) / a.heads;
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      const float p_dot_g = warp_sum(block, dot[r]);
      if (block.lane() == 0 && first + r < queries) *this->p_dot_g(s, span, first + r) = p_dot_g;
      TEARLESS_UNROLL
      for (int k = 0; k < kPerLane; ++k) {
        content[k][r] -= p_dot_g * content_of_p[k][r];
        position[k][r] -= p_dot_g * position_of_p[k][r];
        d_q[k][r] = content[k][r] + position[k][r];
      }
    }
    if (this->b.d_q) warp.add_to_rows(s.query_rows(a, this->b.d_q, this->b.d_q_stride, false), first, scale, d_q);
    const int64_t at = (span * this->rounds + round / SimtLayout::kRoundRows) * this->width() + s.head * a.d_head;
    warp.sum_over_rows(content, position, static_cast<int>(a.d_head), scale, this->workspace.d_u + at,
                       this->workspace.d_w + at);
  }
};

template <class T, int kPerLane>
struct RelativeKeyGradients : RelativeBackwardBody<T> {
  static constexpr const char* kName = "relative_attention_backward, keys";

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    using Warp = RelativeWarp<Block, T, kPerLane>;
    const auto& a = this->attention();
    const SimtLayout& layout = this->layout;
    const RelativeSpanHead<T> s(this->b.forward, this->span_head(block), this->aligned);
    const int keys = s.span.key_count;
    const int round = this->first_row(block), first = round + block.warp() * kWarpRows;
    if (round >= keys) return;
    const Warp warp(block, layout);
    const Mask mask(a.dropout);
    const float scale = this->scale();
    const int64_t span = this->span_head(block) / a.heads;
    warp.load_warp_rows(s.k, first, scale, 0);
    warp.load_warp_rows(s.v, first, 1.0f, 1);
    warp.load_vector(s.w, static_cast<int>(a.d_head));
    block.warp_sync();
    float u_dot_k[kWarpRows], d_score_sum[kWarpRows] = {};
    warp.dots_with_bias(0, s.u, static_cast<int>(a.d_head), u_dot_k);
    typename Warp::Accumulator d_k = {}, d_v = {};
    const int queries = s.last_query_of(round + SimtLayout::kRoundRows - 1);
    for (int begin = s.first_query_of(round); begin < queries; begin += layout.tile_rows) {
      const int in_tile = rows_in_tile(queries, begin, layout.tile_rows);
      block.sync();
      warp.load_tile(s.q, begin, in_tile, warp.tile(0));
      warp.load_tile(this->d_out(s), begin, in_tile, warp.tile(1));
      warp.load_tile(s.positions, s.distance(begin, round + Warp::kMore), in_tile + Warp::kMore, warp.skewed(0));
      block.sync();
      if (first >= keys) continue;
      for (int chunk = 0; chunk < in_tile; chunk += kLanes) {
        const int row = chunk + block.lane(), query = begin + row;
        const int readable = row < in_tile ? row : in_tile - 1;
        float p[kWarpRows], of_position[kWarpRows], g[kWarpRows], keep[kWarpRows], d_score[kWarpRows];
        warp.dots(0, readable, p);
        warp.template dots_with_skewed<true>(0, readable, this->position_of_query(block.warp(), readable), of_position);
        warp.dots(1, readable, g);
        TEARLESS_UNROLL
        for (int r = 0; r < kWarpRows; ++r) keep[r] = 1.0f;
        // The warp's four keys are one Philox call.
        if (mask.active()) {
          mask.keep_four(static_cast<uint32_t>(first / 4), s.dropout_outer(query), s.dropout_sentence(), keep);
        }
        const float logsumexp = this->logsumexp(s, begin + readable);
        const float p_dot_g = *this->p_dot_g(s, span, begin + readable);
        TEARLESS_UNROLL
        for (int r = 0; r < kWarpRows; ++r) {
          const bool seen = row < in_tile && first + r < keys && s.sees(query, first + r);
          const float probability = seen ? expf(p[r] + u_dot_k[r] + scale * of_position[r] - logsumexp) : 0.0f;
          d_score[r] = probability * (keep[r] * g[r] - p_dot_g);
          d_score_sum[r] += d_score[r];
          keep[r] *= probability;
        }
        warp.set_weights(0, row, d_score);
        warp.set_weights(1, row, keep);
      }
      block.warp_sync();
      warp.add_weighted(0, 0, 0, in_tile, d_k);
      warp.add_weighted(1, 1, 0, in_tile, d_v);
    }
    if (first >= keys) return;
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) d_score_sum[r] = warp_sum(block, d_score_sum[r]);
    warp.add_bias(s.u, static_cast<int>(a.d_head), d_score_sum, d_k);
    if (this->b.d_k) warp.add_to_rows(s.key_rows(a, this->b.d_k, this->b.d_k_stride, false), first, scale, d_k);
    if (this->b.d_v) warp.add_to_rows(s.key_rows(a, this->b.d_v, this->b.d_v_stride, false), first, 1.0f, d_v);
  }
};

template <class T, int kPerLane>
struct RelativePositionGradients : RelativeBackwardBody<T> {
  static constexpr const char* kName = "relative_attention_backward, positions";

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    using Warp = RelativeWarp<Block, T, kPerLane>;
    const auto& a = this->attention();
    const SimtLayout& layout = this->layout;
    const int head = static_cast<int>(this->span_head(block));
    const int d_head = static_cast<int>(a.d_head);
    const int round = this->first_row(block), first = round + block.warp() * kWarpRows;
    const Warp warp(block, layout);
    const Mask mask(a.dropout);
    const float scale = this->scale();
    const float *u = this->b.forward.u + head * d_head, *w = this->b.forward.w + head * d_head;
    warp.load_warp_rows(RelativeSpanHead<T>::positions_of(this->b.forward, head, this->aligned), first, scale, 0);
    warp.load_vector(u, d_head);
    block.warp_sync();
    float w_dot_r[kWarpRows], d_score_sum[kWarpRows] = {};
    warp.dots_with_bias(0, w, d_head, w_dot_r);
    typename Warp::Accumulator d_r = {};
    for (int64_t span = 0; span < a.span_count; ++span) {
      const RelativeSpanHead<T> s(this->b.forward, span * a.heads + head, this->aligned);
      // Query i has a key at distance a where a - keys_before() ≤ i.
      const int queries = s.sees_at(round) ? s.span.query_count : 0;
      for (int begin = s.first_query_of(round); begin < queries; begin += layout.tile_rows) {
        const int in_tile = rows_in_tile(queries, begin, layout.tile_rows);
        const int key = s.distance(begin, round + Warp::kMore);  // of the first query, at the block's largest distance
        block.sync();
        warp.load_tile(s.q, begin, in_tile, warp.tile(0));
        warp.load_tile(this->d_out(s), begin, in_tile, warp.tile(1));
        warp.load_tile(s.clamped(s.k), key, in_tile + Warp::kMore, warp.skewed(0));
        warp.load_tile(s.clamped(s.v), key, in_tile + Warp::kMore, warp.skewed(1));
        block.sync();
        for (int chunk = 0; chunk < in_tile; chunk += kLanes) {
          const int row = chunk + block.lane(), query = begin + row;
          const int readable = row < in_tile ? row : in_tile - 1;
          const int at = this->position_of_query(block.warp(), readable);
          float p[kWarpRows], of_position[kWarpRows], g[kWarpRows], d_score[kWarpRows];
          warp.template dots_with_skewed<true>(0, readable, at, p);
          warp.template dots_with_skewed<false>(1, readable, at, g);
          warp.dots(0, readable, of_position);
          const float logsumexp = this->logsumexp(s, begin + readable);
          const float p_dot_g = *this->p_dot_g(s, span, begin + readable);
          TEARLESS_UNROLL
          for (int r = 0; r < kWarpRows; ++r) {
            const int key_of_row = s.distance(query, first + r);
            const bool seen = row < in_tile && key_of_row >= 0 && s.sees_at(first + r);
            float keep = 1.0f;
            if (seen && mask.active()) {
              keep = s.keep_bits(mask, query, key_of_row / 4) >> (key_of_row % 4) & 1 ? mask.scale() : 0.0f;
            }
            const float score = scale * p[r] + of_position[r] + w_dot_r[r];
            d_score[r] = seen ? expf(score - logsumexp) * (keep * g[r] - p_dot_g) : 0.0f;
            d_score_sum[r] += d_score[r];
          }
          warp.set_weights(0, row, d_score);
        }
        block.warp_sync();
        warp.add_weighted(0, 0, 0, in_tile, d_r);
      }
    }
    float factor[kWarpRows];
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      d_score_sum[r] = warp_sum(block, d_score_sum[r]);
      factor[r] = scale;
    }
    warp.add_bias(w, d_head, d_score_sum, d_r);
    const HeadRows<float> to{this->workspace.d_r + head * d_head, this->width(), static_cast<int>(a.max_key_length),
                             d_head, false};
    warp.store_rows(to, first, factor, d_r);
  }
};

/// A thread takes one channel of one row of ∂r.
template <class T>
struct RelativePositionSums {
  static constexpr const char* kName = "relative_attention_backward, sums";
  static constexpr int kThreads = 256;
  const float* by_distance;  // [distances, width]
  int64_t distances, positions, width;
  T* d_r;  // [positions, width]

  Shape shape() const { return {blocks_for(std::min(distances, positions) * width, kThreads), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t at = block.index() * kThreads + block.thread();
    const int64_t row = at / width;
    if (row >= (distances < positions ? distances : positions)) return;
    const int64_t end = row == positions - 1 ? distances : row + 1;
    float sum = 0;
    for (int64_t distance = row; distance < end; ++distance) sum += by_distance[distance * width + at % width];
    d_r[at] = static_cast<T>(static_cast<float>(d_r[at]) + sum);
  }
};

/// The launch of a body with blocks for `rows` rows of each of `of_spans` (span, head) or head.
template <class T>
RelativeLaunch relative_launch(const RelativeAttention<T>& a, bool aligned, int64_t of_spans, int64_t rows,
                               int64_t tiled_rows, int skewed_tiles) {
  return {SimtLayout::of(a.attention, tiled_rows, {.operands = kRelativeOperands, .skewed_tiles = skewed_tiles}),
          aligned, static_cast<uint32_t>(std::max<int64_t>(1, blocks_for(rows, SimtLayout::kRoundRows))), of_spans};
}

template <class T, class Runner>
void launch(const RelativeAttention<T>& call, Runner& runner) {
  const Attention<T>& a = call.attention;
  const bool aligned = heads_are_aligned(a) && is_aligned(call.r, a.heads * a.d_head);
  const RelativeLaunch by_queries =
      relative_launch(call, aligned, a.span_count * a.heads, a.max_query_length, a.max_key_length, 1);
  with_channels_per_lane(by_queries.layout.channels, [&](auto channels) {
    runner.run(RelativeForward<T, channels.value>{by_queries, call});
  });
}

template <class T, class Runner>
void launch(const RelativeAttentionBackward<T>& b, Runner& runner) {
  const RelativeAttention<T>& call = b.forward;
  const Attention<T>& a = call.attention;
  const int64_t width = a.heads * a.d_head, spans = a.span_count;
  const bool aligned = heads_are_aligned(a) && is_aligned(call.r, width) && is_aligned(b.d_out, width);
  const RelativeLaunch by_queries =
      relative_launch(call, aligned, spans * a.heads, a.max_query_length, a.max_key_length, 1);
  const RelativeLaunch by_keys =
      relative_launch(call, aligned, spans * a.heads, a.max_key_length, a.max_query_length, 1);
  const RelativeLaunch by_distance = relative_launch(call, aligned, a.heads, a.max_key_length, a.max_query_length, 2);
  const int64_t blocks = spans * by_queries.rounds, dots = spans * a.max_query_length * a.heads;
  RelativeWorkspace workspace;
  workspace.d_u = runner.template workspace<float>(2 * blocks * width + dots + a.max_key_length * width);
  workspace.d_w = workspace.d_u + blocks * width;
  workspace.p_dot_g = workspace.d_w + blocks * width;
  workspace.d_r = workspace.p_dot_g + dots;
  with_channels_per_lane(by_queries.layout.channels, [&](auto channels) {
    runner.run(RelativeQueryGradients<T, channels.value>{{by_queries, b, workspace}});
    if (b.d_k || b.d_v) runner.run(RelativeKeyGradients<T, channels.value>{{by_keys, b, workspace}});
    if (b.d_r) runner.run(RelativePositionGradients<T, channels.value>{{by_distance, b, workspace}});
  });
  if (b.d_r) {
    runner.run(RelativePositionSums<T>{workspace.d_r, a.max_key_length, call.positions, width, b.d_r});
  }
  if (b.d_u) runner.run(AddPartials{workspace.d_u, blocks, width, b.d_u, width, nullptr});
  if (b.d_w) runner.run(AddPartials{workspace.d_w, blocks, width, b.d_w, width, nullptr});
}

}  // namespace tearless::engine
