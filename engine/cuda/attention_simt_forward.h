// Forward of attention without tensor cores (attention_body.h). The warp's rows are four queries; the block loops over
// tiles of keys and values, and each warp does for its queries i, with the keys j of the tile:
//   s_ij   = q_i · k_j / √d_h                     dots(); -∞ for keys that the query does not see
//   max_i  = max(max_i, max_j s_ij)               raise_to() of online_softmax.h, which rescales sum_i; and out_i
//   sum_i += Σ_j e^(s_ij - max_i)
//   out_i += Σ_j m_ij e^(s_ij - max_i) v_j        add_weighted(), with m the dropout multipliers
// Stored are out_i / sum_i, and max_i + log sum_i for backward.
#pragma once

#include <cfloat>
#include <cmath>

#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_simt.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/online_softmax.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// What is accumulated for a warp's queries.
template <class Block, class T, int kPerLane>
struct SimtQueries {
  OnlineSoftmax<BaseE> softmax[kWarpRows];
  float out[kPerLane][kWarpRows] = {};  // SimtWarp::Accumulator: Σ_j m_ij e^(s_ij - max_i) v_j

  /// One tile. `begin`: the tile's first key; `end`: rows of the tile to use. scores(row, score): the scores of the
  /// warp's queries and that row of the tile; sees(query, key): the mask.
  template <class Warp, class Scores, class Sees>
  TEARLESS_BODY void attend_tile(Block& block, const Warp& warp, const SpanHead<T>& s, const Mask& mask, int first,
                                 int begin, int end, const Scores& scores, const Sees& sees) {
    const int lane = block.lane();
    float score[kTileChunks][kWarpRows];  // of key chunk · 32 + lane
    float tile_max[kWarpRows];
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) tile_max[r] = -FLT_MAX;
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kTileChunks; ++chunk) {
      const int row = chunk * kLanes + lane;
      if (chunk * kLanes >= end) break;
      scores(row < end ? row : end - 1, score[chunk]);
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        if (row >= end || !sees(first + r, begin + row)) score[chunk][r] = -INFINITY;
        tile_max[r] = fmaxf(tile_max[r], score[chunk][r]);
      }
    }
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      const float rescale = softmax[r].raise_to(fmaxf(softmax[r].max, warp_max(block, tile_max[r])));
      TEARLESS_UNROLL
      for (int k = 0; k < kPerLane; ++k) out[k][r] *= rescale;
    }
    float tile_sum[kWarpRows] = {};
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kTileChunks; ++chunk) {
      if (chunk * kLanes >= end) break;
      float weight[kWarpRows];
      warp.dropout_of_keys(mask, s, first, begin + chunk * kLanes, weight);
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        const float e = softmax[r].exp(score[chunk][r]);
        tile_sum[r] += e;
        weight[r] *= e;
      }
      warp.set_weights(0, chunk * kLanes + lane, weight);
    }
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) softmax[r].sum += warp_sum(block, tile_sum[r]);
    block.warp_sync();
    warp.add_weighted(1, 0, 0, end, out);
  }

  /// Writes the output, and what is saved for backward.
  template <class Warp>
  TEARLESS_BODY void store(Block& block, const Warp& warp, const SpanHead<T>& s, const Attention<T>& a,
                           int first) const {
    float inverse[kWarpRows];
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      inverse[r] = s.span.key_count > 0 ? 1.0f / softmax[r].sum : 0.0f;
      if (a.saved && block.lane() == 0 && first + r < s.span.query_count) {
        a.saved[s.saved_at(a, first + r)] = softmax[r].logsumexp();
      }
    }
    warp.store_rows(s.query_rows(a, a.out, a.heads * a.d_head, false), first, inverse, out);
  }
};

/// kIndexed: keys are looked up in Attention::key_rows. A separate instantiation, so that training has no branch per
/// key.
template <class T, int kPerLane, bool kIndexed>
struct SimtAttentionForward {
  static constexpr const char* kName = "attention";
  static constexpr int kThreads = SimtLayout::kThreads;
  static constexpr int kBlocksAtOnce = 4;  // resident blocks per SM; no register spills
  Attention<T> a;
  SimtLayout layout;
  bool aligned;  // q, k and v

  Shape shape() const { return {a.span_count * a.heads, kThreads, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<T> s(a, block.index(), aligned);
    const SimtWarp<Block, T, kPerLane> warp(block, layout, 1);
    const Mask mask(a.dropout);
    const float scale = score_scale(a.d_head);
    const int queries = s.span.query_count, keys = s.span.key_count;
    const bool one_tile = keys <= layout.tile_rows;

    // In each round a block takes kRoundRows queries. Every warp goes through all rounds and tiles, even without
    // queries, because all threads load the tiles.
    for (int round = 0; round < queries; round += SimtLayout::kRoundRows) {
      const int first = round + block.warp() * kWarpRows;
      block.warp_sync();  // the warp's rows and weights of the round before are no longer read
      warp.load_warp_rows(s.q, first, scale, 0);
      SimtQueries<Block, T, kPerLane> rows;
      const int seen_by_round = s.visible_keys(round + SimtLayout::kRoundRows);
      const int seen_by_warp = s.visible_keys(first + kWarpRows);
      for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
        const int in_tile = rows_in_tile(keys, begin, layout.tile_rows);
        if (!one_tile || round == 0) {
          warp.load_tiles(rows_of_keys(s, a.k, a.k_stride), rows_of_keys(s, a.v, a.v_stride), begin, in_tile);
        } else {
          block.warp_sync();
        }
        const int end = rows_in_tile(seen_by_warp, begin, in_tile);
        if (first >= queries || end <= 0) continue;
        rows.attend_tile(
            block, warp, s, mask, first, begin, end,
            [&](int row, float(&score)[kWarpRows]) { warp.dots(0, row, score); },
            [&](int query, int key) { return s.sees(query, key); });
      }
      if (first < queries) rows.store(block, warp, s, a, first);
    }
  }

 private:
  /// The span's rows of k or v (`data`).
  TEARLESS_BODY auto rows_of_keys(const SpanHead<T>& s, const T* data, int64_t stride) const {
    if constexpr (kIndexed) {
      return s.indexed_keys(a, data, stride, aligned);
    } else {
      return s.key_rows(a, data, stride, aligned);
    }
  }
};

}  // namespace tearless::engine
