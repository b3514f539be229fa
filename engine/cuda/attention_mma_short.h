// Backward of attention on tensor cores where no span has more than kMaxShort queries or keys (attention_body.h has the
// equations and their letters). Every warp has 16 queries, then 16 keys, and P is computed once:
//   1. all rows of q, δ, k and v are loaded into shared memory;
//   2. each warp computes ∂scores and m ⊙ P of its queries, adds ∂scores k to ∂q, and leaves both in shared memory,
//      rounded to bf16;
//   3. each warp adds (∂scores)ᵀ q and (m ⊙ P)ᵀ δ to ∂k and ∂v of its keys.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_mma.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/online_softmax.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// Rows of a span, at most.
inline constexpr int64_t kMaxShort = 64;

/// kBlocks: blocks of 16 rows that a span may have.
template <int kChunks, int kBlocks>
struct MmaAttentionBackwardShort {
  static constexpr const char* kName = "attention_mma_backward_short";
  static constexpr int kThreads = kBlocks * kLanes;
  static constexpr int kBlocksAtOnce = kChunks <= 4 ? 8 / kBlocks : 1;  // resident blocks per SM
  AttentionBackward<bf16> b;
  float scale;  // score_scale()
  MmaLayout layout = tiles();

  Shape shape() const {
    constexpr int64_t kWeightBytes = 2 * int64_t{kRows} * kWeightElements * sizeof(bf16);
    return {b.forward.span_count * b.forward.heads, kThreads, layout.bytes + kWeightBytes};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<bf16> s(b.forward, block.index(), true);
    if (b.stored_rows > 0) s.zero_padding(block, b);
    if (s.span.query_count == 0 || s.span.key_count == 0) return;
    const MmaWarp<Block, kChunks> warp(block, layout);
    load_all(block, warp, s);
    block.sync();
    const int first = warp.warp() * kMmaRows;
    if (first < s.span.query_count) compute_d_q(block, warp, s, first);
    block.sync();
    if (first < s.span.key_count) compute_d_k_d_v(block, warp, s, first);
  }

 private:
  static constexpr int kRows = kBlocks * kMmaRows;
  enum Tile { kQ, kDOut, kK, kV };
  enum Weights { kDScore, kDroppedP };               // [kRows queries, kRows keys], rows kWeightElements apart
  static constexpr int kWeightElements = kRows + 8;  // an odd multiple of 16 bytes, as the rows of tiles

  static MmaLayout tiles() {
    MmaLayout l = {};
    l.warps = kBlocks;
    l.tile_rows = kRows;
    l.bytes = 4 * int64_t{kRows} * kMmaRowElements<kChunks> * static_cast<int64_t>(sizeof(bf16));
    return l;
  }

  TEARLESS_BODY HeadRows<const bf16> d_out(const SpanHead<bf16>& s) const {
    return s.query_rows(b.forward, b.d_out, b.forward.heads * b.forward.d_head, true);
  }
  /// Where the weight of a query and a key is.
  template <class Block>
  TEARLESS_BODY bf16* weight(Block& block, Weights which, int query, int key) const {
    return reinterpret_cast<bf16*>(block.shared() + layout.bytes) + (which * kRows + query) * kWeightElements + key;
  }

  /// All tiles, with zeros behind the last row and channel.
  template <class Block, class Warp>
  TEARLESS_BODY void load_all(Block& block, const Warp& warp, const SpanHead<bf16>& s) const {
    constexpr int kSize = kWideGroup<bf16>;
    constexpr int kGroups = kChunks * 16 / kSize;
    constexpr int kAtOnce = 2;  // loads of each matrix in flight
    const HeadRows<const bf16> rows[] = {s.q, d_out(s), s.k, s.v};
    const int longest = s.span.query_count > s.span.key_count ? s.span.query_count : s.span.key_count;
    const int all = (longest + kMmaRows - 1) / kMmaRows * kMmaRows * kGroups;
    TEARLESS_UNROLL_BY(1)
    for (int begin = block.thread(); begin < all; begin += kAtOnce * kThreads) {
      SixteenBytes<bf16> bytes[4][kAtOnce] = {};
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int e = begin + n * kThreads;
        const int i = e / kGroups, c = e % kGroups * kSize;
        TEARLESS_UNROLL
        for (int m = 0; m < 4; ++m) {
          if (i < rows[m].count && c < rows[m].d_head) bytes[m][n] = load_sixteen(rows[m].row(i) + c);
        }
      }
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int e = begin + n * kThreads;
        if (e >= all) break;
        TEARLESS_UNROLL
        for (int m = 0; m < 4; ++m) {
          store_sixteen(warp.tile(m) + e / kGroups * Warp::kRowElements + e % kGroups * kSize, bytes[m][n]);
        }
      }
    }
  }

  /// ∂q of the warp's queries, from `first` on, and their rows of both weights.
  template <class Block, class Warp>
  TEARLESS_BODY void compute_d_q(Block& block, const Warp& warp, const SpanHead<bf16>& s, int first) const {
    const Mask mask(b.forward.dropout);
    const float log2_scale = scale * kLog2OfE;
    const int end = s.visible_keys(first + kMmaRows);
    float logsumexp[2], dot[2] = {};  // of the lane's two rows; past the last query any finite number will do
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int query = first + warp.row(r);
      logsumexp[r] = query < s.span.query_count ? b.forward.saved[s.saved_at(b.forward, query)] * kLog2OfE : 0;
    }
    typename Warp::WarpRows q, d_out_rows;
    warp.load_warp_rows(kQ, first, q);
    warp.load_warp_rows(kDOut, first, d_out_rows);
    MmaFragment p[kBlocks] = {}, g[kBlocks] = {};
    TEARLESS_UNROLL
    for (int n = 0; n < kBlocks; ++n) {
      const int key = n * kMmaRows;
      if (key >= end) break;
      warp.dots(kK, key, q, p[n]);
      warp.dots(kV, key, d_out_rows, g[n]);
      MmaFragment keep;
      if (mask.active()) {
        uint32_t bits[2];
        warp.keep_bits(mask, s, first, key, bits);
        warp.dropout_factors(mask, bits, keep);
      } else {
        warp.no_dropout(keep);
      }
      for_fragment(warp.t(), [&](int j, int x, int r, int column) {
        const bool seen = key + column < end && s.sees(first + warp.row(r), key + column);
        p[n][j][x] = seen ? exp2f(p[n][j][x] * log2_scale - logsumexp[r]) : 0.0f;
        g[n][j][x] *= keep[j][x];
        dot[r] += p[n][j][x] * g[n][j][x];
        keep[j][x] *= p[n][j][x];
      });
      store_weights(block, warp, kDroppedP, first, key, keep);
    }
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) dot[r] = warp.row_sum(dot[r]);
    typename Warp::Accumulator d_q = {};
    TEARLESS_UNROLL
    for (int n = 0; n < kBlocks; ++n) {
      if (n * kMmaRows >= end) break;
      for_fragment(warp.t(), [&](int j, int x, int r, int) { p[n][j][x] *= g[n][j][x] - dot[r]; });
      store_weights(block, warp, kDScore, first, n * kMmaRows, p[n]);
      warp.add_weighted(kK, n * kMmaRows, p[n], d_q);
    }
    warp.add_to_rows(s.query_rows(b.forward, b.d_q, b.d_q_stride, true), first, scale, d_q, b.stored_rows > 0);
  }

  template <class Block, class Warp>
  TEARLESS_BODY void store_weights(Block& block, const Warp& warp, Weights which, int first, int key,
                                   const MmaFragment& fragment) const {
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      TEARLESS_UNROLL
      for (int j = 0; j < 2; ++j) {
        store_four_of(weight(block, which, first + warp.row(r), key + 8 * j + 2 * warp.t()), fragment[j][2 * r],
                      fragment[j][2 * r + 1]);
      }
    }
  }

  /// ∂k and ∂v of the warp's keys, from `first` on.
  template <class Block, class Warp>
  TEARLESS_BODY void compute_d_k_d_v(Block& block, const Warp& warp, const SpanHead<bf16>& s, int first) const {
    const int lane = block.lane();
    typename Warp::Accumulator d_k = {}, d_v = {};
    TEARLESS_UNROLL_BY(1)
    for (int at = s.first_seeing(first, 0, kMmaRows); at < s.span.query_count; at += kMmaRows) {
      // Transposed: a left operand has the warp's keys as rows.
      const int query = at + lane % 8 + lane / 16 * 8, key = first + lane / 8 % 2 * 8;
      uint32_t d_score[4], dropped_p[4];
      block.template load_matrices<true>(weight(block, kDScore, query, key), d_score);
      block.template load_matrices<true>(weight(block, kDroppedP, query, key), dropped_p);
      warp.add_weighted(kQ, at, d_score, d_k);
      warp.add_weighted(kDOut, at, dropped_p, d_v);
    }
    warp.add_to_rows(s.key_rows(b.forward, b.d_k, b.d_k_stride, true), first, scale, d_k, b.stores_keys);
    warp.add_to_rows(s.key_rows(b.forward, b.d_v, b.d_v_stride, true), first, 1.0f, d_v, b.stores_keys);
  }
};

/// Calls f with the number of blocks of 16 rows that spans of this length need (kBlocks).
template <class F>
void with_short_blocks(int64_t longest, F&& f) {
  longest <= kMaxShort / 2 ? f(std::integral_constant<int, 2>{}) : f(std::integral_constant<int, 4>{});
}

}  // namespace tearless::engine
