// softmax(q kᵀ / √d_h) v over packed rows (kernels.h: Attention), one block per (span, head). For float and bf16,
// without tensor cores; attention_mma_body.h has the version for tensor cores.
//
// A warp takes four rows of one side, "the warp's rows"; the rows of the other side are loaded into shared memory tile
// by tile. There are two inner loops:
//   dots()            a lane takes a row of the tile and computes its dot product with each of the warp's rows;
//   add_weighted()    a lane takes some channels and accumulates Σ weight · tile row for each of the warp's rows.
//
// Forward: the warp's rows are queries, and it loops over tiles of keys and values. Where the keys fill more than one
// tile it keeps the running maximum and sum of an online softmax.
//
// Backward: first of_queries(), with queries as the warp's rows and a loop over keys, gives ∂q; then of_keys(), with
// keys as the warp's rows and a loop over queries, gives ∂k and ∂v. Each row of a gradient is written by one warp, so
// there are no atomics. With P the probabilities, m the dropout multipliers and δ the gradient of the output:
//   ∂v      = (m ⊙ P)ᵀ δ
//   G       = m ⊙ (δ vᵀ)
//   ∂scores = P ⊙ (G - Σ_j P_j G_j)
//   ∂q      = ∂scores k / √d_h
//   ∂k      = ∂scoresᵀ q / √d_h
//
// Saved for backward: log Σ_j e^score of each query row and head, at [row · heads + head]. P and m are recomputed.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

inline constexpr int kWarpRows = 4;    // numbers in a Philox call; for 32 keys, 4 rows × 8 calls = one for each lane
inline constexpr int kTileChunks = 4;  // chunks of 32 rows in the largest tile
inline constexpr int64_t kWidestHead = 256;

/// The layout of shared memory: two tiles, then the arrays below at their offsets in bytes.
struct AttentionLayout {
  static constexpr int kThreads = 128;
  static constexpr int kWarps = kThreads / kLanes;
  int channels;       // of a head, rounded up to 16 bytes; zeros from d_head on
  int row_elements;   // row stride of a tile: an odd multiple of 16 bytes, so that 8 lanes have no bank conflict
  int tile_rows;      // a multiple of 32
  int warp_rows_at;   // [kWarps, sides, kWarpRows, channels] float; sides: 1 forward, 2 backward
  int weights_at;     // [kWarps, sides, tile_rows, kWarpRows] float
  int row_values_at;  // [2, row_values] float: log Σ e^score and Σ_j P_j G_j of every query (backward)
  int row_values;     // max_query_length rounded up to a multiple of 4
  int64_t bytes;      // in total

  template <class T>
  static AttentionLayout of(const Attention<T>& a, bool backward) {
    constexpr int kWide = kWideGroup<T>;
    constexpr int64_t kSharedBytes = 96 << 10;  // every GPU since compute capability 8.0 has that much for a block
    if (a.d_head > kWidestHead) {
      throw std::invalid_argument("attention heads of " + std::to_string(a.d_head) +
                                  " channels are too wide for the CUDA kernel, which takes " +
                                  std::to_string(kWidestHead) + ": use more heads");
    }
    AttentionLayout l;
    const int blocks_of_16 = static_cast<int>(blocks_for(a.d_head, kWide));
    l.channels = blocks_of_16 * kWide;
    l.row_elements = (blocks_of_16 | 1) * kWide;
    const int64_t sides = backward ? 2 : 1;
    const int64_t max_length = backward ? std::max(a.max_query_length, a.max_key_length) : a.max_key_length;
    const int64_t owned = kWarps * sides * kWarpRows * l.channels * 4;
    l.row_values = backward ? static_cast<int>((a.max_query_length + kWarpRows - 1) / kWarpRows * kWarpRows) : 0;
    const int64_t row_values = 2 * 4 * int64_t{l.row_values};
    const int64_t a_row = 2 * l.row_elements * static_cast<int64_t>(sizeof(T)) + kWarps * sides * kWarpRows * 4;
    const int64_t chunks = std::min<int64_t>({blocks_for(std::max<int64_t>(max_length, 1), kLanes), kTileChunks,
                                              (kSharedBytes - owned - row_values) / (a_row * kLanes)});
    l.tile_rows = static_cast<int>(std::max<int64_t>(chunks, 1) * kLanes);
    l.warp_rows_at = 2 * l.tile_rows * l.row_elements * static_cast<int>(sizeof(T));
    l.weights_at = l.warp_rows_at + static_cast<int>(owned);
    l.row_values_at = l.weights_at + kWarps * static_cast<int>(sides) * l.tile_rows * kWarpRows * 4;
    l.bytes = l.row_values_at + row_values;
    return l;
  }
};

/// The rows of one span, restricted to the channels of one head.
template <class T>
struct HeadRows {
  T* data;         // first channel of the first row
  int64_t stride;  // from row to row, in elements
  int count, d_head;
  bool aligned;  // every row starts at a multiple of 16 bytes and has whole groups

  TEARLESS_BODY T* row(int i) const { return data + i * stride; }
};
/// The same for rows that are not contiguous: row i is row names[i] of the matrix that `data` points to.
template <class T>
struct NamedRows : HeadRows<T> {
  const int32_t* names;

  TEARLESS_BODY T* row(int i) const { return this->data + names[i] * this->stride; }
};

/// The operations that forward and backward share, for one thread. kPerLane: channels of a head that a lane
/// accumulates: 1, or an even number, in pairs of consecutive channels.
template <class Block, class T, int kPerLane>
class AttentionThread {
 public:
  static constexpr int kPair = kPerLane < 2 ? 1 : 2;
  static constexpr int kPairs = kPerLane / kPair;
  using Rows = HeadRows<const T>;
  using Accumulator = float[kPerLane][kWarpRows];

  TEARLESS_BODY AttentionThread(Block& block, const AttentionLayout& layout, int sides)
      : block_(block),
        layout_(layout),
        warp_rows_(reinterpret_cast<float*>(block.shared() + layout.warp_rows_at) +
                   block.warp() * sides * kWarpRows * layout.channels),
        weights_(reinterpret_cast<float*>(block.shared() + layout.weights_at) +
                 block.warp() * sides * kWarpRows * layout.tile_rows) {}

  /// Tile 0 or 1 in shared memory, [tile_rows, row_elements].
  TEARLESS_BODY T* tile(int side) const {
    return reinterpret_cast<T*>(block_.shared()) + side * layout_.tile_rows * layout_.row_elements;
  }

  /// Loads rows first … first + count - 1 into a tile; all threads of the block must call. The caller synchronises the
  /// block.
  template <class AnyRows>
  TEARLESS_BODY void load_tile(const AnyRows& rows, int first, int count, T* to) const {
    constexpr int kSize = kWideGroup<T>;
    const uint32_t groups = static_cast<uint32_t>(layout_.channels) / kSize;
    const uint32_t all = groups * static_cast<uint32_t>(count);
    for (uint32_t e = static_cast<uint32_t>(block_.thread()); e < all; e += AttentionLayout::kThreads) {
      const int i = static_cast<int>(e / groups);
      const int c = static_cast<int>(e % groups) * kSize;
      const T* from = rows.row(first + i) + c;
      SixteenBytes<T> bytes = {};
      if (rows.aligned) {
        bytes = load_sixteen(from);
      } else {
        TEARLESS_UNROLL
        for (int j = 0; j < kSize; ++j) {
          if (c + j < rows.d_head) bytes.at[j] = from[j];
        }
      }
      store_sixteen(to + i * layout_.row_elements + c, bytes);
    }
  }

  /// Loads the warp's rows first … first + 3, times `scale`, to shared memory; zeros past the last row. The caller
  /// synchronises the warp.
  TEARLESS_BODY void load_warp_rows(const Rows& rows, int first, float scale, int side) const {
    float* to = warp_rows_ + side * kWarpRows * layout_.channels;
    for (int r = 0; r < kWarpRows; ++r) {
      for (int c = block_.lane(); c < layout_.channels; c += kLanes) {
        const bool there = first + r < rows.count && c < rows.d_head;
        to[r * layout_.channels + c] = there ? scale * static_cast<float>(rows.row(first + r)[c]) : 0.0f;
      }
    }
  }

  /// dot[r] = the warp's row r · row `row` of the tile.
  TEARLESS_BODY void dots(const T* tile_rows, int row, int side, float (&dot)[kWarpRows]) const {
    constexpr int kSize = kWideGroup<T>;
    const T* other = tile_rows + row * layout_.row_elements;
    const float* own = warp_rows_ + side * kWarpRows * layout_.channels;
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) dot[r] = 0;
    TEARLESS_UNROLL_BY(1)
    for (int c = 0; c < layout_.channels; c += kSize) {
      float x[kSize];
      load_group<true>(other + c, kSize, x);
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; i += 4) {
          const SixteenBytes<float> y = load_sixteen(own + r * layout_.channels + c + i);
          TEARLESS_UNROLL
          for (int j = 0; j < 4; ++j) dot[r] += x[i + j] * y.at[j];
        }
      }
    }
  }

  /// Sets the weights of row `row` of the tile for the warp's four rows. The caller synchronises the warp.
  TEARLESS_BODY void set_weights(int side, int row, const float (&weight)[kWarpRows]) const {
    SixteenBytes<float> bytes;
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) bytes.at[r] = weight[r];
    store_sixteen(weights_ + (side * layout_.tile_rows + row) * kWarpRows, bytes);
  }

  /// sum[·][r] += Σ weight · tile row over tile rows begin … end - 1, for the lane's channels.
  TEARLESS_BODY void add_weighted(const T* tile_rows, int side, int begin, int end, Accumulator& sum) const {
    const float* weights = weights_ + side * layout_.tile_rows * kWarpRows;
    TEARLESS_UNROLL_BY(2)
    for (int row = begin; row < end; ++row) {
      const SixteenBytes<float> w = load_sixteen(weights + row * kWarpRows);
      const T* x = tile_rows + row * layout_.row_elements;
      TEARLESS_UNROLL
      for (int k = 0; k < kPairs; ++k) {
        const int c = channel(k);
        if (c >= layout_.channels) break;
        const auto pair = load_packed<Packed<T, kPair>>(x + c);
        TEARLESS_UNROLL
        for (int i = 0; i < kPair; ++i) {
          const float value = static_cast<float>(pair.at[i]);
          TEARLESS_UNROLL
          for (int r = 0; r < kWarpRows; ++r) sum[k * kPair + i][r] += w.at[r] * value;
        }
      }
    }
  }

  /// Calls f(r, c, sum of row r and channel c) for the lane's channels c < d_head of the warp's rows first + r < count.
  template <class F>
  TEARLESS_BODY void for_accumulated(int first, int count, int d_head, const Accumulator& sum, F&& f) const {
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      if (first + r >= count) break;
      TEARLESS_UNROLL
      for (int k = 0; k < kPerLane; ++k) {
        const int c = channel(k / kPair) + k % kPair;
        if (c < d_head) f(r, c, sum[k][r]);
      }
    }
  }

  /// The first channel of the lane's pair k. Even, as is `channels`, so a pair is inside or outside as a whole.
  TEARLESS_BODY int channel(int k) const { return (k * kLanes + block_.lane()) * kPair; }

 private:
  Block& block_;
  const AttentionLayout& layout_;
  float* warp_rows_;
  float* weights_;
};

/// One (span, head): the work of block number `block`.
template <class T>
struct SpanHead {
  AttentionSpan span;
  int head;
  HeadRows<const T> q, k, v;

  TEARLESS_BODY SpanHead(const Attention<T>& a, int64_t block, bool aligned)
      : span(a.spans[static_cast<uint32_t>(block) / static_cast<uint32_t>(a.heads)]),
        head(static_cast<int>(static_cast<uint32_t>(block) % static_cast<uint32_t>(a.heads))),
        q(rows(a, a.q, a.q_stride, span.query_begin, span.query_count, aligned)),
        k(rows(a, a.k, a.k_stride, span.key_begin, span.key_count, aligned)),
        v(rows(a, a.v, a.v_stride, span.key_begin, span.key_count, aligned)) {}

  template <class U>
  TEARLESS_BODY HeadRows<U> rows(const Attention<T>& a, U* data, int64_t stride, int begin, int count,
                                 bool aligned) const {
    return {data + begin * stride + head * a.d_head, stride, count, static_cast<int>(a.d_head), aligned};
  }
  /// `outer` of the dropout counter (random.h).
  TEARLESS_BODY uint32_t outer(int query) const {
    return static_cast<uint32_t>(query) | static_cast<uint32_t>(head) << 16;
  }
};

/// keep[r] = the dropout multiplier of query first + r and the lane's key, r = 0 … 3; the lanes have the 32 consecutive
/// keys from `key` on (a multiple of 32), `outer` is that of query `first`. Each lane makes one Philox call, for one
/// query and four keys, and passes the results to the other lanes as bits.
template <class Block>
TEARLESS_BODY void keep_of_keys(Block& block, const Mask& mask, uint32_t outer, uint32_t line, int key,
                                float (&keep)[kWarpRows]) {
  TEARLESS_UNROLL
  for (int r = 0; r < kWarpRows; ++r) keep[r] = 1.0f;
  if (!mask.active()) return;
  const int lane = block.lane();
  const uint32_t bits =
      mask.kept_of_four(static_cast<uint32_t>(key / 4 + lane % 8), outer + static_cast<uint32_t>(lane / 8), line);
  TEARLESS_UNROLL
  for (int r = 0; r < kWarpRows; ++r) {
    keep[r] = block.from_lane(bits, r * 8 + lane / 4) >> (lane % 4) & 1 ? mask.scale() : 0.0f;
  }
}

/// kNamed: keys are looked up in Attention::key_rows. A separate instantiation, so that training has no branch per key.
template <class T, int kPerLane, bool kNamed>
struct AttentionForward {
  static constexpr const char* kName = "attention";
  static constexpr int kThreads = AttentionLayout::kThreads;
  static constexpr int kBlocksAtOnce = 4;  // resident blocks per SM; no register spills
  Attention<T> a;
  AttentionLayout layout;
  bool aligned;

  Shape shape() const { return {a.span_count * a.heads, kThreads, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<T> s(a, block.index(), aligned);
    const int queries = s.span.query_count, keys = s.span.key_count;
    const AttentionThread<Block, T, kPerLane> thread(block, layout, 1);
    const Mask mask(a.dropout);
    const float scale = 1.0f / sqrtf(static_cast<float>(a.d_head));
    const HeadRows<T> out = s.rows(a, a.out, a.heads * a.d_head, s.span.query_begin, queries, false);
    T* k_tile = thread.tile(0);
    T* v_tile = thread.tile(1);
    constexpr int kRound = AttentionLayout::kWarps * kWarpRows;
    const bool one_tile = keys <= layout.tile_rows;

    // In each round a block takes kRound queries. Every warp goes through all rounds and tiles, even without queries,
    // because all threads load the tiles.
    for (int round = 0; round < queries; round += kRound) {
      const int first = round + block.warp() * kWarpRows;
      block.warp_sync();  // the warp's rows and weights of the round before are no longer read
      thread.load_warp_rows(s.q, first, scale, 0);
      float largest[kWarpRows], sum[kWarpRows];
      typename AttentionThread<Block, T, kPerLane>::Accumulator accumulator = {};
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        largest[r] = -FLT_MAX;
        sum[r] = 0;
      }
      const int seen_by_round = a.causal && round + kRound < keys ? round + kRound : keys;
      const int seen_by_warp = a.causal && first + kWarpRows < keys ? first + kWarpRows : keys;
      for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
        const int in_tile = keys - begin < layout.tile_rows ? keys - begin : layout.tile_rows;
        if (!one_tile || round == 0) {
          block.sync();
          thread.load_tile(rows_of_keys(s, a.k, a.k_stride), begin, in_tile, k_tile);
          thread.load_tile(rows_of_keys(s, a.v, a.v_stride), begin, in_tile, v_tile);
          block.sync();
        } else {
          block.warp_sync();
        }
        const int end = seen_by_warp - begin < in_tile ? seen_by_warp - begin : in_tile;
        if (first < queries && end > 0)
          attend_tile(block, thread, s, mask, first, begin, end, largest, sum, accumulator);
      }
      if (first >= queries) continue;
      float inverse[kWarpRows];
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        inverse[r] = keys > 0 ? 1.0f / sum[r] : 0.0f;
        if (a.saved && block.lane() == 0 && first + r < queries) {
          a.saved[static_cast<int64_t>(s.span.query_begin + first + r) * a.heads + s.head] = largest[r] + logf(sum[r]);
        }
      }
      thread.for_accumulated(first, queries, static_cast<int>(a.d_head), accumulator,
                             [&](int r, int c, float x) { out.row(first + r)[c] = static_cast<T>(x * inverse[r]); });
    }
  }

 private:
  /// The span's rows of k or v (`data`).
  TEARLESS_BODY auto rows_of_keys(const SpanHead<T>& s, const T* data, int64_t stride) const {
    const int count = s.span.key_count;
    if constexpr (kNamed) {
      return NamedRows<const T>{s.rows(a, data, stride, 0, count, aligned), a.key_rows + s.span.key_begin};
    } else {
      return s.rows(a, data, stride, s.span.key_begin, count, aligned);
    }
  }

  /// One tile for the warp's queries: scores, online softmax, and Σ weight · value. `begin`: the tile's first key;
  /// `end`: rows of the tile to use; largest, sum: running maximum and sum of each query.
  template <class Block, class Thread>
  TEARLESS_BODY void attend_tile(Block& block, const Thread& thread, const SpanHead<T>& s, const Mask& mask, int first,
                                 int begin, int end, float (&largest)[kWarpRows], float (&sum)[kWarpRows],
                                 typename Thread::Accumulator& accumulator) const {
    const int lane = block.lane();
    float score[kTileChunks][kWarpRows];
    float top[kWarpRows];
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) top[r] = -FLT_MAX;
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kTileChunks; ++chunk) {
      const int row = chunk * kLanes + lane;
      if (chunk * kLanes >= end) break;
      thread.dots(thread.tile(0), row < end ? row : end - 1, 0, score[chunk]);
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        if (row >= end || (a.causal && begin + row > first + r)) score[chunk][r] = -INFINITY;
        top[r] = fmaxf(top[r], score[chunk][r]);
      }
    }
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      const float now = fmaxf(largest[r], warp_max(block, top[r]));
      const float rescale = expf(largest[r] - now);
      largest[r] = now;
      sum[r] *= rescale;
      TEARLESS_UNROLL
      for (int k = 0; k < kPerLane; ++k) accumulator[k][r] *= rescale;
    }
    float added[kWarpRows] = {};
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kTileChunks; ++chunk) {
      if (chunk * kLanes >= end) break;
      float weight[kWarpRows];
      keep_of_keys(block, mask, s.outer(first), static_cast<uint32_t>(s.span.sentence_id), begin + chunk * kLanes,
                   weight);
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        const float e = expf(score[chunk][r] - largest[r]);
        added[r] += e;
        weight[r] *= e;
      }
      thread.set_weights(0, chunk * kLanes + lane, weight);
    }
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) sum[r] += warp_sum(block, added[r]);
    block.warp_sync();
    thread.add_weighted(thread.tile(1), 0, 0, end, accumulator);
  }
};

template <class T, int kPerLane>
struct AttentionGradients {
  static constexpr const char* kName = "attention_backward";
  static constexpr int kThreads = AttentionLayout::kThreads;
  static constexpr int kBlocksAtOnce = kPerLane <= 2 ? 3 : 2;  // resident blocks per SM; no register spills
  AttentionBackward<T> b;
  AttentionLayout layout;
  bool aligned;

  Shape shape() const { return {b.forward.span_count * b.forward.heads, kThreads, layout.bytes}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const SpanHead<T> s(b.forward, block.index(), aligned);
    if (s.span.query_count == 0 || s.span.key_count == 0) return;
    const AttentionThread<Block, T, kPerLane> thread(block, layout, 2);
    const Mask mask(b.forward.dropout);
    for (int i = block.thread(); i < s.span.query_count; i += kThreads) {
      const int64_t row = s.span.query_begin + i;
      row_values(block, 0)[i] = b.forward.saved[row * b.forward.heads + s.head];
    }
    of_queries(block, thread, s, mask);
    of_keys(block, thread, s, mask);  // starts with a block barrier, before it reads row_values() and loads tiles
  }

 private:
  static constexpr int kRound = AttentionLayout::kWarps * kWarpRows;

  TEARLESS_BODY HeadRows<const T> d_out(const SpanHead<T>& s) const {
    const Attention<T>& a = b.forward;
    return s.rows(a, b.d_out, a.heads * a.d_head, s.span.query_begin, s.span.query_count, aligned);
  }
  TEARLESS_BODY float scale() const { return 1.0f / sqrtf(static_cast<float>(b.forward.d_head)); }
  /// By query: 0: log Σ_j e^score; 1: Σ_j P_j G_j.
  template <class Block>
  TEARLESS_BODY float* row_values(Block& block, int which) const {
    return reinterpret_cast<float*>(block.shared() + layout.row_values_at) + which * layout.row_values;
  }

  /// ∂q, and Σ_j P_j G_j of every query for of_keys(). Where the keys fill several tiles there are two passes over
  /// them: for that sum, and then for ∂q.
  template <class Block, class Thread>
  TEARLESS_BODY void of_queries(Block& block, const Thread& thread, const SpanHead<T>& s, const Mask& mask) const {
    const Attention<T>& a = b.forward;
    const int queries = s.span.query_count, keys = s.span.key_count, lane = block.lane();
    const HeadRows<T> d_q = s.rows(a, b.d_q, b.d_q_stride, s.span.query_begin, queries, false);
    const bool one_tile = keys <= layout.tile_rows;
    for (int round = 0; round < queries; round += kRound) {
      const int first = round + block.warp() * kWarpRows;
      block.warp_sync();
      thread.load_warp_rows(s.q, first, scale(), 0);
      thread.load_warp_rows(d_out(s), first, 1.0f, 1);
      float mean[kWarpRows] = {};
      typename Thread::Accumulator accumulator = {};
      const int seen_by_round = a.causal && round + kRound < keys ? round + kRound : keys;
      const int seen_by_warp = a.causal && first + kWarpRows < keys ? first + kWarpRows : keys;
      for (int pass = one_tile ? 1 : 0; pass < 2; ++pass) {
        for (int begin = 0; begin < seen_by_round; begin += layout.tile_rows) {
          const int in_tile = keys - begin < layout.tile_rows ? keys - begin : layout.tile_rows;
          if (!one_tile || round == 0) {
            block.sync();
            thread.load_tile(s.k, begin, in_tile, thread.tile(0));
            thread.load_tile(s.v, begin, in_tile, thread.tile(1));
            block.sync();
          } else {
            block.warp_sync();
          }
          const int end = seen_by_warp - begin < in_tile ? seen_by_warp - begin : in_tile;
          if (first >= queries || end <= 0) continue;

          float p[kTileChunks][kWarpRows], g[kTileChunks][kWarpRows];
          float dot[kWarpRows] = {};
          TEARLESS_UNROLL
          for (int chunk = 0; chunk < kTileChunks; ++chunk) {
            if (chunk * kLanes >= end) break;
            const int row = chunk * kLanes + lane;
            const int readable = row < end ? row : end - 1;
            thread.dots(thread.tile(0), readable, 0, p[chunk]);
            thread.dots(thread.tile(1), readable, 1, g[chunk]);
            // Past the last query these are arbitrary numbers; those rows are not written.
            const SixteenBytes<float> log_sums = load_sixteen(row_values(block, 0) + first);
            float keep[kWarpRows];
            keep_of_keys(block, mask, s.outer(first), static_cast<uint32_t>(s.span.sentence_id), begin + chunk * kLanes,
                         keep);
            TEARLESS_UNROLL
            for (int r = 0; r < kWarpRows; ++r) {
              const bool seen = row < end && !(a.causal && begin + row > first + r);
              p[chunk][r] = seen ? expf(p[chunk][r] - log_sums.at[r]) : 0.0f;
              g[chunk][r] *= keep[r];
              dot[r] += p[chunk][r] * g[chunk][r];
            }
          }
          if (pass == 0 || one_tile) {
            TEARLESS_UNROLL
            for (int r = 0; r < kWarpRows; ++r) mean[r] += warp_sum(block, dot[r]);
          }
          if (pass == 0) continue;
          TEARLESS_UNROLL
          for (int chunk = 0; chunk < kTileChunks; ++chunk) {
            if (chunk * kLanes >= end) break;
            float d_score[kWarpRows];
            TEARLESS_UNROLL
            for (int r = 0; r < kWarpRows; ++r) d_score[r] = p[chunk][r] * (g[chunk][r] - mean[r]);
            thread.set_weights(0, chunk * kLanes + lane, d_score);
          }
          block.warp_sync();
          thread.add_weighted(thread.tile(0), 0, 0, end, accumulator);
        }
      }
      if (first >= queries) continue;
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        if (lane == 0 && first + r < queries) row_values(block, 1)[first + r] = mean[r];
      }
      thread.for_accumulated(first, queries, static_cast<int>(a.d_head), accumulator, [&](int r, int c, float x) {
        T& to = d_q.row(first + r)[c];
        to = static_cast<T>(static_cast<float>(to) + scale() * x);
      });
    }
  }

  /// ∂k and ∂v.
  template <class Block, class Thread>
  TEARLESS_BODY void of_keys(Block& block, const Thread& thread, const SpanHead<T>& s, const Mask& mask) const {
    const Attention<T>& a = b.forward;
    const int queries = s.span.query_count, keys = s.span.key_count, lane = block.lane();
    const HeadRows<T> d_k = s.rows(a, b.d_k, b.d_k_stride, s.span.key_begin, keys, false);
    const HeadRows<T> d_v = s.rows(a, b.d_v, b.d_v_stride, s.span.key_begin, keys, false);
    const bool one_tile = queries <= layout.tile_rows;
    for (int round = 0; round < keys; round += kRound) {
      const int first = round + block.warp() * kWarpRows;
      block.warp_sync();
      thread.load_warp_rows(s.k, first, scale(), 0);
      thread.load_warp_rows(s.v, first, 1.0f, 1);
      typename Thread::Accumulator of_k = {}, of_v = {};
      // Causal: queries before the round's first key see none of its keys. Rounded down to a whole tile.
      const int unseen = a.causal ? round / layout.tile_rows * layout.tile_rows : 0;
      for (int begin = unseen; begin < queries; begin += layout.tile_rows) {
        const int in_tile = queries - begin < layout.tile_rows ? queries - begin : layout.tile_rows;
        if (!one_tile || round == 0) {
          block.sync();
          thread.load_tile(s.q, begin, in_tile, thread.tile(0));
          thread.load_tile(d_out(s), begin, in_tile, thread.tile(1));
          block.sync();
        } else {
          block.warp_sync();
        }
        if (first >= keys) continue;
        const int from = a.causal && first > begin ? (first - begin) / kLanes * kLanes : 0;
        for (int chunk = from; chunk < in_tile; chunk += kLanes) {
          const int row = chunk + lane;
          const int query = begin + row;
          const int readable = row < in_tile ? row : in_tile - 1;
          float p[kWarpRows], g[kWarpRows], keep[kWarpRows], d_score[kWarpRows];
          thread.dots(thread.tile(0), readable, 0, p);
          thread.dots(thread.tile(1), readable, 1, g);
          TEARLESS_UNROLL
          for (int r = 0; r < kWarpRows; ++r) keep[r] = 1.0f;
          // The warp's four keys are one Philox call.
          if (mask.active()) {
            mask.keep_four(static_cast<uint32_t>(first / 4), s.outer(query), static_cast<uint32_t>(s.span.sentence_id),
                           keep);
          }
          const float log_sums = row_values(block, 0)[begin + readable];
          const float mean = row_values(block, 1)[begin + readable];
          TEARLESS_UNROLL
          for (int r = 0; r < kWarpRows; ++r) {
            const bool seen = row < in_tile && first + r < keys && !(a.causal && first + r > query);
            const float probability = seen ? expf(p[r] - log_sums) : 0.0f;
            d_score[r] = probability * (keep[r] * g[r] - mean);
            keep[r] *= probability;
          }
          thread.set_weights(0, row, d_score);
          thread.set_weights(1, row, keep);
        }
        block.warp_sync();
        thread.add_weighted(thread.tile(0), 0, from, in_tile, of_k);
        thread.add_weighted(thread.tile(1), 1, from, in_tile, of_v);
      }
      if (first >= keys) continue;
      const int d_head = static_cast<int>(a.d_head);
      thread.for_accumulated(first, keys, d_head, of_k, [&](int r, int c, float x) {
        T& to = d_k.row(first + r)[c];
        to = static_cast<T>(static_cast<float>(to) + scale() * x);
      });
      thread.for_accumulated(first, keys, d_head, of_v, [&](int r, int c, float x) {
        T& to = d_v.row(first + r)[c];
        to = static_cast<T>(static_cast<float>(to) + x);
      });
    }
  }
};

template <class T>
bool heads_are_aligned(const Attention<T>& a) {
  return a.d_head % kWideGroup<T> == 0 && is_aligned(a.q, a.q_stride) && is_aligned(a.k, a.k_stride) &&
         is_aligned(a.v, a.v_stride);
}

/// Calls f with the number of channels that a lane accumulates (kPerLane), as an std::integral_constant.
template <class F>
void with_channels_per_lane(int64_t d_head, F&& f) {
  if (d_head <= 32) return f(std::integral_constant<int, 1>{});
  if (d_head <= 64) return f(std::integral_constant<int, 2>{});
  if (d_head <= 128) return f(std::integral_constant<int, 4>{});
  f(std::integral_constant<int, static_cast<int>(kWidestHead) / kLanes>{});
}

template <class T, class Runner>
void launch_by_dots(const Attention<T>& a, Runner& runner) {
  const AttentionLayout layout = AttentionLayout::of(a, /*backward=*/false);
  with_channels_per_lane(layout.channels, [&](auto channels) {
    if (a.key_rows) {
      runner.run(AttentionForward<T, channels.value, true>{a, layout, heads_are_aligned(a)});
    } else {
      runner.run(AttentionForward<T, channels.value, false>{a, layout, heads_are_aligned(a)});
    }
  });
}

template <class T, class Runner>
void launch_by_dots(const AttentionBackward<T>& b, Runner& runner) {
  const AttentionLayout layout = AttentionLayout::of(b.forward, /*backward=*/true);
  const bool aligned = heads_are_aligned(b.forward) && is_aligned(b.d_out, b.forward.heads * b.forward.d_head);
  with_channels_per_lane(layout.channels, [&](auto channels) {
    runner.run(AttentionGradients<T, channels.value>{b, layout, aligned});
  });
}

/// Elements of Attention::saved: one float for each query row, up to the last one of a span, and head.
inline int64_t attention_saved_size(const AttentionSpan* spans, int64_t span_count, int64_t heads) {
  int64_t rows = 0;
  for (int64_t i = 0; i < span_count; ++i) {
    rows = std::max<int64_t>(rows, int64_t{spans[i].query_begin} + spans[i].query_count);
  }
  return rows * heads;
}

}  // namespace tearless::engine
