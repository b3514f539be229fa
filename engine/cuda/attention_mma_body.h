// bf16 attention on tensor cores (kernels.h: Attention), one block per (span, head). Shapes that it does not support
// run by attention_body.h, which has the equations and the same structure: the same loops and dropout masks, the same
// values saved for backward, and one warp for each row of a gradient.
//
// A warp takes 16 rows of one side ("the warp's rows"), held in registers as the left operand (a) of mma. The rows of
// the other side are loaded into shared memory tile by tile. dots() multiplies the warp's rows with 16 rows of a tile;
// the result is a 16 × 16 score fragment (MmaFragment). Its register layout is that of a left operand, so the weights
// computed from it go straight into add_weighted(). There they are rounded to bf16; maxima, sums and exponentials are
// in float.
//
// Tiles are padded with zeros to a multiple of 16 rows and 16 channels, so rows of another span are never read. Scores
// are multiplied by log2 e, so that exp2f() gives the exponential.
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

/// A 16 × 16 score fragment, as two mma accumulators. With g = lane / 4, t = lane % 4 (block.h), the lane's element
/// [j][2 · r + i] is row g + 8 r, column 8 j + 2 t + i.
using MmaFragment = float[2][4];

/// The number of warps and the layout of shared memory: two tiles, then the arrays below at their offsets in bytes.
struct MmaLayout {
  static constexpr int kMostWarps = 4;
  static constexpr int kMostTileRows = 128;
  static constexpr int64_t kSharedBytes = 96 << 10;  // as in AttentionLayout
  int warps;                                         // no more than there are blocks of 16 rows
  int tile_rows;                                     // a multiple of 16
  int row_values_at;  // [2, row_values] float: log2 Σ e^score and Σ_j P_j G_j of every query (backward)
  int row_values;     // max_query_length rounded up to a multiple of 16
  int kept_at;        // [row_values, key_blocks] uint16_t: dropout bits, from of_queries() to of_keys() (backward)
  int key_blocks;     // blocks of 16 keys
  int64_t bytes;      // in total

  /// Fills in the layout; false where shared memory is too small.
  static bool of(const Attention<bf16>& a, int row_elements, bool backward, MmaLayout& l) {
    const auto blocks_of_16 = [](int64_t rows) { return blocks_for(std::max<int64_t>(rows, 1), kMmaRows); };
    const int64_t of_queries = blocks_of_16(a.max_query_length), of_keys = blocks_of_16(a.max_key_length);
    const int64_t owned = backward ? std::max(of_queries, of_keys) : of_queries;
    const int64_t streamed = backward ? std::max(of_queries, of_keys) : of_keys;
    const int64_t row_values = backward ? of_queries * kMmaRows : 0;
    const int64_t kept = backward && a.dropout.active() ? of_queries * kMmaRows * of_keys * 2 : 0;
    const int64_t of_tile_row = 2 * row_elements * static_cast<int64_t>(sizeof(bf16));
    const int64_t left = kSharedBytes - 2 * 4 * row_values - kept;
    if (left < kMmaRows * of_tile_row) return false;
    l.warps = static_cast<int>(std::min<int64_t>(owned, kMostWarps));
    l.tile_rows = static_cast<int>(
        std::min<int64_t>({streamed * kMmaRows, kMostTileRows, left / of_tile_row / kMmaRows * kMmaRows}));
    l.row_values_at = static_cast<int>(l.tile_rows * of_tile_row);
    l.row_values = static_cast<int>(row_values);
    l.kept_at = l.row_values_at + 2 * 4 * l.row_values;
    l.key_blocks = static_cast<int>(of_keys);
    l.bytes = l.kept_at + kept;
    return true;
  }
};

/// Row stride of a tile, in elements: an odd multiple of 16 bytes, so that ldmatrix has no bank conflicts.
template <int kChunks>
inline constexpr int kMmaRowElements = kChunks * 16 + 8;

/// The operations that forward and backward share, for one thread. kChunks: blocks of 16 channels.
template <class Block, int kChunks>
class MmaThread {
 public:
  static constexpr int kRowElements = kMmaRowElements<kChunks>;
  using WarpRows = uint32_t[kChunks][4];
  using Accumulator = float[2 * kChunks][4];

  TEARLESS_BODY MmaThread(Block& block, const MmaLayout& layout)
      : block_(block), layout_(layout), warp_(block.from_lane(block.warp(), 0)) {}

  /// The warp's number, broadcast from lane 0 so that the compiler knows it to be the same in all lanes.
  TEARLESS_BODY int warp() const { return warp_; }

  /// In a fragment the lane has rows row() and row() + 8, and columns 2 · pair() and 2 · pair() + 1 of each block of 8.
  TEARLESS_BODY int row() const { return block_.lane() / 4; }
  TEARLESS_BODY int pair() const { return block_.lane() % 4; }

  /// Loads rows first … first + count - 1 of two matrices into the two tiles, and zeros up to a multiple of 16 rows.
  /// All threads of the block must call: it has a block barrier at its start and at its end.
  TEARLESS_BODY void load_tiles(const HeadRows<const bf16>& of_first, const HeadRows<const bf16>& of_second, int first,
                                int count) const {
    constexpr int kSize = kWideGroup<bf16>;
    constexpr int kGroups = kChunks * 16 / kSize;
    constexpr int kAtOnce = 2;  // loads of each matrix in flight
    block_.sync();
    const int all = (count + kMmaRows - 1) / kMmaRows * kMmaRows * kGroups;
    TEARLESS_UNROLL_BY(1)
    for (int begin = block_.thread(); begin < all; begin += kAtOnce * block_.threads()) {
      SixteenBytes<bf16> bytes[2][kAtOnce] = {};
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int e = begin + n * block_.threads();
        const int i = e / kGroups, c = e % kGroups * kSize;
        if (i >= count || c >= of_first.d_head) continue;
        bytes[0][n] = load_sixteen(of_first.row(first + i) + c);
        bytes[1][n] = load_sixteen(of_second.row(first + i) + c);
      }
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int e = begin + n * block_.threads();
        if (e >= all) break;
        const int to = e / kGroups * kRowElements + e % kGroups * kSize;
        store_sixteen(tile(0) + to, bytes[0][n]);
        store_sixteen(tile(1) + to, bytes[1][n]);
      }
    }
    block_.sync();
  }

  /// Loads the warp's rows first … first + 15 into registers; zeros past the last row.
  TEARLESS_BODY void load_warp_rows(const HeadRows<const bf16>& rows, int first, WarpRows& own) const {
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int i = first + row() + 8 * r;
      const bf16* const at = rows.row(i) + 2 * pair();
      TEARLESS_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const bool there = i < rows.count && chunk * 16 < rows.d_head;
        own[chunk][r] = there ? load_packed<uint32_t>(at + chunk * 16) : 0;
        own[chunk][r + 2] = there ? load_packed<uint32_t>(at + chunk * 16 + 8) : 0;
      }
    }
  }

  /// dot = the warp's rows · (rows first … first + 15 of tile `side`)ᵀ.
  TEARLESS_BODY void dots(int side, int first, const WarpRows& own, MmaFragment& dot) const {
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

  /// sum += weight · rows first … first + 15 of tile `side`.
  TEARLESS_BODY void add_weighted(int side, int first, const MmaFragment& weight, Accumulator& sum) const {
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

  /// The sum, or the maximum, of a row's elements over the four lanes that hold it.
  TEARLESS_BODY float row_sum(float x) const {
    x += block_.from_lane(x, block_.lane() ^ 1);
    return x + block_.from_lane(x, block_.lane() ^ 2);
  }
  TEARLESS_BODY float row_max(float x) const {
    x = fmaxf(x, block_.from_lane(x, block_.lane() ^ 1));
    return fmaxf(x, block_.from_lane(x, block_.lane() ^ 2));
  }

  /// The dropout bits of the warp's queries from `first` on and of keys key … key + 15, both multiples of 16: bit j of
  /// of_row[r] is 1 where key + j is kept for query row row() + 8 r. Of the four lanes that share two rows, each draws
  /// half the keys of one row.
  TEARLESS_BODY void draw(const Mask& mask, const SpanHead<bf16>& s, int first, int key, uint32_t (&of_row)[2]) const {
    const int odd = pair() % 2, half = pair() / 2;
    const uint32_t outer = s.outer(first + row() + odd * 8);
    uint32_t drawn = 0;
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      const uint32_t quarter = static_cast<uint32_t>(key / 4 + j * 2 + half);
      drawn |= mask.kept_of_four(quarter, outer, static_cast<uint32_t>(s.span.sentence_id)) << (8 * j + 4 * half);
    }
    drawn |= block_.from_lane(drawn, block_.lane() ^ 2);
    const uint32_t other = block_.from_lane(drawn, block_.lane() ^ 1);
    of_row[0] = odd ? other : drawn;
    of_row[1] = odd ? drawn : other;
  }
  /// The multipliers (0 or scale) of these bits.
  TEARLESS_BODY void keep_by_rows(const Mask& mask, const uint32_t (&of_row)[2], MmaFragment& keep) const {
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) {
        keep[j][x] = of_row[x / 2] >> (8 * j + 2 * pair() + x % 2) & 1 ? mask.scale() : 0.0f;
      }
    }
  }

  /// Row first + row() + 8 r of `to`, if it exists, = factor[r] · sum. Changes `sum`.
  TEARLESS_BODY void store_rows(const HeadRows<bf16>& to, int first, const float (&factor)[2], Accumulator& sum) const {
    swap_pairs(sum);
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int i = first + row() + 8 * r;
      if (i >= to.count) continue;
      bf16* const at = to.row(i);
      TEARLESS_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        if (chunk * 16 >= to.d_head) break;
        float x[4];
        TEARLESS_UNROLL
        for (int k = 0; k < 4; ++k) x[k] = factor[r] * sum[2 * chunk + k / 2][2 * r + k % 2];
        store_eight_of(at + channel(chunk), x);
      }
    }
  }
  /// The same rows += factor · sum. Changes `sum`.
  TEARLESS_BODY void add_to_rows(const HeadRows<bf16>& to, int first, float factor, Accumulator& sum) const {
    swap_pairs(sum);
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int i = first + row() + 8 * r;
      if (i >= to.count) continue;
      bf16* const at = to.row(i);
      Packed<bf16, 4> old[kChunks] = {};  // all loads in flight before the first store
      TEARLESS_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        if (chunk * 16 < to.d_head) old[chunk] = load_packed<Packed<bf16, 4>>(at + channel(chunk));
      }
      TEARLESS_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        if (chunk * 16 >= to.d_head) break;
        float x[4];
        TEARLESS_UNROLL
        for (int k = 0; k < 4; ++k) {
          x[k] = static_cast<float>(old[chunk].at[k]) + factor * sum[2 * chunk + k / 2][2 * r + k % 2];
        }
        store_eight_of(at + channel(chunk), x);
      }
    }
  }

 private:
  /// Exchanges channels between neighbouring lanes: instead of 2 channels in each of the two blocks of 8 a lane then
  /// has 4 consecutive channels of one, so that the four lanes of a row store 32 contiguous bytes. Those of row r are
  /// sum[2 · chunk][2 r], [2 r + 1], sum[2 · chunk + 1][2 r], [2 r + 1], from channel(chunk) on.
  TEARLESS_BODY void swap_pairs(Accumulator& sum) const {
    const bool odd = pair() % 2 != 0;
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) {
        float& near = sum[2 * chunk][x];
        float& far = sum[2 * chunk + 1][x];
        const float other = block_.from_lane(odd ? near : far, block_.lane() ^ 1);
        if (odd) {
          near = other;
        } else {
          far = other;
        }
      }
    }
  }
  TEARLESS_BODY int channel(int chunk) const { return chunk * 16 + pair() % 2 * 8 + pair() / 2 * 4; }

  TEARLESS_BODY bf16* tile(int side) const {
    return reinterpret_cast<bf16*>(block_.shared()) + side * layout_.tile_rows * kRowElements;
  }

  Block& block_;
  const MmaLayout& layout_;
  int warp_;
};

/// keep = 1, for no dropout.
TEARLESS_BODY void keep_all(MmaFragment& keep) {
  TEARLESS_UNROLL
  for (int j = 0; j < 2; ++j) {
    TEARLESS_UNROLL
    for (int x = 0; x < 4; ++x) keep[j][x] = 1.0f;
  }
}

template <int kChunks>
struct MmaAttentionForward {
  static constexpr const char* kName = "attention_mma";
  static constexpr int kThreads = MmaLayout::kMostWarps * kLanes;
  static constexpr int kBlocksAtOnce = kChunks <= 4 ? 4 : 2;  // resident blocks per SM
  Attention<bf16> a;
  MmaLayout layout;
  float scale;  // 1 / √d_head

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

    // In each round a block takes round_rows queries. Every warp goes through all rounds and tiles, even without
    // queries, because all threads load the tiles.
    for (int round = 0; round < queries; round += round_rows) {
      const int first = round + thread.warp() * kMmaRows;
      typename Thread::WarpRows q;
      thread.load_warp_rows(s.q, first, q);
      block.warp_sync();  // mma requires the warp to be converged
      float largest[2] = {-FLT_MAX, -FLT_MAX}, sum[2] = {};
      typename Thread::Accumulator accumulator = {};
      const int seen_by_round = a.causal && round + round_rows < keys ? round + round_rows : keys;
      const int seen_by_warp = a.causal && first + kMmaRows < keys ? first + kMmaRows : keys;
      for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
        const int in_tile = keys - begin < layout.tile_rows ? keys - begin : layout.tile_rows;
        if (!one_tile || round == 0) {
          thread.load_tiles(s.k, s.v, begin, in_tile);
        }
        if (first >= queries) continue;
        const int end = seen_by_warp - begin < in_tile ? seen_by_warp - begin : in_tile;
        int key = 0;
        for (; key + kMmaRows < end; key += 2 * kMmaRows) {
          step<2>(thread, s, mask, q, first, begin, key, end, largest, sum, accumulator);
        }
        if (key < end) step<1>(thread, s, mask, q, first, begin, key, end, largest, sum, accumulator);
      }
      if (first >= queries) continue;
      float inverse[2];
      TEARLESS_UNROLL
      for (int r = 0; r < 2; ++r) {
        const float total = thread.row_sum(sum[r]);
        inverse[r] = keys > 0 ? 1.0f / total : 0.0f;
        const int query = first + thread.row() + 8 * r;
        if (a.saved && thread.pair() == 0 && query < queries) {
          a.saved[static_cast<int64_t>(s.span.query_begin + query) * a.heads + s.head] =
              largest[r] / kLog2OfE + logf(total);
        }
      }
      thread.store_rows(out, first, inverse, accumulator);
    }
  }

 private:
  /// The warp's queries and kFragments blocks of 16 keys of the tile, from its row `key` on: scores, online softmax,
  /// and Σ weight · value. `begin`: the tile's first key; `end`: rows of the tile to use; largest, sum: running maximum
  /// and the lane's part of the running sum of its two rows.
  template <int kFragments, class Thread>
  TEARLESS_BODY void step(const Thread& thread, const SpanHead<bf16>& s, const Mask& mask,
                          const typename Thread::WarpRows& q, int first, int begin, int key, int end,
                          float (&largest)[2], float (&sum)[2], typename Thread::Accumulator& accumulator) const {
    const float score_scale = scale * kLog2OfE;
    MmaFragment score[kFragments];
    float top[2] = {-FLT_MAX, -FLT_MAX};
    TEARLESS_UNROLL
    for (int n = 0; n < kFragments; ++n) {
      const int at = key + n * kMmaRows;
      thread.dots(0, at, q, score[n]);
      TEARLESS_UNROLL
      for (int j = 0; j < 2; ++j) {
        TEARLESS_UNROLL
        for (int x = 0; x < 4; ++x) {
          const int column = at + 8 * j + 2 * thread.pair() + x % 2;
          const bool seen = column < end && !(a.causal && begin + column > first + thread.row() + x / 2 * 8);
          score[n][j][x] = seen ? score[n][j][x] * score_scale : -INFINITY;
          top[x / 2] = fmaxf(top[x / 2], score[n][j][x]);
        }
      }
    }
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float now = fmaxf(largest[r], thread.row_max(top[r]));
      const float rescale = exp2f(largest[r] - now);
      largest[r] = now;
      sum[r] *= rescale;
      TEARLESS_UNROLL
      for (int n = 0; n < 2 * kChunks; ++n) {
        accumulator[n][2 * r] *= rescale;
        accumulator[n][2 * r + 1] *= rescale;
      }
    }
    TEARLESS_UNROLL
    for (int n = 0; n < kFragments; ++n) {
      const int at = key + n * kMmaRows;
      MmaFragment weight;
      if (mask.active()) {
        uint32_t of_row[2];
        thread.draw(mask, s, first, begin + at, of_row);
        thread.keep_by_rows(mask, of_row, weight);
      } else {
        keep_all(weight);
      }
      TEARLESS_UNROLL
      for (int j = 0; j < 2; ++j) {
        TEARLESS_UNROLL
        for (int x = 0; x < 4; ++x) {
          const float e = exp2f(score[n][j][x] - largest[x / 2]);
          sum[x / 2] += e;
          weight[j][x] *= e;
        }
      }
      thread.add_weighted(1, at, weight, accumulator);
    }
  }
};

template <int kChunks>
struct MmaAttentionGradients {
  static constexpr const char* kName = "attention_mma_backward";
  static constexpr int kThreads = MmaLayout::kMostWarps * kLanes;
  static constexpr int kBlocksAtOnce = kChunks <= 4 ? 3 : 2;  // resident blocks per SM
  AttentionBackward<bf16> b;
  MmaLayout layout;
  float scale;  // 1 / √d_head

  Shape shape() const { return {b.forward.span_count * b.forward.heads, layout.warps * kLanes, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<bf16> s(b.forward, block.index(), true);
    if (s.span.query_count == 0 || s.span.key_count == 0) return;
    const MmaThread<Block, kChunks> thread(block, layout);
    const Mask mask(b.forward.dropout);
    // Up to a multiple of 16 queries; past the last one any finite number will do.
    for (int i = block.thread(); i < layout.row_values; i += block.threads()) {
      const int64_t row = s.span.query_begin + i;
      row_values(block, 0)[i] = i < s.span.query_count ? b.forward.saved[row * b.forward.heads + s.head] * kLog2OfE : 0;
    }
    of_queries(block, thread, s, mask);
    of_keys(block, thread, s, mask);  // starts with a block barrier (load_tiles()), before it reads what is shared
  }

 private:
  /// Blocks of 16 keys whose P and G held_round() holds in registers.
  static constexpr int kHeld = 4;

  TEARLESS_BODY HeadRows<const bf16> d_out(const SpanHead<bf16>& s) const {
    const Attention<bf16>& a = b.forward;
    return s.rows(a, b.d_out, a.heads * a.d_head, s.span.query_begin, s.span.query_count, true);
  }
  /// By query: 0: log2 Σ_j e^score; 1: Σ_j P_j G_j.
  template <class Block>
  TEARLESS_BODY float* row_values(Block& block, int which) const {
    return reinterpret_cast<float*>(block.shared() + layout.row_values_at) + which * layout.row_values;
  }

  /// The dropout bits of a query and of the block of 16 keys that `key` is in.
  template <class Block>
  TEARLESS_BODY uint16_t& kept(Block& block, int query, int key) const {
    uint16_t* bits = reinterpret_cast<uint16_t*>(block.shared() + layout.kept_at);
    return bits[query * layout.key_blocks + key / kMmaRows];
  }

  /// The warp's 16 queries from `first` on, with their rows of q and δ.
  template <class Thread>
  struct Queries {
    int first;
    typename Thread::WarpRows q, d_out;
    float log_sums[2];  // log2 Σ_j e^score of the lane's two rows
  };

  /// P and G of the warp's queries and of the 16 keys from row `at` of the tile on; the tile begins with key `begin`,
  /// and its rows from `end` on are not seen. `fresh`: draws the dropout bits and stores them in kept(); otherwise
  /// reads them from there.
  template <class Block, class Thread>
  TEARLESS_BODY void score_fragment(Block& block, const Thread& thread, const SpanHead<bf16>& s, const Mask& mask,
                                    const Queries<Thread>& own, int begin, int at, int end, bool fresh, MmaFragment& p,
                                    MmaFragment& g) const {
    const float score_scale = scale * kLog2OfE;
    thread.dots(0, at, own.q, p);
    thread.dots(1, at, own.d_out, g);
    MmaFragment keep;
    if (mask.active()) {
      const int query = own.first + thread.row(), key = begin + at;
      uint32_t of_row[2];
      if (fresh) {
        thread.draw(mask, s, own.first, key, of_row);
        // Two lanes write the same value: a branch to avoid it might diverge the warp, which mma requires converged.
        const int odd = thread.pair() % 2;
        kept(block, query + 8 * odd, key) = static_cast<uint16_t>(odd ? of_row[1] : of_row[0]);
      } else {
        TEARLESS_UNROLL
        for (int r = 0; r < 2; ++r) of_row[r] = kept(block, query + 8 * r, key);
      }
      thread.keep_by_rows(mask, of_row, keep);
    } else {
      keep_all(keep);
    }
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) {
        const int column = at + 8 * j + 2 * thread.pair() + x % 2;
        const bool seen = column < end && !(b.forward.causal && begin + column > own.first + thread.row() + x / 2 * 8);
        p[j][x] = seen ? exp2f(p[j][x] * score_scale - own.log_sums[x / 2]) : 0.0f;
        g[j][x] *= keep[j][x];
      }
    }
  }

  /// ∂q, and Σ_j P_j G_j of every query for of_keys().
  template <class Block, class Thread>
  TEARLESS_BODY void of_queries(Block& block, const Thread& thread, const SpanHead<bf16>& s, const Mask& mask) const {
    const Attention<bf16>& a = b.forward;
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int round_rows = block.warps() * kMmaRows;
    const bool held = keys <= kHeld * kMmaRows && keys <= layout.tile_rows;
    for (int round = 0; round < queries; round += round_rows) {
      Queries<Thread> own;
      own.first = round + thread.warp() * kMmaRows;
      thread.load_warp_rows(s.q, own.first, own.q);
      thread.load_warp_rows(d_out(s), own.first, own.d_out);
      block.warp_sync();  // mma requires the warp to be converged
      if (held) {
        if (round == 0) thread.load_tiles(s.k, s.v, 0, keys);
        if (own.first < queries) held_round(block, thread, s, mask, own);
      } else {
        const int seen_by_round = a.causal && round + round_rows < keys ? round + round_rows : keys;
        long_round(block, thread, s, mask, own, seen_by_round, round == 0);
      }
    }
  }

  /// Few keys: P and G stay in registers until Σ_j P_j G_j is known.
  template <class Block, class Thread>
  TEARLESS_BODY void held_round(Block& block, const Thread& thread, const SpanHead<bf16>& s, const Mask& mask,
                                Queries<Thread>& own) const {
    const int end = seen_by(own, s);
    read_log_sums(block, thread, own);
    MmaFragment p[kHeld] = {}, g[kHeld] = {};  // uninitialised, they would be spilled
    float dot[2] = {}, mean[2];
    TEARLESS_UNROLL
    for (int n = 0; n < kHeld; ++n) {
      if (n * kMmaRows >= end) break;
      score_fragment(block, thread, s, mask, own, 0, n * kMmaRows, end, true, p[n], g[n]);
      add_dot(p[n], g[n], dot);
    }
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) mean[r] = thread.row_sum(dot[r]);
    typename Thread::Accumulator accumulator = {};
    TEARLESS_UNROLL
    for (int n = 0; n < kHeld; ++n) {
      if (n * kMmaRows >= end) break;
      to_d_score(p[n], g[n], mean);
      thread.add_weighted(0, n * kMmaRows, p[n], accumulator);
    }
    finish(block, thread, s, own.first, mean, accumulator);
  }

  /// Many keys: two passes over them, for Σ_j P_j G_j and then for ∂q. All warps must call, because all threads load
  /// the tiles.
  template <class Block, class Thread>
  TEARLESS_BODY void long_round(Block& block, const Thread& thread, const SpanHead<bf16>& s, const Mask& mask,
                                Queries<Thread>& own, int seen_by_round, bool first_round) const {
    const int queries = s.span.query_count, keys = s.span.key_count;
    const int seen_by_warp = seen_by(own, s);
    float mean[2] = {};
    typename Thread::Accumulator accumulator = {};
    for (int pass = 0; pass < 2; ++pass) {
      for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
        const int in_tile = keys - begin < layout.tile_rows ? keys - begin : layout.tile_rows;
        if (keys > layout.tile_rows || (first_round && pass == 0)) thread.load_tiles(s.k, s.v, begin, in_tile);
        if (own.first >= queries) continue;
        read_log_sums(block, thread, own);
        const int end = seen_by_warp - begin < in_tile ? seen_by_warp - begin : in_tile;
        TEARLESS_UNROLL_BY(1)
        for (int at = 0; at < end; at += kMmaRows) {
          MmaFragment p, g;
          score_fragment(block, thread, s, mask, own, begin, at, end, pass == 0, p, g);
          if (pass == 0) {
            add_dot(p, g, mean);
          } else {
            to_d_score(p, g, mean);
            thread.add_weighted(0, at, p, accumulator);
          }
        }
      }
      if (pass > 0) continue;
      block.warp_sync();  // the second pass reads the dropout bits that other lanes wrote
      TEARLESS_UNROLL
      for (int r = 0; r < 2; ++r) mean[r] = thread.row_sum(mean[r]);
    }
    if (own.first < queries) finish(block, thread, s, own.first, mean, accumulator);
  }

  /// How many keys the warp's queries may see.
  template <class Thread>
  TEARLESS_BODY int seen_by(const Queries<Thread>& own, const SpanHead<bf16>& s) const {
    const int keys = s.span.key_count;
    return b.forward.causal && own.first + kMmaRows < keys ? own.first + kMmaRows : keys;
  }
  template <class Block, class Thread>
  TEARLESS_BODY void read_log_sums(Block& block, const Thread& thread, Queries<Thread>& own) const {
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) own.log_sums[r] = row_values(block, 0)[own.first + thread.row() + 8 * r];
  }
  TEARLESS_BODY static void add_dot(const MmaFragment& p, const MmaFragment& g, float (&dot)[2]) {
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) dot[x / 2] += p[j][x] * g[j][x];
    }
  }
  /// p = ∂scores.
  TEARLESS_BODY static void to_d_score(MmaFragment& p, const MmaFragment& g, const float (&mean)[2]) {
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      TEARLESS_UNROLL
      for (int x = 0; x < 4; ++x) p[j][x] *= g[j][x] - mean[x / 2];
    }
  }

  /// Stores Σ_j P_j G_j for of_keys() and adds to ∂q.
  template <class Block, class Thread>
  TEARLESS_BODY void finish(Block& block, const Thread& thread, const SpanHead<bf16>& s, int first,
                            const float (&mean)[2], typename Thread::Accumulator& accumulator) const {
    const Attention<bf16>& a = b.forward;
    const int queries = s.span.query_count;
    const HeadRows<bf16> d_q = s.rows(a, b.d_q, b.d_q_stride, s.span.query_begin, queries, true);
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (thread.pair() == 0) row_values(block, 1)[first + thread.row() + 8 * r] = mean[r];
    }
    thread.add_to_rows(d_q, first, scale, accumulator);
  }

  /// ∂k and ∂v.
  template <class Block, class Thread>
  TEARLESS_BODY void of_keys(Block& block, const Thread& thread, const SpanHead<bf16>& s, const Mask& mask) const {
    const Attention<bf16>& a = b.forward;
    const int queries = s.span.query_count, keys = s.span.key_count;
    const HeadRows<bf16> d_k = s.rows(a, b.d_k, b.d_k_stride, s.span.key_begin, keys, true);
    const HeadRows<bf16> d_v = s.rows(a, b.d_v, b.d_v_stride, s.span.key_begin, keys, true);
    const float score_scale = scale * kLog2OfE;
    const int round_rows = block.warps() * kMmaRows;
    const bool one_tile = queries <= layout.tile_rows;
    for (int round = 0; round < keys; round += round_rows) {
      const int first = round + thread.warp() * kMmaRows;
      typename Thread::WarpRows k, v;
      thread.load_warp_rows(s.k, first, k);
      thread.load_warp_rows(s.v, first, v);
      block.warp_sync();
      typename Thread::Accumulator of_k = {}, of_v = {};
      // Causal: queries before the round's first key see none of its keys. Rounded down to a whole tile.
      const int unseen = a.causal ? round / layout.tile_rows * layout.tile_rows : 0;
      for (int begin = unseen; begin < queries; begin += layout.tile_rows) {
        const int in_tile = queries - begin < layout.tile_rows ? queries - begin : layout.tile_rows;
        if (!one_tile || round == 0) {
          thread.load_tiles(s.q, d_out(s), begin, in_tile);
        }
        if (first >= keys) continue;
        TEARLESS_UNROLL_BY(1)
        for (int at = a.causal && first > begin ? first - begin : 0; at < in_tile; at += kMmaRows) {
          MmaFragment p, g, keep;
          thread.dots(0, at, k, p);
          thread.dots(1, at, v, g);
          keep_all(keep);
          TEARLESS_UNROLL
          for (int j = 0; j < 2; ++j) {
            TEARLESS_UNROLL
            for (int x = 0; x < 4; ++x) {
              const int query = begin + at + 8 * j + 2 * thread.pair() + x % 2;
              const int key = first + thread.row() + x / 2 * 8;
              const bool seen = query < queries && key < keys && !(a.causal && key > query);
              if (mask.active()) {
                const bool stays = kept(block, query, first) >> (thread.row() + x / 2 * 8) & 1;
                keep[j][x] = stays ? mask.scale() : 0.0f;
              }
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
      thread.add_to_rows(d_k, first, scale, of_k);
      thread.add_to_rows(d_v, first, 1.0f, of_v);
    }
  }
};

/// Whether the tensor-core kernels support this d_head and these operands.
inline bool mma_takes(const Attention<bf16>& a) {
  return a.d_head % 16 == 0 && a.d_head <= kWidestMmaHead && !a.key_rows && heads_are_aligned(a);
}

inline float scale_of(const Attention<bf16>& a) { return 1.0f / std::sqrt(static_cast<float>(a.d_head)); }

/// Calls f with the number of blocks of 16 channels (kChunks), as an std::integral_constant.
template <class F>
auto with_mma_chunks(int64_t d_head, F&& f) {
  if (d_head <= 32) return f(std::integral_constant<int, 2>{});
  if (d_head <= 64) return f(std::integral_constant<int, 4>{});
  return f(std::integral_constant<int, static_cast<int>(kWidestMmaHead) / 16>{});
}

/// Launches the tensor-core kernel, or returns false where it does not support the call.
template <class Runner>
bool launch_by_mma(const Attention<bf16>& a, Runner& runner) {
  if (!mma_takes(a) || !is_aligned(a.out, a.heads * a.d_head)) return false;
  return with_mma_chunks(a.d_head, [&](auto chunks) {
    MmaLayout layout;
    if (!MmaLayout::of(a, kMmaRowElements<chunks.value>, /*backward=*/false, layout)) return false;
    runner.run(MmaAttentionForward<chunks.value>{a, layout, scale_of(a)});
    return true;
  });
}
template <class Runner>
bool launch_by_mma(const AttentionBackward<bf16>& b, Runner& runner) {
  const Attention<bf16>& a = b.forward;
  if (!mma_takes(a) || !is_aligned(b.d_out, a.heads * a.d_head) || !is_aligned(b.d_q, b.d_q_stride) ||
      !is_aligned(b.d_k, b.d_k_stride) || !is_aligned(b.d_v, b.d_v_stride)) {
    return false;
  }
  return with_mma_chunks(a.d_head, [&](auto chunks) {
    MmaLayout layout;
    if (!MmaLayout::of(a, kMmaRowElements<chunks.value>, /*backward=*/true, layout)) return false;
    runner.run(MmaAttentionGradients<chunks.value>{b, layout, scale_of(a)});
    return true;
  });
}

/// launch() of Attention<T> and AttentionBackward<T>.
template <template <class> class Call, class T, class Runner>
requires std::is_same_v<Call<T>, Attention<T>> || std::is_same_v<Call<T>, AttentionBackward<T>>
void launch(const Call<T>& call, Runner& runner) {
  if constexpr (std::is_same_v<T, bf16>) {
    if (launch_by_mma(call, runner)) return;
  }
  launch_by_dots(call, runner);
}

}  // namespace tearless::engine
