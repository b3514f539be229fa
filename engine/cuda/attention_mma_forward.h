// Forward of attention on tensor cores (attention_body.h). The warp's rows are 16 queries; the block loops over tiles
// of keys and values, and each warp does for its queries i, with 16 or 32 keys j at a time:
//   s_ij   = log2 e · q_i · k_j / √d_h            dots(); -∞ for keys that the query does not see
//   max_i  = max(max_i, max_j s_ij)               raise_to() of online_softmax.h, which rescales sum_i; and out_i
//   sum_i += Σ_j 2^(s_ij - max_i)
//   out_i += Σ_j m_ij 2^(s_ij - max_i) v_j        add_weighted(), with m the dropout multipliers
// Stored are out_i / sum_i, and max_i / log2 e + log sum_i for backward.
#pragma once

#include <cfloat>
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
struct MmaAttentionForward {
  static constexpr const char* kName = "attention_mma";
  static constexpr int kThreads = MmaLayout::kMaxWarps * kLanes;
  static constexpr int kBlocksAtOnce = kChunks <= 4 ? 4 : 2;  // resident blocks per SM
  Attention<bf16> a;
  MmaLayout layout;
  float scale;  // score_scale()

  Shape shape() const { return {a.span_count * a.heads, layout.warps * kLanes, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    using Warp = MmaWarp<Block, kChunks>;
    const SpanHead<bf16> s(a, block.index(), true);
    if (a.padded_rows > 0) s.zero_padding(block, a, a.out, a.heads * a.d_head, a.padded_rows);
    const Warp warp(block, layout);
    const Mask mask(a.dropout);
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int round_rows = block.warps() * kMmaRows;
    const bool one_tile = keys <= layout.tile_rows;

    // In each round a block takes round_rows queries. Every warp goes through all rounds and tiles, even without
    // queries, because all threads load the tiles.
    for (int round = 0; round < queries; round += round_rows) {
      WarpQueries<Warp> rows;
      rows.first = round + warp.warp() * kMmaRows;
      warp.load_warp_rows(s.q, rows.first, rows.q);
      block.warp_sync();  // mma requires the warp to be converged
      const int seen_by_round = s.visible_keys(round + round_rows);
      const int seen_by_warp = s.visible_keys(rows.first + kMmaRows);
      for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
        const int in_tile = rows_in_tile(keys, begin, layout.tile_rows);
        if (!one_tile || round == 0) warp.load_tiles(s.k, s.v, begin, in_tile);
        if (rows.first >= queries) continue;
        const int end = rows_in_tile(seen_by_warp, begin, in_tile);
        int at = 0;
        for (; at + kMmaRows < end; at += 2 * kMmaRows) attend_keys<2>(warp, s, mask, begin, at, end, rows);
        if (at < end) attend_keys<1>(warp, s, mask, begin, at, end, rows);
      }
      if (rows.first < queries) store(warp, s, rows);
    }
  }

 private:
  /// The warp's 16 queries from `first` on, and what is accumulated for them.
  template <class Warp>
  struct WarpQueries {
    int first;
    typename Warp::WarpRows q;
    OnlineSoftmax<Base2> softmax[2];  // of the lane's two rows; the sums are the lane's parts of them
    typename Warp::Accumulator out = {};
  };

  /// The warp's queries and kFragments blocks of 16 keys of the tile, from its row `at` on. `begin`: the tile's first
  /// key; `end`: rows of the tile to use.
  template <int kFragments, class Warp>
  TEARLESS_BODY void attend_keys(const Warp& warp, const SpanHead<bf16>& s, const Mask& mask, int begin, int at,
                                 int end, WarpQueries<Warp>& rows) const {
    const float log2_scale = scale * kLog2OfE;
    MmaFragment score[kFragments];
    float keys_max[2] = {-FLT_MAX, -FLT_MAX};
    TEARLESS_UNROLL
    for (int n = 0; n < kFragments; ++n) {
      const int row = at + n * kMmaRows;
      warp.dots(0, row, rows.q, score[n]);
      for_fragment(warp.t(), [&](int j, int x, int r, int column) {
        const bool seen = row + column < end && s.sees(rows.first + warp.row(r), begin + row + column);
        score[n][j][x] = seen ? score[n][j][x] * log2_scale : -INFINITY;
        keys_max[r] = fmaxf(keys_max[r], score[n][j][x]);
      });
    }
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float rescale = rows.softmax[r].raise_to(fmaxf(rows.softmax[r].max, warp.row_max(keys_max[r])));
      TEARLESS_UNROLL
      for (int n = 0; n < 2 * kChunks; ++n) {
        rows.out[n][2 * r] *= rescale;
        rows.out[n][2 * r + 1] *= rescale;
      }
    }
    TEARLESS_UNROLL
    for (int n = 0; n < kFragments; ++n) {
      const int row = at + n * kMmaRows;
      MmaFragment weight;
      if (mask.active()) {
        uint32_t bits[2];
        warp.keep_bits(mask, s, rows.first, begin + row, bits);
        warp.dropout_factors(mask, bits, weight);
      } else {
        warp.no_dropout(weight);
      }
      for_fragment(warp.t(), [&](int j, int x, int r, int) {
        const float e = rows.softmax[r].exp(score[n][j][x]);
        rows.softmax[r].sum += e;
        weight[j][x] *= e;
      });
      warp.add_weighted(1, row, weight, rows.out);
    }
  }

  template <class Warp>
  TEARLESS_BODY void store(const Warp& warp, const SpanHead<bf16>& s, WarpQueries<Warp>& rows) const {
    float inverse[2];
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      rows.softmax[r].sum = warp.row_sum(rows.softmax[r].sum);
      inverse[r] = s.span.key_count > 0 ? 1.0f / rows.softmax[r].sum : 0.0f;
      const int query = rows.first + warp.row(r);
      if (a.saved && warp.t() == 0 && query < s.span.query_count) {
        a.saved[s.saved_at(a, query)] = rows.softmax[r].logsumexp();
      }
    }
    warp.store_rows(s.query_rows(a, a.out, a.heads * a.d_head, true), rows.first, inverse, rows.out);
  }
};

}  // namespace tearless::engine
