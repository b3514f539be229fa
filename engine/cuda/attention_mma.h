// What forward and backward of attention on tensor cores share (attention_body.h): loads, stores, and the two matmuls.
//
// A warp takes 16 rows of one side, "the warp's rows", and holds them in registers as the left operand (a) of mma. The
// rows of the other side are loaded into shared memory tile by tile, padded with zeros to a multiple of 16 rows and 16
// channels, so that rows of another span are never read.
//   dots()            the warp's rows times 16 rows of a tile: a 16 × 16 fragment;
//   add_weighted()    += that fragment times 16 rows of a tile. A fragment has the register layout of a left operand,
//                     so it needs no exchange between lanes; it is rounded to bf16.
#pragma once

#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"

namespace tearless::engine {

/// A 16 × 16 fragment, as two mma accumulators: the warp's rows × 16 rows of a tile. With g = lane / 4, t = lane % 4
/// (block.h), the lane's element [j][2 · r + i] is row g + 8 r, column 8 j + 2 t + i.
using MmaFragment = float[2][4];

/// f(j, x, r, column) for the lane's eight elements [j][x] of a fragment: they are in the lane's row r (0 or 1), and in
/// column `column` of the fragment.
template <class F>
TEARLESS_BODY void for_fragment(int t, F&& f) {
  TEARLESS_UNROLL
  for (int j = 0; j < 2; ++j) {
    TEARLESS_UNROLL
    for (int x = 0; x < 4; ++x) f(j, x, x / 2, 8 * j + 2 * t + x % 2);
  }
}

/// For one thread. kChunks: blocks of 16 channels.
template <class Block, int kChunks>
class MmaWarp {
 public:
  static constexpr int kRowElements = kMmaRowElements<kChunks>;
  using WarpRows = uint32_t[kChunks][4];
  using Accumulator = float[2 * kChunks][4];  // the warp's rows × channels, as fragments

  TEARLESS_BODY MmaWarp(Block& block, const MmaLayout& layout)
      : block_(block), layout_(layout), warp_(block.from_lane(block.warp(), 0)) {}

  /// The warp's number, broadcast from lane 0 so that the compiler knows it to be the same in all lanes.
  TEARLESS_BODY int warp() const { return warp_; }
  /// The lane's rows of a fragment are row(0) = g and row(1) = g + 8, with g and t of block.h.
  TEARLESS_BODY int row(int r) const { return block_.lane() / 4 + 8 * r; }
  TEARLESS_BODY int t() const { return block_.lane() % 4; }

  /// Loads rows first … first + count - 1 of two matrices into tiles 0 and 1, and zeros up to a multiple of 16 rows.
  /// All threads of the block must call: it has a block barrier at its start and at its end.
  TEARLESS_BODY void load_tiles(const HeadRows<const bf16>& of_tile_0, const HeadRows<const bf16>& of_tile_1, int first,
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
        if (i >= count || c >= of_tile_0.d_head) continue;
        bytes[0][n] = load_sixteen(of_tile_0.row(first + i) + c);
        bytes[1][n] = load_sixteen(of_tile_1.row(first + i) + c);
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
  TEARLESS_BODY void load_warp_rows(const HeadRows<const bf16>& rows, int first, WarpRows& warp_rows) const {
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int i = first + row(r);
      const bf16* const at = rows.row(i) + 2 * t();
      TEARLESS_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const bool there = i < rows.count && chunk * 16 < rows.d_head;
        warp_rows[chunk][r] = there ? load_packed<uint32_t>(at + chunk * 16) : 0;
        warp_rows[chunk][r + 2] = there ? load_packed<uint32_t>(at + chunk * 16 + 8) : 0;
      }
    }
  }

  /// dot = the warp's rows · (rows first … first + 15 of a tile)ᵀ.
  TEARLESS_BODY void dots(int of_tile, int first, const WarpRows& warp_rows, MmaFragment& dot) const {
    const int lane = block_.lane();
    const bf16* from = tile(of_tile) + (first + lane % 8 + lane / 16 * 8) * kRowElements + lane / 8 % 2 * 8;
    for_fragment(t(), [&](int j, int x, int, int) { dot[j][x] = 0; });
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      uint32_t other[4];
      block_.template load_matrices<false>(from + chunk * 16, other);
      block_.mma(warp_rows[chunk], other[0], other[1], dot[0]);
      block_.mma(warp_rows[chunk], other[2], other[3], dot[1]);
    }
  }

  /// The same as load_warp_rows(), from rows that are in a tile.
  TEARLESS_BODY void load_warp_rows(int of_tile, int first, WarpRows& warp_rows) const {
    const bf16* from = tile(of_tile) + (first + block_.lane() % 16) * kRowElements + block_.lane() / 16 * 8;
    TEARLESS_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      block_.template load_matrices<false>(from + chunk * 16, warp_rows[chunk]);
    }
  }

  /// sum += weight · rows first … first + 15 of a tile.
  TEARLESS_BODY void add_weighted(int of_tile, int first, const MmaFragment& weight, Accumulator& sum) const {
    const uint32_t left[4] = {bf16_pair_bits(weight[0][0], weight[0][1]), bf16_pair_bits(weight[0][2], weight[0][3]),
                              bf16_pair_bits(weight[1][0], weight[1][1]), bf16_pair_bits(weight[1][2], weight[1][3])};
    add_weighted(of_tile, first, left, sum);
  }
  /// The same, of weights as the left operand of mma.
  TEARLESS_BODY void add_weighted(int of_tile, int first, const uint32_t (&left)[4], Accumulator& sum) const {
    const int lane = block_.lane();
    const bf16* from = tile(of_tile) + (first + lane % 16) * kRowElements + lane / 16 * 8;
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
  /// bits[r] is 1 where query row(r) keeps key + j. Of the four lanes that share two rows, each makes the Philox calls
  /// of half the keys of one row.
  TEARLESS_BODY void keep_bits(const Mask& mask, const SpanHead<bf16>& s, int first, int key,
                               uint32_t (&bits)[2]) const {
    const int odd = t() % 2, half = t() / 2;
    uint32_t drawn = 0;
    TEARLESS_UNROLL
    for (int j = 0; j < 2; ++j) {
      drawn |= s.keep_bits(mask, first + row(odd), key / 4 + j * 2 + half) << (8 * j + 4 * half);
    }
    drawn |= block_.from_lane(drawn, block_.lane() ^ 2);
    const uint32_t other = block_.from_lane(drawn, block_.lane() ^ 1);
    bits[0] = odd ? other : drawn;
    bits[1] = odd ? drawn : other;
  }
  /// The multipliers of these bits: 0 or mask.scale().
  TEARLESS_BODY void dropout_factors(const Mask& mask, const uint32_t (&bits)[2], MmaFragment& factor) const {
    for_fragment(t(),
                 [&](int j, int x, int r, int column) { factor[j][x] = bits[r] >> column & 1 ? mask.scale() : 0.0f; });
  }
  /// Those of no dropout.
  TEARLESS_BODY void no_dropout(MmaFragment& factor) const {
    for_fragment(t(), [&](int j, int x, int, int) { factor[j][x] = 1.0f; });
  }

  /// Row first + row(r) of `to`, if it exists, = factor[r] · sum. Changes `sum`.
  TEARLESS_BODY void store_rows(const HeadRows<bf16>& to, int first, const float (&factor)[2], Accumulator& sum) const {
    swap_pairs(sum);
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int i = first + row(r);
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
  /// The same rows += factor · sum, or where `stores` = factor · sum. Changes `sum`.
  TEARLESS_BODY void add_to_rows(const HeadRows<bf16>& to, int first, float factor, Accumulator& sum,
                                 bool stores) const {
    swap_pairs(sum);
    TEARLESS_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int i = first + row(r);
      if (i >= to.count) continue;
      bf16* const at = to.row(i);
      Packed<bf16, 4> old[kChunks] = {};  // all loads in flight before the first store
      TEARLESS_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        if (!stores && chunk * 16 < to.d_head) old[chunk] = load_packed<Packed<bf16, 4>>(at + channel(chunk));
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

  TEARLESS_BODY bf16* tile(int of_tile) const {
    return reinterpret_cast<bf16*>(block_.shared()) + of_tile * layout_.tile_rows * kRowElements;
  }

 private:
  /// Exchanges channels between neighbouring lanes: instead of 2 channels in each of the two blocks of 8 a lane then
  /// has 4 consecutive channels of one, so that the four lanes of a row store 32 contiguous bytes. Those of row r are
  /// sum[2 · chunk][2 r], [2 r + 1], sum[2 · chunk + 1][2 r], [2 r + 1], from channel(chunk) on.
  TEARLESS_BODY void swap_pairs(Accumulator& sum) const {
    const bool odd = t() % 2 != 0;
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
  TEARLESS_BODY int channel(int chunk) const { return chunk * 16 + t() % 2 * 8 + t() / 2 * 4; }

  Block& block_;
  const MmaLayout& layout_;
  int warp_;
};

}  // namespace tearless::engine
