// Backward of residual + drop(y) and its norm (add_norm_backward.h has the equations) for rows of bf16 on 16 bytes,
// with the loads of a warp's next row issued before it computes with the row that it has. Rows stay packed in
// registers, half as many as their values in fp32, so as many blocks are resident as without the second row. Chosen by
// AddNormBackward::ahead.
#pragma once

#include <cstdint>

#include "engine/cuda/add_norm_backward.h"
#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// One warp per row, as AddNormBackwardRows. kGroups: groups of 16 bytes of a row that a lane has.
template <int kGroups>
struct AddNormBackwardAhead {
  static constexpr const char* kName = "add_norm_backward_ahead";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kWideGroup<bf16>;
  AddNormBackward<bf16> a;
  int64_t rows_per_block;
  float* partial;              // [blocks, gain_width + bias_width]
  int gain_width, bias_width;  // 0: gradient not wanted

  Shape shape() const {
    return {blocks_for(a.rows, rows_per_block), kThreads,
            (kThreads / kLanes) * int64_t{gain_width + bias_width} * static_cast<int64_t>(sizeof(float))};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t first = block.index() * rows_per_block;
    const int64_t last = first + rows_per_block < a.rows ? first + rows_per_block : a.rows;
    const Mask mask(a.dropout, a.d_y != nullptr);
    Groups gain_sum = {}, bias_sum = {};
    float scalar_sum = 0;
    Row row = load(block, mask, first + block.warp(), last);
    for (int64_t t = first + block.warp(); t < last; t += block.warps()) {
      const Row next = load(block, mask, t + block.warps(), last);
      backward_row(block, mask, t, row, gain_sum, bias_sum, scalar_sum);
      row = next;
    }
    if (gain_width + bias_width > 0) store_partial(block, gain_sum, bias_sum, scalar_sum);
  }

 private:
  using Groups = float[kGroups][kSize];  // the lane's channels of a row

  struct Row {
    SixteenBytes<bf16> x[kGroups], d_normed[kGroups], d_sum[kGroups];
    RowStatistics<float> statistics;
    RowCounter counter;
  };

  template <class Block>
  TEARLESS_BODY static int channel(const Block& block, int g) {
    return (g * kLanes + block.lane()) * kSize;
  }

  /// The lane's part of row t; zeros past the end of the row, and for t past the block's last row.
  template <class Block>
  TEARLESS_BODY Row load(const Block& block, const Mask& mask, int64_t t, int64_t last) const {
    Row row = {};
    if (t >= last) return row;
    row.statistics = a.statistics[t];
    row.counter = counter_of(mask, a.counters, t);
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(block, g);
      if (c >= a.width) break;
      row.x[g] = load_sixteen(a.x + t * a.width + c);
      row.d_normed[g] = load_sixteen(a.d_normed + t * a.width + c);
      if (a.d_sum) row.d_sum[g] = load_sixteen(a.d_sum + t * a.width + c);
    }
    return row;
  }

  TEARLESS_BODY static void unpack(const SixteenBytes<bf16>& bytes, float (&x)[kSize]) {
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] = static_cast<float>(bytes.at[i]);
  }

  /// As AddNormBackwardRows::backward_row().
  template <class Block>
  TEARLESS_BODY void backward_row(Block& block, const Mask& mask, int64_t t, const Row& row, Groups& gain_sum,
                                  Groups& bias_sum, float& scalar_sum) const {
    const RowStatistics<float>& s = row.statistics;
    const auto for_groups = [&](auto&& f) {
      TEARLESS_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        const int c = channel(block, g), count = inside<kSize>(c, a.width);
        float x[kSize], d[kSize], scaled[kSize];
        unpack(row.x[g], x);
        unpack(row.d_normed[g], d);
        scale_group<true>(a, s, c, count, x, d, scaled);
        f(g, c, count, x, d, scaled);
      }
    };
    using Channels = float[kSize];
    float sum = 0, dot = 0;  // of δ' and of δ' (x - mean)
    for_groups([&](int g, int, int, Channels& x, Channels& d, Channels& scaled) {
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        const float centred = x[i] - s.mean;  // past the end of the row d is 0
        const float of_gain = centred * s.inverse * d[i];
        gain_sum[g][i] += of_gain;
        bias_sum[g][i] += d[i];
        scalar_sum += of_gain;
        sum += scaled[i];
        dot += scaled[i] * centred;
      }
    });
    const float mean = has_mean_term(a) ? warp_sum(block, sum) / static_cast<float>(a.width) : 0.0f;
    const float slope = s.inverse * s.inverse * s.weight * warp_sum(block, dot);
    for_groups([&](int g, int c, int count, Channels& x, Channels&, Channels& scaled) {
      float d_x[kSize];
      unpack(row.d_sum[g], d_x);
      add_norm_gradient(s, mean, slope, x, scaled, d_x);
      store_gradients<true>(a, mask, row.counter, t, c, count, d_x);
    });
  }

  /// Every warp leaves its sums in shared memory; each thread then adds those of its channels, in the order of warps.
  template <class Block>
  TEARLESS_BODY void store_partial(Block& block, const Groups& gain_sum, const Groups& bias_sum,
                                   float scalar_sum) const {
    const int width = gain_width + bias_width;
    float* sums = reinterpret_cast<float*>(block.shared());  // [warps, width]
    float* of_warp = sums + block.warp() * width;
    if (gain_width == 1) {
      const float total = warp_sum(block, scalar_sum);
      if (block.lane() == 0) of_warp[0] = total;
    }
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        const int c = channel(block, g) + i;
        if (c >= a.width) break;
        if (gain_width > 1) of_warp[c] = gain_sum[g][i];
        if (bias_width > 0) of_warp[gain_width + c] = bias_sum[g][i];
      }
    }
    block.sync();
    for (int c = block.thread(); c < width; c += kThreads) {
      float total = sums[c];
      for (int w = 1; w < kThreads / kLanes; ++w) total += sums[w * width + c];
      partial[block.index() * width + c] = total;
    }
  }
};

}  // namespace tearless::engine
