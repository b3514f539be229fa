// What forward and backward of attention without tensor cores share (attention_body.h): loads, and the two inner loops.
//
// A warp takes four rows of one side, "the warp's rows"; the rows of the other side are loaded into shared memory tile
// by tile.
//   dots()            a lane takes a row of the tile and computes its dot product with each of the warp's rows;
//   add_weighted()    a lane takes some channels and accumulates Σ weight · tile row for each of the warp's rows.
// In between the weights go through shared memory (set_weights()): [row of the tile, warp's row].
#pragma once

#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"

namespace tearless::engine {

/// For one thread. kPerLane: channels of a head that a lane accumulates: 1, or an even number, in pairs of consecutive
/// channels. An operand (0 or 1) is a tile with the warp's rows and the weights that belong to it.
template <class Block, class T, int kPerLane>
class SimtWarp {
 public:
  static constexpr int kPair = kPerLane < 2 ? 1 : 2;
  static constexpr int kPairs = kPerLane / kPair;
  using Rows = HeadRows<const T>;
  using Accumulator = float[kPerLane][kWarpRows];

  TEARLESS_BODY SimtWarp(Block& block, const SimtLayout& layout, int operands)
      : block_(block),
        layout_(layout),
        warp_rows_(reinterpret_cast<float*>(block.shared() + layout.warp_rows_at) +
                   block.warp() * operands * kWarpRows * layout.channels),
        weights_(reinterpret_cast<float*>(block.shared() + layout.weights_at) +
                 block.warp() * operands * kWarpRows * layout.tile_rows) {}

  /// Loads rows first … first + count - 1 of two matrices into tiles 0 and 1. All threads of the block must call: it
  /// has a block barrier at its start and at its end.
  template <class AnyRows>
  TEARLESS_BODY void load_tiles(const AnyRows& of_tile_0, const AnyRows& of_tile_1, int first, int count) const {
    block_.sync();
    load_tile(of_tile_0, first, count, tile(0));
    load_tile(of_tile_1, first, count, tile(1));
    block_.sync();
  }

  /// Loads the warp's rows first … first + 3, plus `bias` where given, times `scale`, to shared memory; zeros past the
  /// last row. The caller synchronises the warp.
  template <class AnyRows>
  TEARLESS_BODY void load_warp_rows(const AnyRows& rows, int first, float scale, int operand,
                                    const float* bias = nullptr) const {
    float* to = warp_rows(operand);
    for (int r = 0; r < kWarpRows; ++r) {
      for (int c = block_.lane(); c < layout_.channels; c += kLanes) {
        const bool there = first + r < rows.count && c < rows.d_head;
        const float x = there ? static_cast<float>(rows.row(first + r)[c]) + (bias ? bias[c] : 0.0f) : 0.0f;
        to[r * layout_.channels + c] = scale * x;
      }
    }
  }

  /// dot[r] = the warp's row r · row `row` of the tile.
  TEARLESS_BODY void dots(int operand, int row, float (&dot)[kWarpRows]) const {
    constexpr int kSize = kWideGroup<T>;
    const T* tile_row = tile(operand) + row * layout_.row_elements;
    const float* warp_rows = this->warp_rows(operand);
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) dot[r] = 0;
    TEARLESS_UNROLL_BY(1)
    for (int c = 0; c < layout_.channels; c += kSize) {
      float x[kSize];
      load_group<true>(tile_row + c, kSize, x);
      TEARLESS_UNROLL
      for (int r = 0; r < kWarpRows; ++r) {
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; i += 4) {
          const SixteenBytes<float> y = load_sixteen(warp_rows + r * layout_.channels + c + i);
          TEARLESS_UNROLL
          for (int j = 0; j < 4; ++j) dot[r] += x[i + j] * y.at[j];
        }
      }
    }
  }

  /// Sets the weights of row `row` of the tile for the warp's four rows. The caller synchronises the warp.
  TEARLESS_BODY void set_weights(int operand, int row, const float (&weight)[kWarpRows]) const {
    SixteenBytes<float> bytes;
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) bytes.at[r] = weight[r];
    store_sixteen(weights_ + (operand * layout_.tile_rows + row) * kWarpRows, bytes);
  }

  /// sum[·][r] += Σ weight · row over rows begin … end - 1 of tile `of_tile`, for the lane's channels. The weights are
  /// those of operand `weights`: forward weighs the values (tile 1) by what the keys (tile 0) gave.
  TEARLESS_BODY void add_weighted(int of_tile, int weights, int begin, int end, Accumulator& sum) const {
    const T* tile_rows = tile(of_tile);
    const float* weight_rows = weights_ + weights * layout_.tile_rows * kWarpRows;
    TEARLESS_UNROLL_BY(2)
    for (int row = begin; row < end; ++row) {
      const SixteenBytes<float> w = load_sixteen(weight_rows + row * kWarpRows);
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

  /// factor[r] = the dropout multiplier of query first + r and the lane's key, r = 0 … 3; the lanes have the 32
  /// consecutive keys from `key` on (a multiple of 32). Each lane makes one Philox call, for one query and four keys,
  /// and passes the results to the other lanes as bits.
  TEARLESS_BODY void dropout_of_keys(const Mask& mask, const SpanHead<T>& s, int first, int key,
                                     float (&factor)[kWarpRows]) const {
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) factor[r] = 1.0f;
    if (!mask.active()) return;
    const int lane = block_.lane();
    const uint32_t bits = s.keep_bits(mask, first + lane / 8, key / 4 + lane % 8);
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      factor[r] = block_.from_lane(bits, r * 8 + lane / 4) >> (lane % 4) & 1 ? mask.scale() : 0.0f;
    }
  }

  /// The warp's rows first + r < count of `to`, channels c < d_head: = factor[r] · sum.
  template <class To>
  TEARLESS_BODY void store_rows(const HeadRows<To>& to, int first, const float (&factor)[kWarpRows],
                                const Accumulator& sum) const {
    for_accumulated(to, first, sum, [&](To& x, int r, float value) { x = static_cast<To>(value * factor[r]); });
  }
  /// The same rows += factor · sum.
  TEARLESS_BODY void add_to_rows(const HeadRows<T>& to, int first, float factor, const Accumulator& sum) const {
    for_accumulated(to, first, sum,
                    [&](T& x, int, float value) { x = static_cast<T>(static_cast<float>(x) + factor * value); });
  }

  /// Tile 0 or 1 in shared memory, [tile_rows, row_elements].
  TEARLESS_BODY T* tile(int operand) const {
    return reinterpret_cast<T*>(block_.shared()) + operand * layout_.tile_rows * layout_.row_elements;
  }

  /// Loads rows first … first + count - 1. All threads of the block must call; they synchronise the block before and
  /// after.
  template <class AnyRows>
  TEARLESS_BODY void load_tile(const AnyRows& rows, int first, int count, T* to) const {
    constexpr int kSize = kWideGroup<T>;
    const uint32_t groups = static_cast<uint32_t>(layout_.channels) / kSize;
    const uint32_t all = groups * static_cast<uint32_t>(count);
    for (uint32_t e = static_cast<uint32_t>(block_.thread()); e < all; e += SimtLayout::kThreads) {
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

  /// The warp's rows of an operand in shared memory, [kWarpRows, channels].
  TEARLESS_BODY float* warp_rows(int operand) const { return warp_rows_ + operand * kWarpRows * layout_.channels; }

 protected:
  /// Calls f(element of `to`, r, sum of row r and its channel) for all elements of the warp's rows that the lane has.
  template <class To, class F>
  TEARLESS_BODY void for_accumulated(const HeadRows<To>& to, int first, const Accumulator& sum, F&& f) const {
    TEARLESS_UNROLL
    for (int r = 0; r < kWarpRows; ++r) {
      if (first + r >= to.count) break;
      TEARLESS_UNROLL
      for (int k = 0; k < kPerLane; ++k) {
        const int c = channel(k / kPair) + k % kPair;
        if (c < to.d_head) f(to.row(first + r)[c], r, sum[k][r]);
      }
    }
  }

  /// The first channel of the lane's pair k. Even, as is `channels`, so a pair is inside or outside as a whole.
  TEARLESS_BODY int channel(int k) const { return (k * kLanes + block_.lane()) * kPair; }

  Block& block_;
  const SimtLayout& layout_;
  float* warp_rows_;
  float* weights_;
};

}  // namespace tearless::engine
