// Backward of residual + drop(y) and the norm of it (add_norm_body.h). With δ the gradient of `normed`,
// x̂ = (x - mean) · inverse, δ' = gain ⊙ δ or scale · (1 - shrink x̂) ⊙ δ, and m the dropout multipliers:
//   ∂x        = d_sum + inverse (δ' - mean(δ') - (x - mean) · slope)
//   slope     = inverse² · weight · Σ δ' (x - mean)
//   ∂residual = ∂x,   ∂y = m ⊙ ∂x
//   ∂gain    += Σ_t x̂ ⊙ δ,   ∂bias += Σ_t δ
// with mean(δ') = 0 where the mean is not subtracted or has no gradient, and slope = 0 where the denominator has none.
#pragma once

#include <algorithm>

#include "engine/cuda/block.h"
#include "engine/cuda/column_sums_body.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// d_x += the gradient through the norm for one group (kernels.h: RowStatistics), given scaled = δ',
/// mean = mean(δ') or 0, and slope = inverse² · weight · Σ δ' (x - mean).
template <int kSize>
TEARLESS_BODY void add_norm_gradient(const RowStatistics<float>& s, float mean, float slope, const float (&x)[kSize],
                                     const float (&scaled)[kSize], float (&d_x)[kSize]) {
  TEARLESS_UNROLL
  for (int i = 0; i < kSize; ++i) d_x[i] += s.inverse * (scaled[i] - mean - (x[i] - s.mean) * slope);
}

/// d_x = d_sum of one group, 0 where it is not given.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void load_d_sum(const AddNormBackward<T>& a, int64_t t, int64_t c, int count, float (&d_x)[kSize]) {
  if (a.d_sum) {
    load_group<kAligned>(a.d_sum + t * a.width + c, count, d_x);
  } else {
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) d_x[i] = 0;
  }
}

/// Writes d_residual and d_y of one group. REQUIRES: nothing of this group is read afterwards, because d_residual may
/// be the same memory as d_normed or d_sum.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void store_gradients(const AddNormBackward<T>& a, const Mask& mask, const RowCounter& counter, int64_t t,
                                   int64_t c, int count, float (&d_x)[kSize]) {
  store_group<kAligned>(a.d_residual + t * a.width + c, count, d_x);
  if (!a.d_y) return;
  mask.apply(c, counter.outer, counter.sentence, d_x);
  store_group<kAligned>(a.d_y + t * a.width + c, count, d_x);
}

/// Whether the mean of δ' is part of the gradient.
template <class T>
TEARLESS_BODY bool has_mean_term(const AddNormBackward<T>& a) {
  return a.norm.centred && a.norm.mean_has_gradient;
}

/// scaled = δ' of one group with the rows x and δ = d.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void scale_group(const AddNormBackward<T>& a, const RowStatistics<float>& s, int64_t c, int count,
                               const float (&x)[kSize], const float (&d)[kSize], float (&scaled)[kSize]) {
  if (a.gain_size > 1) {
    load_group<kAligned>(a.gain + c, count, scaled);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) scaled[i] *= d[i];
  } else {
    const float gain = a.gain_size == 1 ? a.gain[0] : static_cast<float>(a.norm.scale);
    const float shrink = static_cast<float>(a.norm.shrink);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) {
      scaled[i] = shrink == 0.0f ? gain * d[i] : gain * (1.0f - shrink * ((x[i] - s.mean) * s.inverse)) * d[i];
    }
  }
}

/// Backward without a norm: d_residual = d_sum, d_y = m ⊙ d_sum with m the dropout multipliers.
template <class T, bool kAligned>
struct AddBackwardRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "add_backward";
  using GroupBody<T, kAligned>::kSize;
  AddNormBackward<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = this->group(block);
    if (count == 0) return;
    const Mask mask(a.dropout, a.d_y != nullptr);
    float d_x[kSize];
    load_group<kAligned>(a.d_sum + t * a.width + c, count, d_x);
    if (a.d_residual != a.d_sum) store_group<kAligned>(a.d_residual + t * a.width + c, count, d_x);
    if (!a.d_y) return;
    const RowCounter counter = counter_of(mask, a.counters, t);
    mask.apply(c, counter.outer, counter.sentence, d_x);
    store_group<kAligned>(a.d_y + t * a.width + c, count, d_x);
  }
};

/// Backward with one warp per row. A block takes rows_per_block rows, each warp every warps()-th of them. A warp sums
/// the gradients of gain and bias over its rows in registers; then the warps' sums are added in order in shared memory.
template <class T, bool kAligned, int kGroups>
struct AddNormBackwardRows {
  static constexpr const char* kName = "add_norm_backward";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kGroup<T, kAligned>;
  AddNormBackward<T> a;
  int64_t rows_per_block;
  float* partial;              // [blocks, gain_width + bias_width]
  int gain_width, bias_width;  // 0: gradient not wanted

  Shape shape() const {
    const int64_t bytes = (gain_width + bias_width) * static_cast<int64_t>(sizeof(float));
    return {blocks_for(a.rows, rows_per_block), kThreads, std::max(bytes, kBlockSumBytes<float>)};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t first = block.index() * rows_per_block;
    const int64_t last = first + rows_per_block < a.rows ? first + rows_per_block : a.rows;
    const Mask mask(a.dropout, a.d_y != nullptr);
    Groups gain_sum = {}, bias_sum = {};
    float scalar_sum = 0;
    for (int64_t t = first + block.warp(); t < last; t += block.warps()) {
      backward_row(block, mask, t, gain_sum, bias_sum, scalar_sum);
    }
    if (gain_width + bias_width > 0) store_partial(block, gain_sum, bias_sum, scalar_sum);
  }

 private:
  using Groups = float[kGroups][kSize];  // the lane's channels of a row

  template <class Block>
  TEARLESS_BODY static int channel(const Block& block, int g) {
    return (g * kLanes + block.lane()) * kSize;
  }

  /// d_residual and d_y of row t. Adds its terms of the gradients of gain and bias to gain_sum and bias_sum, and of a
  /// scalar gain to scalar_sum, the sum over the lane's channels. These are not members of one struct because nvcc then
  /// fuses other multiplications with additions, which changes bits.
  template <class Block>
  TEARLESS_BODY void backward_row(Block& block, const Mask& mask, int64_t t, Groups& gain_sum, Groups& bias_sum,
                                  float& scalar_sum) const {
    const RowStatistics<float> s = a.statistics[t];
    const RowCounter counter = counter_of(mask, a.counters, t);
    float x[kGroups][kSize], d[kGroups][kSize];
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(block, g);
      const int count = inside<kSize>(c, a.width);
      load_group<kAligned>(a.x + t * a.width + c, count, x[g]);
      load_group<kAligned>(a.d_normed + t * a.width + c, count, d[g]);
    }
    float sum = 0, dot = 0;  // of δ' and of δ' (x - mean)
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(block, g);
      float scaled[kSize];
      scale_group<kAligned>(a, s, c, inside<kSize>(c, a.width), x[g], d[g], scaled);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        const float centred = x[g][i] - s.mean;  // past the end of the row d is 0
        const float of_gain = centred * s.inverse * d[g][i];
        gain_sum[g][i] += of_gain;
        bias_sum[g][i] += d[g][i];
        scalar_sum += of_gain;
        sum += scaled[i];
        dot += scaled[i] * centred;
        d[g][i] = scaled[i];
      }
    }
    float d_x[kGroups][kSize];
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(block, g);
      load_d_sum<kAligned>(a, t, c, inside<kSize>(c, a.width), d_x[g]);
    }
    const float mean = has_mean_term(a) ? warp_sum(block, sum) / static_cast<float>(a.width) : 0.0f;
    const float slope = s.inverse * s.inverse * s.weight * warp_sum(block, dot);
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(block, g);
      add_norm_gradient(s, mean, slope, x[g], d[g], d_x[g]);
      store_gradients<kAligned>(a, mask, counter, t, c, inside<kSize>(c, a.width), d_x[g]);
    }
  }

  /// Adds the warps' sums, one warp after another, and writes them to the block's row of `partial`.
  template <class Block>
  TEARLESS_BODY void store_partial(Block& block, const Groups& gain_sum, const Groups& bias_sum,
                                   float scalar_sum) const {
    float* sums = reinterpret_cast<float*>(block.shared());  // [gain_width + bias_width]
    float* to = partial + block.index() * (gain_width + bias_width);
    if (gain_width == 1) {
      const float total = block_sum(block, scalar_sum, sums);
      if (block.thread() == 0) to[0] = total;
    }
    for (int w = 0; w < block.warps(); ++w) {
      if (block.warp() == w) {
        TEARLESS_UNROLL
        for (int g = 0; g < kGroups; ++g) {
          const int c = channel(block, g);
          TEARLESS_UNROLL
          for (int i = 0; i < kSize; ++i) {
            if (c + i >= a.width) break;
            if (gain_width > 1) sums[c + i] = w == 0 ? gain_sum[g][i] : sums[c + i] + gain_sum[g][i];
            if (bias_width == 0) continue;
            float& of_bias = sums[gain_width + c + i];
            of_bias = w == 0 ? bias_sum[g][i] : of_bias + bias_sum[g][i];
          }
        }
      }
      block.sync();
    }
    for (int c = (gain_width == 1 ? 1 : 0) + block.thread(); c < gain_width + bias_width; c += kThreads) {
      to[c] = sums[c];
    }
  }
};

/// Backward with one block per row. The gradient of a scalar gain from row t goes to row_gain[t].
template <class T, bool kAligned>
struct AddNormBackwardWideRow {
  static constexpr const char* kName = "add_norm_backward_wide";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kGroup<T, kAligned>;
  AddNormBackward<T> a;
  float* row_gain;  // [T] or null

  Shape shape() const { return {a.rows, kThreads, kBlockSumBytes<float>}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t t = block.index();
    const Mask mask(a.dropout, a.d_y != nullptr);
    const RowCounter counter = counter_of(mask, a.counters, t);
    const RowStatistics<float> s = a.statistics[t];
    const auto for_groups = [&](auto&& f) {
      for (int64_t c = int64_t{block.thread()} * kSize; c < a.width; c += kThreads * kSize) {
        const int count = inside<kSize>(c, a.width);
        float x[kSize], d[kSize], scaled[kSize];
        load_group<kAligned>(a.x + t * a.width + c, count, x);
        load_group<kAligned>(a.d_normed + t * a.width + c, count, d);
        scale_group<kAligned>(a, s, c, count, x, d, scaled);
        f(c, count, x, d, scaled);
      }
    };
    using Channels = float[kSize];
    float sum = 0, dot = 0, plain = 0;
    for_groups([&](int64_t, int, Channels& x, Channels& d, Channels& scaled) {
      for (int i = 0; i < kSize; ++i) {
        sum += scaled[i];
        dot += scaled[i] * (x[i] - s.mean);
        plain += d[i] * (x[i] - s.mean);
      }
    });
    const float mean = has_mean_term(a) ? block_sum(block, sum, block.shared()) / static_cast<float>(a.width) : 0.0f;
    const float slope = s.inverse * s.inverse * s.weight * block_sum(block, dot, block.shared());
    if (row_gain) {
      const float total = s.inverse * block_sum(block, plain, block.shared());
      if (block.thread() == 0) row_gain[t] = total;
    }
    for_groups([&](int64_t c, int count, Channels& x, Channels&, Channels& scaled) {
      float d_x[kSize];
      load_d_sum<kAligned>(a, t, c, count, d_x);
      add_norm_gradient(s, mean, slope, x, scaled, d_x);
      store_gradients<kAligned>(a, mask, counter, t, c, count, d_x);
    });
  }
};

/// The rows x̂ ⊙ δ, whose column sums are the gradient of a gain per channel.
template <class T, bool kAligned>
struct GainRows {
  static constexpr const char* kName = "add_norm_gain";
  AddNormBackward<T> a;

  template <int kSize>
  TEARLESS_BODY void load(int64_t t, int64_t c, int count, float (&d)[kSize]) const {
    const RowStatistics<float> s = a.statistics[t];
    float x[kSize];
    load_group<kAligned>(a.x + t * a.width + c, count, x);
    load_group<kAligned>(a.d_normed + t * a.width + c, count, d);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) d[i] *= (x[i] - s.mean) * s.inverse;
  }
};

}  // namespace tearless::engine
