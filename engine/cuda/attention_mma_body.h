// bf16 attention on tensor cores (kernels.h: Attention), a block for each (span, head); what it cannot take goes to
// attention_body.h, where the formulas stand and which it follows walk by walk: the same masks, the same log-sums kept
// for backward, one owner of each gradient.
//
// A warp owns 16 rows of one side, in registers as the left operand of mma; the rows of the other side lie in shared
// memory as tiles. dots() multiplies the owned rows with 16 rows of a tile. Its result lies in registers just as the
// left operand of the next product wants it, so the weights made of it go into add_weighted() without a detour. Only
// there are they rounded to bf16; sums, maxima and exponentials are in float.
//
// Tiles have whole sixteens of rows and of channels, zeros behind the last: no row of another span is ever read. Scores
// are in units of log 2, for exp2f().
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <type_traits>

#include "engine/cuda/attention_body.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

inline constexpr int kMmaRows = 16;
inline constexpr int64_t kWidestMmaHead = 128;
inline constexpr float kLog2OfE = 1.44269504f;

/// One product of 16 rows with 16 others, as two accumulators of mma: [j][2 · r + i] is row g + 8 r, column 8 j + 2 t +
/// i (block.h).
using MmaSquare = float[2][4];

/// How many rows stand where; tiles come first in shared memory.
struct MmaLayout {
  static constexpr int kMostWarps = 4;
  static constexpr int kMostTileRows = 128;
  static constexpr int64_t kRoom = 96 << 10;
  int warps;          // no more than the longest side can give work
  int tile_rows;      // a multiple of 16
  int row_values_at;  // [2, row_values] float: log2 Σ e^score and Σ_j P_j G_j of every query (backward)
  int row_values;
  int64_t bytes;

  static MmaLayout of(const Attention<bf16>& a, int row_elements, bool backward) {
    const auto sixteens = [](int64_t rows) { return blocks_for(std::max<int64_t>(rows, 1), kMmaRows); };
    const int64_t of_queries = sixteens(a.longest_query), of_keys = sixteens(a.longest_key);
    const int64_t owned = backward ? std::max(of_queries, of_keys) : of_queries;
    const int64_t walked = backward ? std::max(of_queries, of_keys) : of_keys;
    MmaLayout l;
    l.warps = static_cast<int>(std::min<int64_t>(owned, kMostWarps));
    l.tile_rows = static_cast<int>(std::min<int64_t>(walked * kMmaRows, kMostTileRows));
    l.row_values_at = 2 * l.tile_rows * row_elements * static_cast<int>(sizeof(bf16));
    const int64_t row_values = backward ? of_queries * kMmaRows : 0;
    l.row_values = static_cast<int>(std::min<int64_t>(row_values, kRoom));
    l.bytes = l.row_values_at + 2 * 4 * row_values;
    return l;
  }
};

/// From row to row of a tile: an odd number of 16 bytes, so that ldmatrix meets no bank twice.
template <int kChunks>
inline constexpr int kMmaRowElements = kChunks * 16 + 8;

/// What all threads of a block know; kChunks: sixteens of channels.
template <class Block, int kChunks>
class MmaThread {
 public:
  static constexpr int kRowElements = kMmaRowElements<kChunks>;
  using Owned = uint32_t[kChunks][4];
  using Gathered = float[2 * kChunks][4];

  TEARLESS_BODY MmaThread(Block& block, const MmaLayout& layout) : block_(block), layout_(layout) {}

  /// The lane's row of its warp's sixteen (and the one 8 below), and its pair of eight columns.
  TEARLESS_BODY int row() const { return block_.lane() / 4; }
  TEARLESS_BODY int pair() const { return block_.lane() % 4; }

  /// Rows first … first + count - 1 into tile `side`, and zeros up to whole sixteens; all threads of the block take
  /// part. The caller synchronises.
  TEARLESS_BODY void load_tile(const HeadRows<const bf16>& rows, int first, int count, int side) const {
    constexpr int kSize = kWideGroup<bf16>;
    constexpr int kGroups = kChunks * 16 / kSize;
    constexpr int kAtOnce = 4;  // loads under way
    const int all = (count + kMmaRows - 1) / kMmaRows * kMmaRows * kGroups;
    for (int begin = block_.thread(); begin < all; begin += kAtOnce * block_.threads()) {
      SixteenBytes<bf16> bytes[kAtOnce] = {};
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int e = begin + n * block_.threads();
        const int c = e % kGroups * kSize;
        if (e / kGroups < count && c < rows.d_head) bytes[n] = load_sixteen(rows.row(first + e / kGroups) + c);
      }
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int e = begin + n * block_.threads();
        if (e < all) store_sixteen(tile(side) + e / kGroups * kRowElements + e % kGroups * kSize, bytes[n]);
      }
    }
  }

  /// The warp's rows first … first + 15; zeros behind the last row.
  TEARLESS_BODY void load_owned(const HeadRows<const bf16>& rows, int first, Owned& own) const {
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) {
        const int i = first + row() + x % 2 * 8;
        const int c = chunk * 16 + x / 2 * 8 + pair() * 2;
        own[chunk][x] = i < rows.count && c < rows.d_head ? load_packed<uint32_t>(rows.row(i) + c) : 0;
      }
    }
  }

  /// dot = owned rows · rows `first` … first + 15 of a tile.
  TEARLESS_BODY void dots(int side, int first, const Owned& own, MmaSquare& dot) const {
    const int lane = block_.lane();
    const bf16* from = tile(side) + (first + lane % 8 + lane / 16 * 8) * kRowElements + lane / 8 % 2 * 8;
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) dot[j][x] = 0;
    }
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      uint32_t other[4];
      block_.template load_matrices<false>(from + chunk * 16, other);
      block_.mma(own[chunk], other[0], other[1], dot[0]);
      block_.mma(own[chunk], other[2], other[3], dot[1]);
    }
  }

  /// sum += weight · rows `first` … first + 15 of a tile.
  TEARLESS_BODY void add_weighted(int side, int first, const MmaSquare& weight, Gathered& sum) const {
    const int lane = block_.lane();
    const bf16* from = tile(side) + (first + lane % 16) * kRowElements + lane / 16 * 8;
    const uint32_t left[4] = {bf16_pair_bits(weight[0][0], weight[0][1]), bf16_pair_bits(weight[0][2], weight[0][3]),
                              bf16_pair_bits(weight[1][0], weight[1][1]), bf16_pair_bits(weight[1][2], weight[1][3])};
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      uint32_t other[4];
      block_.template load_matrices<true>(from + chunk * 16, other);
      block_.mma(left, other[0], other[1], sum[2 * chunk]);
      block_.mma(left, other[2], other[3], sum[2 * chunk + 1]);
    }
  }

  /// The sum, or the largest, of a row's elements, which four lanes share.
  TEARLESS_BODY float row_sum(float x) const {
    x += block_.from_lane(x, block_.lane() ^ 1);
    return x + block_.from_lane(x, block_.lane() ^ 2);
  }
  TEARLESS_BODY float row_max(float x) const {
    x = fmaxf(x, block_.from_lane(x, block_.lane() ^ 1));
    return fmaxf(x, block_.from_lane(x, block_.lane() ^ 2));
  }

  /// Dropout of owned queries `first` … and keys `key` … key + 15, both multiples of 16. Of the two lanes that share
  /// four keys, each draws them for one of their two queries.
  TEARLESS_BODY void keep_of_keys(const Mask& mask, const SpanHead<bf16>& s, int first, int key,
                                  MmaSquare& keep) const {
    if (!mask.active()) return all_kept(keep);
    const int odd = pair() % 2;
    const uint32_t outer = s.outer(first + row() + odd * 8);
    uint32_t drawn = 0;
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      const uint32_t quarter = static_cast<uint32_t>(key / 4 + j * 2 + pair() / 2);
      drawn |= mask.kept_of_four(quarter, outer, static_cast<uint32_t>(s.span.line)) << 4 * j;
    }
    const uint32_t other = block_.from_lane(drawn, block_.lane() ^ 1);
    const uint32_t of_row[2] = {odd ? other : drawn, odd ? drawn : other};
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) keep[j][x] = of_row[x / 2] >> (4 * j + 2 * odd + x % 2) & 1 ? mask.scale() : 0.0f;
    }
  }
  /// The same of owned keys `first` … and queries `query` … query + 15. A lane draws the four keys and the queries that
  /// its number says, and others ask it.
  TEARLESS_BODY void keep_of_queries(const Mask& mask, const SpanHead<bf16>& s, int first, int query,
                                     MmaSquare& keep) const {
    if (!mask.active()) return all_kept(keep);
    uint32_t drawn = 0;
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      const uint32_t quarter = static_cast<uint32_t>(first / 4 + pair());
      drawn |= mask.kept_of_four(quarter, s.outer(query + j * 8 + row()), static_cast<uint32_t>(s.span.line)) << 4 * j;
    }
    TEARLESS_UNROLL
    for (int x = 0; x < 4; ++x) {
      const uint32_t asked = block_.from_lane(drawn, (2 * pair() + x % 2) * 4 + row() / 4 + x / 2 * 2);
      TEARLESS_UNROLL
      for (int j = 0; j < 2; ++j) keep[j][x] = asked >> (4 * j + row() % 4) & 1 ? mask.scale() : 0.0f;
    }
  }

  /// f(r, c, x) for the lane's row row() + 8 r and its four channels from c on. Lanes that share a row swap pairs
  /// first: what a row moves at once is whole 32 bytes.
  template <class F>
  TEARLESS_BODY void for_gathered(int d_head, const Gathered& sum, F&& f) const {
    const int odd = pair() % 2;
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk * 16 >= d_head) break;
      TEARLESS_UNROLL
      for (int r = 0; r < 2; ++r) {
        float mine[2], other[2];
        TEARLESS_UNROLL
        for (int i = 0; i < 2; ++i) {
          const float near = sum[2 * chunk][2 * r + i], far = sum[2 * chunk + 1][2 * r + i];
          mine[i] = odd ? far : near;
          other[i] = block_.from_lane(odd ? near : far, block_.lane() ^ 1);
        }
        const float x[4] = {odd ? other[0] : mine[0], odd ? other[1] : mine[1], odd ? mine[0] : other[0],
                            odd ? mine[1] : other[1]};
        f(r, chunk * 16 + odd * 8 + pair() / 2 * 4, x);
      }
    }
  }

 private:
  TEARLESS_BODY static void all_kept(MmaSquare& keep) {
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) keep[j][x] = 1.0f;
    }
  }
  TEARLESS_BODY bf16* tile(int side) const {
    return reinterpret_cast<bf16*>(block_.shared()) + side * layout_.tile_rows * kRowElements;
  }

  Block& block_;
  const MmaLayout& layout_;
};

/// Whether four channels of every row lie on 8 bytes.
inline bool lies_on_eight_bytes(const bf16* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % 8 == 0 && stride % 4 == 0;
}

/// Four neighbours of a row that is written. `whole`: they lie on 8 bytes.
TEARLESS_BODY void store_channels(bf16* to, bool whole, const float (&x)[4]) {
  if (whole) {
    store_eight_of(to, x);
  } else {
    TEARLESS_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = static_cast<bf16>(x[i]);
  }
}
/// to += scale · x.
TEARLESS_BODY void add_channels(bf16* to, bool whole, float scale, const float (&x)[4]) {
  Packed<bf16, 4> old;
  if (whole) {
    old = load_packed<Packed<bf16, 4>>(to);
  } else {
    TEARLESS_UNROLL
    for (int i = 0; i < 4; ++i) old.at[i] = to[i];
  }
  float sum[4];
  TEARLESS_UNROLL
  for (int i = 0; i < 4; ++i) sum[i] = static_cast<float>(old.at[i]) + scale * x[i];
  store_channels(to, whole, sum);
}

template <int kChunks>
struct MmaAttentionForward {
  static constexpr const char* kName = "attention_mma";
  static constexpr int kThreads = MmaLayout::kMostWarps * kLanes;
  static constexpr int kBlocksAtOnce = kChunks <= 4 ? 4 : 2;
  Attention<bf16> a;
  MmaLayout layout;
  bool whole_out;

  Shape shape() const { return {a.span_count * a.heads, layout.warps * kLanes, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    using Thread = MmaThread<Block, kChunks>;
    const SpanHead<bf16> s(a, block.index(), true);
    const int queries = s.span.query_count, keys = s.span.key_count;
    const Thread thread(block, layout);
    const Mask mask(a.dropout);
    const HeadRows<bf16> out = s.rows(a, a.out, a.heads * a.d_head, s.span.query_begin, queries, true);
    const int round_rows = block.warps() * kMmaRows;
    const bool one_tile = keys <= layout.tile_rows;

    // Warps stay together from round to round, one without queries too: tiles are loaded by all.
    for (int round = 0; round < queries; round += round_rows) {
      const int first = round + block.warp() * kMmaRows;
      typename Thread::Owned q;
      thread.load_owned(s.q, first, q);
      float largest[2] = {-FLT_MAX, -FLT_MAX}, sum[2] = {};
      typename Thread::Gathered gathered = {};
      const int seen_by_round = a.causal && round + round_rows < keys ? round + round_rows : keys;
      const int seen_by_warp = a.causal && first + kMmaRows < keys ? first + kMmaRows : keys;
      for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
        const int in_tile = keys - begin < layout.tile_rows ? keys - begin : layout.tile_rows;
        if (!one_tile || round == 0) {
          block.sync();
          thread.load_tile(s.k, begin, in_tile, 0);
          thread.load_tile(s.v, begin, in_tile, 1);
          block.sync();
        }
        if (first >= queries) continue;
        const int end = seen_by_warp - begin < in_tile ? seen_by_warp - begin : in_tile;
        for (int key = 0; key < end; key += kStep * kMmaRows) {
          step(thread, s, mask, q, first, begin, key, end, largest, sum, gathered);
        }
      }
      if (first >= queries) continue;
      float inverse[2];
      TEARLESS_UNROLL
      for (int r = 0; r < 2; ++r) {
        const float total = thread.row_sum(sum[r]);
        inverse[r] = keys > 0 ? 1.0f / total : 0.0f;
        const int query = first + thread.row() + 8 * r;
        if (a.kept && thread.pair() == 0 && query < queries) {
          a.kept[static_cast<int64_t>(s.span.query_begin + query) * a.heads + s.head] =
              largest[r] / kLog2OfE + logf(total);
        }
      }
      thread.for_gathered(static_cast<int>(a.d_head), gathered, [&](int r, int c, const float(&x)[4]) {
        const int query = first + thread.row() + 8 * r;
        if (query >= queries) return;
        const float scaled[4] = {x[0] * inverse[r], x[1] * inverse[r], x[2] * inverse[r], x[3] * inverse[r]};
        store_channels(out.row(query) + c, whole_out, scaled);
      });
    }
  }

 private:
  static constexpr int kStep = 2;  // sixteens of keys between two looks at the maximum

  /// The warp's queries and the keys `key` … of the tile: scores, the online softmax, and what the values add.
  template <class Thread>
  TEARLESS_BODY void step(const Thread& thread, const SpanHead<bf16>& s, const Mask& mask,
                          const typename Thread::Owned& q, int first, int begin, int key, int end, float (&largest)[2],
                          float (&sum)[2], typename Thread::Gathered& gathered) const {
    const float scale = kLog2OfE / sqrtf(static_cast<float>(a.d_head));
    MmaSquare score[kStep] = {};
    float top[2] = {-FLT_MAX, -FLT_MAX};
    TEARLESS_UNROLL
    for (int n = 0; n < kStep; ++n) {
      const int at = key + n * kMmaRows;
      if (at < end) thread.dots(0, at, q, score[n]);
      TEARLESS_UNROLL
      for (int j = 0; j < 2; ++j) {
        TEARLESS_UNROLL
        for (int x = 0; x < 4; ++x) {
          const int column = at + 8 * j + 2 * thread.pair() + x % 2;
          const bool seen = column < end && !(a.causal && begin + column > first + thread.row() + x / 2 * 8);
          score[n][j][x] = seen ? score[n][j][x] * scale : -INFINITY;
          top[x / 2] = fmaxf(top[x / 2], score[n][j][x]);
        }
      }
    }
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float now = fmaxf(largest[r], thread.row_max(top[r]));
      const float fade = exp2f(largest[r] - now);
      largest[r] = now;
      sum[r] *= fade;
      TEARLESS_UNROLL
      for (int n = 0; n < 2 * kChunks; ++n) {
        gathered[n][2 * r] *= fade;
        gathered[n][2 * r + 1] *= fade;
      }
    }
    TEARLESS_UNROLL
    for (int n = 0; n < kStep; ++n) {
      const int at = key + n * kMmaRows;
      if (at >= end) break;
      MmaSquare weight;
      thread.keep_of_keys(mask, s, first, begin + at, weight);
      TEARLESS_UNROLL
      for (int j = 0; j < 2; ++j) {
        TEARLESS_UNROLL
        for (int x = 0; x < 4; ++x) {
          const float e = exp2f(score[n][j][x] - largest[x / 2]);
          sum[x / 2] += e;
          weight[j][x] *= e;
        }
      }
      thread.add_weighted(1, at, weight, gathered);
    }
  }
};

template <int kChunks>
struct MmaAttentionGradients {
  static constexpr const char* kName = "attention_mma_backward";
  static constexpr int kThreads = MmaLayout::kMostWarps * kLanes;
  static constexpr int kBlocksAtOnce = kChunks <= 4 ? 3 : 2;
  AttentionBackward<bf16> b;
  MmaLayout layout;
  bool whole_d_q, whole_d_k, whole_d_v;

  Shape shape() const { return {b.forward.span_count * b.forward.heads, layout.warps * kLanes, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<bf16> s(b.forward, block.index(), true);
    if (s.span.query_count == 0 || s.span.key_count == 0) return;
    const MmaThread<Block, kChunks> thread(block, layout);
    const Mask mask(b.forward.dropout);
    // Whole sixteens of queries; of those behind the last any number will do.
    for (int i = block.thread(); i < layout.row_values; i += block.threads()) {
      const int64_t row = s.span.query_begin + i;
      row_values(block, 0)[i] = i < s.span.query_count ? b.forward.kept[row * b.forward.heads + s.head] * kLog2OfE : 0;
    }
    of_queries(block, thread, s, mask);
    of_keys(block, thread, s, mask);  // its first step is to meet at a barrier
  }

 private:
  /// Sixteens of keys whose probabilities stay in registers until Σ_j P_j G_j is known.
  static constexpr int kHeld = 4;

  TEARLESS_BODY HeadRows<const bf16> d_out(const SpanHead<bf16>& s) const {
    const Attention<bf16>& a = b.forward;
    return s.rows(a, b.d_out, a.heads * a.d_head, s.span.query_begin, s.span.query_count, true);
  }
  TEARLESS_BODY float scale() const { return 1.0f / sqrtf(static_cast<float>(b.forward.d_head)); }
  template <class Block>
  TEARLESS_BODY float* row_values(Block& block, int which) const {
    return reinterpret_cast<float*>(block.shared() + layout.row_values_at) + which * layout.row_values;
  }

  /// ∂q, and Σ_j P_j G_j of every query for of_keys(). Queries that see more keys than are held are walked twice: for
  /// that sum, and then for ∂q.
  template <class Block, class Thread>
  TEARLESS_BODY void of_queries(Block& block, const Thread& thread, const SpanHead<bf16>& s, const Mask& mask) const {
    const Attention<bf16>& a = b.forward;
    const int queries = s.span.query_count, keys = s.span.key_count;
    const HeadRows<bf16> d_q = s.rows(a, b.d_q, b.d_q_stride, s.span.query_begin, queries, true);
    const float score_scale = scale() * kLog2OfE;
    const int round_rows = block.warps() * kMmaRows;
    const bool one_tile = keys <= layout.tile_rows;
    const int first_pass = keys <= kHeld * kMmaRows ? 1 : 0;
    for (int round = 0; round < queries; round += round_rows) {
      const int first = round + block.warp() * kMmaRows;
      typename Thread::Owned q, d;
      thread.load_owned(s.q, first, q);
      thread.load_owned(d_out(s), first, d);
      float mean[2] = {};
      typename Thread::Gathered gathered = {};
      const int seen_by_round = a.causal && round + round_rows < keys ? round + round_rows : keys;
      const int seen_by_warp = a.causal && first + kMmaRows < keys ? first + kMmaRows : keys;
      for (int pass = first_pass; pass < 2; ++pass) {
        for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
          const int in_tile = keys - begin < layout.tile_rows ? keys - begin : layout.tile_rows;
          if (!one_tile || (round == 0 && pass == first_pass)) {
            block.sync();
            thread.load_tile(s.k, begin, in_tile, 0);
            thread.load_tile(s.v, begin, in_tile, 1);
            block.sync();
          }
          if (first >= queries) continue;
          const int end = seen_by_warp - begin < in_tile ? seen_by_warp - begin : in_tile;
          float log_sums[2];
          TEARLESS_UNROLL
          for (int r = 0; r < 2; ++r) log_sums[r] = row_values(block, 0)[first + thread.row() + 8 * r];
          for (int window = 0; window < end; window += kHeld * kMmaRows) {
            MmaSquare p[kHeld], g[kHeld];
            float along[2] = {};
            TEARLESS_UNROLL
            for (int n = 0; n < kHeld; ++n) {
              const int at = window + n * kMmaRows;
              if (at >= end) break;
              thread.dots(0, at, q, p[n]);
              thread.dots(1, at, d, g[n]);
              MmaSquare keep;
              thread.keep_of_keys(mask, s, first, begin + at, keep);
              TEARLESS_UNROLL
              for (int j = 0; j < 2; ++j) {
                TEARLESS_UNROLL
                for (int x = 0; x < 4; ++x) {
                  const int column = at + 8 * j + 2 * thread.pair() + x % 2;
                  const bool seen = column < end && !(a.causal && begin + column > first + thread.row() + x / 2 * 8);
                  p[n][j][x] = seen ? exp2f(p[n][j][x] * score_scale - log_sums[x / 2]) : 0.0f;
                  g[n][j][x] *= keep[j][x];
                  along[x / 2] += p[n][j][x] * g[n][j][x];
                }
              }
            }
            if (pass == first_pass) {
              TEARLESS_UNROLL
              for (int r = 0; r < 2; ++r) mean[r] += thread.row_sum(along[r]);
            }
            if (pass == 0) continue;
            TEARLESS_UNROLL
            for (int n = 0; n < kHeld; ++n) {
              const int at = window + n * kMmaRows;
              if (at >= end) break;
              TEARLESS_UNROLL
              for (int j = 0; j < 2; ++j) {
                TEARLESS_UNROLL
                for (int x = 0; x < 4; ++x) p[n][j][x] *= g[n][j][x] - mean[x / 2];
              }
              thread.add_weighted(0, at, p[n], gathered);
            }
          }
        }
      }
      if (first >= queries) continue;
      TEARLESS_UNROLL
      for (int r = 0; r < 2; ++r) {
        if (thread.pair() == 0) row_values(block, 1)[first + thread.row() + 8 * r] = mean[r];
      }
      thread.for_gathered(static_cast<int>(a.d_head), gathered, [&](int r, int c, const float(&x)[4]) {
        const int query = first + thread.row() + 8 * r;
        if (query < queries) add_channels(d_q.row(query) + c, whole_d_q, scale(), x);
      });
    }
  }

  /// ∂k and ∂v.
  template <class Block, class Thread>
  TEARLESS_BODY void of_keys(Block& block, const Thread& thread, const SpanHead<bf16>& s, const Mask& mask) const {
    const Attention<bf16>& a = b.forward;
    const int queries = s.span.query_count, keys = s.span.key_count;
    const HeadRows<bf16> d_k = s.rows(a, b.d_k, b.d_k_stride, s.span.key_begin, keys, true);
    const HeadRows<bf16> d_v = s.rows(a, b.d_v, b.d_v_stride, s.span.key_begin, keys, true);
    const float score_scale = scale() * kLog2OfE;
    const int round_rows = block.warps() * kMmaRows;
    const bool one_tile = queries <= layout.tile_rows;
    for (int round = 0; round < keys; round += round_rows) {
      const int first = round + block.warp() * kMmaRows;
      typename Thread::Owned k, v;
      thread.load_owned(s.k, first, k);
      thread.load_owned(s.v, first, v);
      typename Thread::Gathered of_k = {}, of_v = {};
      // Causal: the queries before the round's first key do not see it.
      const int unseen = a.causal ? round / layout.tile_rows * layout.tile_rows : 0;
      for (int begin = unseen; begin < queries; begin += layout.tile_rows) {
        const int in_tile = queries - begin < layout.tile_rows ? queries - begin : layout.tile_rows;
        if (!one_tile || round == 0) {
          block.sync();
          thread.load_tile(s.q, begin, in_tile, 0);
          thread.load_tile(d_out(s), begin, in_tile, 1);
          block.sync();
        }
        if (first >= keys) continue;
        for (int at = a.causal && first > begin ? first - begin : 0; at < in_tile; at += kMmaRows) {
          MmaSquare p, g, keep;
          thread.dots(0, at, k, p);
          thread.dots(1, at, v, g);
          thread.keep_of_queries(mask, s, first, begin + at, keep);
          TEARLESS_UNROLL
          for (int j = 0; j < 2; ++j) {
            TEARLESS_UNROLL
            for (int x = 0; x < 4; ++x) {
              const int query = begin + at + 8 * j + 2 * thread.pair() + x % 2;
              const int key = first + thread.row() + x / 2 * 8;
              const bool seen = query < queries && key < keys && !(a.causal && key > query);
              const float probability = seen ? exp2f(p[j][x] * score_scale - row_values(block, 0)[query]) : 0.0f;
              p[j][x] = seen ? probability * (keep[j][x] * g[j][x] - row_values(block, 1)[query]) : 0.0f;
              keep[j][x] *= probability;
            }
          }
          thread.add_weighted(0, at, p, of_k);
          thread.add_weighted(1, at, keep, of_v);
        }
      }
      if (first >= keys) continue;
      const int d_head = static_cast<int>(a.d_head);
      thread.for_gathered(d_head, of_k, [&](int r, int c, const float(&x)[4]) {
        const int key = first + thread.row() + 8 * r;
        if (key < keys) add_channels(d_k.row(key) + c, whole_d_k, scale(), x);
      });
      thread.for_gathered(d_head, of_v, [&](int r, int c, const float(&x)[4]) {
        const int key = first + thread.row() + 8 * r;
        if (key < keys) add_channels(d_v.row(key) + c, whole_d_v, 1.0f, x);
      });
    }
  }
};

inline bool mma_takes(const Attention<bf16>& a) {
  return a.d_head % 16 == 0 && a.d_head <= kWidestMmaHead && !a.key_rows && heads_are_aligned(a);
}

/// Calls f with the sixteens of channels that the kernel is made for, as a type.
template <class F>
auto with_mma_chunks(int64_t d_head, F&& f) {
  if (d_head <= 32) return f(std::integral_constant<int, 2>{});
  if (d_head <= 64) return f(std::integral_constant<int, 4>{});
  return f(std::integral_constant<int, static_cast<int>(kWidestMmaHead) / 16>{});
}

/// False where tensor cores cannot take it; then nothing is launched.
template <class Runner>
bool launch_by_mma(const Attention<bf16>& a, Runner& runner) {
  if (!mma_takes(a)) return false;
  return with_mma_chunks(a.d_head, [&](auto chunks) {
    const MmaLayout layout = MmaLayout::of(a, kMmaRowElements<chunks.value>, /*backward=*/false);
    if (layout.bytes > MmaLayout::kRoom) return false;
    runner.run(MmaAttentionForward<chunks.value>{a, layout, lies_on_eight_bytes(a.out, a.heads * a.d_head)});
    return true;
  });
}
template <class Runner>
bool launch_by_mma(const AttentionBackward<bf16>& b, Runner& runner) {
  const Attention<bf16>& a = b.forward;
  if (!mma_takes(a) || !is_aligned(b.d_out, a.heads * a.d_head)) return false;
  return with_mma_chunks(a.d_head, [&](auto chunks) {
    const MmaLayout layout = MmaLayout::of(a, kMmaRowElements<chunks.value>, /*backward=*/true);
    if (layout.bytes > MmaLayout::kRoom) return false;
    runner.run(MmaAttentionGradients<chunks.value>{b, layout, lies_on_eight_bytes(b.d_q, b.d_q_stride),
                                                   lies_on_eight_bytes(b.d_k, b.d_k_stride),
                                                   lies_on_eight_bytes(b.d_v, b.d_v_stride)});
    return true;
  });
}

/// Attention<T> or AttentionBackward<T>.
template <template <class> class Call, class T, class Runner>
requires std::is_same_v<Call<T>, Attention<T>> || std::is_same_v<Call<T>, AttentionBackward<T>>
void launch(const Call<T>& call, Runner& runner) {
  if constexpr (std::is_same_v<T, bf16>) {
    if (launch_by_mma(call, runner)) return;
  }
  launch_by_dots(call, runner);
}

}  // namespace tearless::engine
