// Backward of attention on tensor cores (attention_body.h has the equations and their letters), in two passes over the
// span:
//   compute_d_q()        the warp's rows are queries (q and δ), tiles are keys (k and v);
//   compute_d_k_d_v()    the warp's rows are keys (k and v), tiles are queries (q and δ).
// P is computed again in both, from the saved logsumexp. The dropout bits are drawn in the first pass and kept in
// shared memory for the second.
#pragma once

#include <cmath>

#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_mma.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/online_softmax.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <int kChunks>
struct MmaAttentionBackward {
  static constexpr const char* kName = "attention_mma_backward";
  static constexpr int kThreads = MmaLayout::kMaxWarps * kLanes;
  static constexpr int kBlocksAtOnce = kChunks <= 4 ? 3 : 2;  // resident blocks per SM
  AttentionBackward<bf16> b;
  MmaLayout layout;
  float scale;  // score_scale()

  Shape shape() const { return {b.forward.span_count * b.forward.heads, layout.warps * kLanes, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<bf16> s(b.forward, block.index(), true);
    if (b.stored_rows > 0) s.zero_padding(block, b);
    if (s.span.query_count == 0 || s.span.key_count == 0) return;
    const MmaWarp<Block, kChunks> warp(block, layout);
    const Mask mask(b.forward.dropout);
    // Up to a multiple of 16 queries; past the last one any finite number will do.
    for (int i = block.thread(); i < layout.stats.queries; i += block.threads()) {
      layout.stats.logsumexp(block)[i] =
          i < s.span.query_count ? b.forward.saved[s.saved_at(b.forward, i)] * kLog2OfE : 0;
    }
    compute_d_q(block, warp, s, mask);
    compute_d_k_d_v(block, warp, s,
                    mask);  // starts with a block barrier (load_tiles()), before it reads what is shared
  }

 private:
  /// Blocks of 16 keys whose P and G one_pass() holds in registers.
  static constexpr int kHeld = 4;

  TEARLESS_BODY HeadRows<const bf16> d_out(const SpanHead<bf16>& s) const {
    return s.query_rows(b.forward, b.d_out, b.forward.heads * b.forward.d_head, true);
  }
  /// The dropout bits of a query and of the block of 16 keys that `key` is in.
  template <class Block>
  TEARLESS_BODY uint16_t& keep_bits(Block& block, int query, int key) const {
    uint16_t* bits = reinterpret_cast<uint16_t*>(block.shared() + layout.keep_bits_at);
    return bits[query * layout.key_blocks + key / kMmaRows];
  }

  /// The warp's 16 queries from `first` on, with their rows of q and δ.
  template <class Warp>
  struct WarpQueries {
    int first;
    typename Warp::WarpRows q, d_out;
    float logsumexp[2];  // of the lane's two rows, in base 2

    template <class Block>
    TEARLESS_BODY void load_logsumexp(Block& block, const Warp& warp, const QueryStats& stats) {
      TEARLESS_UNROLL
      for (int r = 0; r < 2; ++r) logsumexp[r] = stats.logsumexp(block)[first + warp.row(r)];
    }
  };

  // --- ∂q ---

  /// ∂q, and Σ_j P_j G_j of every query for compute_d_k_d_v().
  template <class Block, class Warp>
  TEARLESS_BODY void compute_d_q(Block& block, const Warp& warp, const SpanHead<bf16>& s, const Mask& mask) const {
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int round_rows = block.warps() * kMmaRows;
    const bool few_keys = keys <= kHeld * kMmaRows && keys <= layout.tile_rows;
    for (int round = 0; round < queries; round += round_rows) {
      WarpQueries<Warp> rows;
      rows.first = round + warp.warp() * kMmaRows;
      warp.load_warp_rows(s.q, rows.first, rows.q);
      warp.load_warp_rows(d_out(s), rows.first, rows.d_out);
      block.warp_sync();  // mma requires the warp to be converged
      if (few_keys) {
        if (round == 0) warp.load_tiles(s.k, s.v, 0, keys);
        if (rows.first < queries) one_pass(block, warp, s, mask, rows);
      } else {
        two_passes(block, warp, s, mask, rows, s.visible_keys(round + round_rows), round == 0);
      }
    }
  }

  /// Few keys: P and G stay in registers until Σ_j P_j G_j is known.
  template <class Block, class Warp>
  TEARLESS_BODY void one_pass(Block& block, const Warp& warp, const SpanHead<bf16>& s, const Mask& mask,
                              WarpQueries<Warp>& rows) const {
    const int end = s.visible_keys(rows.first + kMmaRows);
    rows.load_logsumexp(block, warp, layout.stats);
    MmaFragment p[kHeld] = {}, g[kHeld] = {};  // uninitialised, they would be spilled
    float dot[2] = {}, p_dot_g[2];
    TEARLESS_UNROLL
    for (int n = 0; n < kHeld; ++n) {
      if (n * kMmaRows >= end) break;
      recompute_p_g(block, warp, s, mask, rows, 0, n * kMmaRows, end, true, p[n], g[n]);
      add_dot(p[n], g[n], dot);
    }
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) p_dot_g[r] = warp.row_sum(dot[r]);
    typename Warp::Accumulator d_q = {};
    TEARLESS_UNROLL
    for (int n = 0; n < kHeld; ++n) {
      if (n * kMmaRows >= end) break;
      to_d_score(p[n], g[n], p_dot_g);
      warp.add_weighted(0, n * kMmaRows, p[n], d_q);
    }
    store_d_q(block, warp, s, rows.first, p_dot_g, d_q);
  }

  /// Many keys: two passes over them, for Σ_j P_j G_j and then for ∂q. All warps must call, because all threads load
  /// the tiles.
  template <class Block, class Warp>
  TEARLESS_BODY void two_passes(Block& block, const Warp& warp, const SpanHead<bf16>& s, const Mask& mask,
                                WarpQueries<Warp>& rows, int seen_by_round, bool first_round) const {
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int seen_by_warp = s.visible_keys(rows.first + kMmaRows);
    float p_dot_g[2] = {};
    typename Warp::Accumulator d_q = {};
    for (int pass = 0; pass < 2; ++pass) {
      for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
        const int in_tile = rows_in_tile(keys, begin, layout.tile_rows);
        if (keys > layout.tile_rows || (first_round && pass == 0)) warp.load_tiles(s.k, s.v, begin, in_tile);
        if (rows.first >= queries) continue;
        rows.load_logsumexp(block, warp, layout.stats);
        const int end = rows_in_tile(seen_by_warp, begin, in_tile);
        TEARLESS_UNROLL_BY(1)
        for (int at = 0; at < end; at += kMmaRows) {
          MmaFragment p, g;
          recompute_p_g(block, warp, s, mask, rows, begin, at, end, pass == 0, p, g);
          if (pass == 0) {
            add_dot(p, g, p_dot_g);
          } else {
            to_d_score(p, g, p_dot_g);
            warp.add_weighted(0, at, p, d_q);
          }
        }
      }
      if (pass > 0) continue;
      block.warp_sync();  // the second pass reads the dropout bits that other lanes wrote
      TEARLESS_UNROLL
      for (int r = 0; r < 2; ++r) p_dot_g[r] = warp.row_sum(p_dot_g[r]);
    }
    if (rows.first < queries) store_d_q(block, warp, s, rows.first, p_dot_g, d_q);
  }

  /// P and G of the warp's queries and of the 16 keys from row `at` of the tile on; the tile begins with key `begin`,
  /// and its rows from `end` on are not seen. `draw`: draws the dropout bits and stores them in keep_bits(); otherwise
  /// reads them from there.
  template <class Block, class Warp>
  TEARLESS_BODY void recompute_p_g(Block& block, const Warp& warp, const SpanHead<bf16>& s, const Mask& mask,
                                   const WarpQueries<Warp>& rows, int begin, int at, int end, bool draw, MmaFragment& p,
                                   MmaFragment& g) const {
    const float log2_scale = scale * kLog2OfE;
    warp.dots(0, at, rows.q, p);
    warp.dots(1, at, rows.d_out, g);
    MmaFragment keep;
    if (mask.active()) {
      const int key = begin + at;
      uint32_t bits[2];
      if (draw) {
        warp.keep_bits(mask, s, rows.first, key, bits);
        // Two lanes write the same value: a branch to avoid it might diverge the warp, which mma requires converged.
        const int odd = warp.t() % 2;
        keep_bits(block, rows.first + warp.row(odd), key) = static_cast<uint16_t>(odd ? bits[1] : bits[0]);
      } else {
        TEARLESS_UNROLL
        for (int r = 0; r < 2; ++r) bits[r] = keep_bits(block, rows.first + warp.row(r), key);
      }
      warp.dropout_factors(mask, bits, keep);
    } else {
      warp.no_dropout(keep);
    }
    for_fragment(warp.t(), [&](int j, int x, int r, int column) {
      const bool seen = at + column < end && s.sees(rows.first + warp.row(r), begin + at + column);
      p[j][x] = seen ? exp2f(p[j][x] * log2_scale - rows.logsumexp[r]) : 0.0f;
      g[j][x] *= keep[j][x];
    });
  }

  TEARLESS_BODY static void add_dot(const MmaFragment& p, const MmaFragment& g, float (&dot)[2]) {
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) dot[x / 2] += p[j][x] * g[j][x];
    }
  }
  /// p = ∂scores = P ⊙ (G - Σ_j P_j G_j).
  TEARLESS_BODY static void to_d_score(MmaFragment& p, const MmaFragment& g, const float (&p_dot_g)[2]) {
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) p[j][x] *= g[j][x] - p_dot_g[x / 2];
    }
  }

  /// Stores Σ_j P_j G_j for compute_d_k_d_v() and adds to ∂q.
  template <class Block, class Warp>
  TEARLESS_BODY void store_d_q(Block& block, const Warp& warp, const SpanHead<bf16>& s, int first,
                               const float (&p_dot_g)[2], typename Warp::Accumulator& d_q) const {
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (warp.t() == 0) layout.stats.p_dot_g(block)[first + warp.row(r)] = p_dot_g[r];
    }
    warp.add_to_rows(s.query_rows(b.forward, b.d_q, b.d_q_stride, true), first, scale, d_q, b.stored_rows > 0);
  }

  // --- ∂k and ∂v ---

  template <class Block, class Warp>
  TEARLESS_BODY void compute_d_k_d_v(Block& block, const Warp& warp, const SpanHead<bf16>& s, const Mask& mask) const {
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int round_rows = block.warps() * kMmaRows;
    const bool one_tile = queries <= layout.tile_rows;
    for (int round = 0; round < keys; round += round_rows) {
      const int first = round + warp.warp() * kMmaRows;
      typename Warp::WarpRows k, v;
      warp.load_warp_rows(s.k, first, k);
      warp.load_warp_rows(s.v, first, v);
      block.warp_sync();
      typename Warp::Accumulator d_k = {}, d_v = {};
      for (int begin = s.first_seeing(round, 0, layout.tile_rows); begin < queries; begin += layout.tile_rows) {
        const int in_tile = rows_in_tile(queries, begin, layout.tile_rows);
        if (!one_tile || round == 0) warp.load_tiles(s.q, d_out(s), begin, in_tile);
        if (first >= keys) continue;
        TEARLESS_UNROLL_BY(1)
        for (int at = s.first_seeing(first, begin, kMmaRows); at < in_tile; at += kMmaRows) {
          MmaFragment p, g;  // transposed: the warp's keys × queries
          warp.dots(0, at, k, p);
          warp.dots(1, at, v, g);
          MmaFragment d_score, dropped_p;
          weights_of_queries(block, warp, s, mask, first, begin + at, p, g, d_score, dropped_p);
          warp.add_weighted(0, at, d_score, d_k);
          warp.add_weighted(1, at, dropped_p, d_v);
        }
      }
      if (first >= keys) continue;
      warp.add_to_rows(s.key_rows(b.forward, b.d_k, b.d_k_stride, true), first, scale, d_k, b.stores_keys);
      warp.add_to_rows(s.key_rows(b.forward, b.d_v, b.d_v_stride, true), first, 1.0f, d_v, b.stores_keys);
    }
  }

  /// ∂scoresᵀ and (m ⊙ P)ᵀ of the warp's keys, from `first` on, and of the 16 queries from `first_query` on, from their
  /// dot products: k · q in `p`, v · δ in `g`.
  template <class Block, class Warp>
  TEARLESS_BODY void weights_of_queries(Block& block, const Warp& warp, const SpanHead<bf16>& s, const Mask& mask,
                                        int first, int first_query, const MmaFragment& p, const MmaFragment& g,
                                        MmaFragment& d_score, MmaFragment& dropped_p) const {
    const float log2_scale = scale * kLog2OfE;
    for_fragment(warp.t(), [&](int j, int x, int r, int column) {
      const int query = first_query + column;
      const int key = first + warp.row(r);
      const bool seen = query < s.span.query_count && key < s.span.key_count && s.sees(query, key);
      float keep = 1.0f;
      if (mask.active()) keep = keep_bits(block, query, first) >> warp.row(r) & 1 ? mask.scale() : 0.0f;
      const float probability = seen ? exp2f(p[j][x] * log2_scale - layout.stats.logsumexp(block)[query]) : 0.0f;
      d_score[j][x] = seen ? probability * (keep * g[j][x] - layout.stats.p_dot_g(block)[query]) : 0.0f;
      dropped_p[j][x] = keep * probability;
    });
  }
};

}  // namespace tearless::engine
