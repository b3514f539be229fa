// Backward of attention without tensor cores (attention_body.h has the equations and their letters), in two passes over
// the span:
//   compute_d_q()        the warp's rows are queries (q and δ), tiles are keys (k and v);
//   compute_d_k_d_v()    the warp's rows are keys (k and v), tiles are queries (q and δ).
// P is computed again in both, from the saved logsumexp.
#pragma once

#include <cmath>

#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_simt.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, int kPerLane>
struct SimtAttentionBackward {
  static constexpr const char* kName = "attention_backward";
  static constexpr int kThreads = SimtLayout::kThreads;
  static constexpr int kBlocksAtOnce = kPerLane <= 2 ? 3 : 2;  // resident blocks per SM; no register spills
  AttentionBackward<T> b;
  SimtLayout layout;
  bool aligned;  // q, k, v and δ

  Shape shape() const { return {b.forward.span_count * b.forward.heads, kThreads, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<T> s(b.forward, block.index(), aligned);
    if (s.span.query_count == 0 || s.span.key_count == 0) return;
    const SimtWarp<Block, T, kPerLane> warp(block, layout, 2);
    const Mask mask(b.forward.dropout);
    for (int i = block.thread(); i < s.span.query_count; i += kThreads) {
      layout.stats.logsumexp(block)[i] = b.forward.saved[s.saved_at(b.forward, i)];
    }
    compute_d_q(block, warp, s, mask);
    compute_d_k_d_v(block, warp, s, mask);  // starts with a block barrier, before it reads the stats and loads tiles
  }

 private:
  using Tile = float[kTileChunks][kWarpRows];  // of row chunk · 32 + lane of the tile, and of the warp's rows

  TEARLESS_BODY HeadRows<const T> d_out(const SpanHead<T>& s) const {
    return s.query_rows(b.forward, b.d_out, b.forward.heads * b.forward.d_head, aligned);
  }
  TEARLESS_BODY float scale() const { return score_scale(b.forward.d_head); }

  /// ∂q, and Σ_j P_j G_j of every query for compute_d_k_d_v(). Where the keys fill several tiles it goes over them
  /// twice: for that sum, and then for ∂q.
  template <class Block, class Warp>
  TEARLESS_BODY void compute_d_q(Block& block, const Warp& warp, const SpanHead<T>& s, const Mask& mask) const {
    const int queries = s.span.query_count, keys = s.span.key_count;
    const bool one_tile = keys <= layout.tile_rows;
    for (int round = 0; round < queries; round += SimtLayout::kRoundRows) {
      const int first = round + block.warp() * kWarpRows;
      block.warp_sync();
      warp.load_warp_rows(s.q, first, scale(), 0);
      warp.load_warp_rows(d_out(s), first, 1.0f, 1);
      float p_dot_g[kWarpRows] = {};
      typename Warp::Accumulator d_q = {};
      const int seen_by_round = s.visible_keys(round + SimtLayout::kRoundRows);
      const int seen_by_warp = s.visible_keys(first + kWarpRows);
      for (int pass = one_tile ? 1 : 0; pass < 2; ++pass) {
        for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
          const int in_tile = rows_in_tile(keys, begin, layout.tile_rows);
          if (!one_tile || round == 0) {
            warp.load_tiles(s.k, s.v, begin, in_tile);
          } else {
            block.warp_sync();
          }
          const int end = rows_in_tile(seen_by_warp, begin, in_tile);
          if (first >= queries || end <= 0) continue;
          Tile p, g;
          float dot[kWarpRows] = {};
          recompute_p_g(block, warp, s, mask, first, begin, end, p, g, dot);
          if (pass == 0 || one_tile) {
            TEARLESS_UNROLL
            for (int r = 0; r < kWarpRows; ++r) p_dot_g[r] += warp_sum(block, dot[r]);
          }
          if (pass > 0) add_to_d_q(block, warp, p, g, p_dot_g, end, d_q);
        }
      }
      if (first >= queries) continue;
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        if (block.lane() == 0 && first + r < queries) layout.stats.p_dot_g(block)[first + r] = p_dot_g[r];
      }
      warp.add_to_rows(s.query_rows(b.forward, b.d_q, b.d_q_stride, false), first, scale(), d_q);
    }
  }

  /// P, G and the lane's part of Σ_j P_j G_j for the warp's queries and one tile of keys. `begin`: the tile's first
  /// key; `end`: rows of the tile to use.
  template <class Block, class Warp>
  TEARLESS_BODY void recompute_p_g(Block& block, const Warp& warp, const SpanHead<T>& s, const Mask& mask, int first,
                                   int begin, int end, Tile& p, Tile& g, float (&dot)[kWarpRows]) const {
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kTileChunks; ++chunk) {
      if (chunk * kLanes >= end) break;
      const int row = chunk * kLanes + block.lane();
      const int readable = row < end ? row : end - 1;
      warp.dots(0, readable, p[chunk]);
      warp.dots(1, readable, g[chunk]);
      // Past the last query these are arbitrary numbers; those rows are not written.
      const SixteenBytes<float> logsumexp = load_sixteen(layout.stats.logsumexp(block) + first);
      float keep[kWarpRows];
      warp.dropout_of_keys(mask, s, first, begin + chunk * kLanes, keep);
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        const bool seen = row < end && s.sees(first + r, begin + row);
        p[chunk][r] = seen ? expf(p[chunk][r] - logsumexp.at[r]) : 0.0f;
        g[chunk][r] *= keep[r];
        dot[r] += p[chunk][r] * g[chunk][r];
      }
    }
  }

  /// d_q += ∂scores k over the tile, without the factor 1 / √d_h.
  template <class Block, class Warp>
  TEARLESS_BODY void add_to_d_q(Block& block, const Warp& warp, const Tile& p, const Tile& g,
                                const float (&p_dot_g)[kWarpRows], int end, typename Warp::Accumulator& d_q) const {
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kTileChunks; ++chunk) {
      if (chunk * kLanes >= end) break;
      float d_score[kWarpRows];
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) d_score[r] = p[chunk][r] * (g[chunk][r] - p_dot_g[r]);
      warp.set_weights(0, chunk * kLanes + block.lane(), d_score);
    }
    block.warp_sync();
    warp.add_weighted(0, 0, 0, end, d_q);
  }

  /// ∂k and ∂v.
  template <class Block, class Warp>
  TEARLESS_BODY void compute_d_k_d_v(Block& block, const Warp& warp, const SpanHead<T>& s, const Mask& mask) const {
    const int queries = s.span.query_count, keys = s.span.key_count;
    const bool one_tile = queries <= layout.tile_rows;
    for (int round = 0; round < keys; round += SimtLayout::kRoundRows) {
      const int first = round + block.warp() * kWarpRows;
      block.warp_sync();
      warp.load_warp_rows(s.k, first, scale(), 0);
      warp.load_warp_rows(s.v, first, 1.0f, 1);
      typename Warp::Accumulator d_k = {}, d_v = {};
      for (int begin = s.first_seeing(round, 0, layout.tile_rows); begin < queries; begin += layout.tile_rows) {
        const int in_tile = rows_in_tile(queries, begin, layout.tile_rows);
        if (!one_tile || round == 0) {
          warp.load_tiles(s.q, d_out(s), begin, in_tile);
        } else {
          block.warp_sync();
        }
        if (first >= keys) continue;
        const int from = s.first_seeing(first, begin, kLanes);
        for (int chunk = from; chunk < in_tile; chunk += kLanes) {
          set_weights_of_queries(block, warp, s, mask, first, begin, chunk + block.lane(), in_tile);
        }
        block.warp_sync();
        warp.add_weighted(0, 0, from, in_tile, d_k);
        warp.add_weighted(1, 1, from, in_tile, d_v);
      }
      if (first >= keys) continue;
      warp.add_to_rows(s.key_rows(b.forward, b.d_k, b.d_k_stride, false), first, scale(), d_k);
      warp.add_to_rows(s.key_rows(b.forward, b.d_v, b.d_v_stride, false), first, 1.0f, d_v);
    }
  }

  /// For the warp's keys and the lane's query, row `row` of the tile that begins with query `begin`: sets ∂scores as
  /// the weights of q and m ⊙ P as those of δ.
  template <class Block, class Warp>
  TEARLESS_BODY void set_weights_of_queries(Block& block, const Warp& warp, const SpanHead<T>& s, const Mask& mask,
                                            int first, int begin, int row, int in_tile) const {
    const int query = begin + row;
    const int readable = row < in_tile ? row : in_tile - 1;
    float p[kWarpRows], g[kWarpRows], keep[kWarpRows], d_score[kWarpRows];
    warp.dots(0, readable, p);
    warp.dots(1, readable, g);
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) keep[r] = 1.0f;
    // The warp's four keys are one Philox call.
    if (mask.active()) {
      mask.keep_four(static_cast<uint32_t>(first / 4), s.dropout_outer(query), s.dropout_sentence(), keep);
    }
    const float logsumexp = layout.stats.logsumexp(block)[begin + readable];
    const float p_dot_g = layout.stats.p_dot_g(block)[begin + readable];
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      const bool seen = row < in_tile && first + r < s.span.key_count && s.sees(query, first + r);
      const float probability = seen ? expf(p[r] - logsumexp) : 0.0f;
      d_score[r] = probability * (keep[r] * g[r] - p_dot_g);
      keep[r] *= probability;
    }
    warp.set_weights(0, row, d_score);
    warp.set_weights(1, row, keep);
  }
};

}  // namespace tearless::engine
