// residual + drop(y) and the norm of it (kernels.h: AddNorm). Rows of up to 1024 channels: one warp per row, which it
// holds in registers. Wider rows: one block per row, which reads the row again for every reduction.
//
// Statistics are in float. They are those of x rounded to T, because backward reads x from memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "engine/cuda/block.h"
#include "engine/cuda/column_sums_body.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

inline constexpr int64_t kWidestWarpRow = 1024;

/// The statistics of a row from squares = Σ (x - mean)².
TEARLESS_BODY RowStatistics<float> statistics_of(const RowNorm& norm, float mean, float squares, int64_t width) {
  const float d = static_cast<float>(width);
  const float eps = static_cast<float>(norm.eps);
  if (norm.denominator == RowNorm::Denominator::kOne) return {mean, 1.0f, 0.0f};
  if (norm.denominator == RowNorm::Denominator::kRootAddEps) {
    return {mean, 1.0f / sqrtf(squares / d + eps), 1.0f / d};
  }
  const float length = sqrtf(squares);
  // A NaN length must not count as clamped, so the test is length <= eps.
  return length <= eps ? RowStatistics<float>{mean, 1.0f / eps, 0.0f} : RowStatistics<float>{mean, 1.0f / length, 1.0f};
}

/// A row's dropout counter (random.h).
struct RowCounter {
  uint32_t outer = 0, line = 0;
};
/// That of row t; {0, 0} where the mask is not active, because `counters` may then be null.
TEARLESS_BODY RowCounter counter_of(const Mask& mask, const DropoutCounters& counters, int64_t t) {
  if (!mask.active()) return {};
  return {static_cast<uint32_t>(counters.positions[t]), static_cast<uint32_t>(counters.sentence_ids[t])};
}

template <bool kAligned, int kSize, class T>
TEARLESS_BODY void load_both(const AddNorm<T>& a, int64_t t, int64_t c, int count, float (&residual)[kSize],
                             float (&y)[kSize]) {
  load_group<kAligned>(a.residual + t * a.width + c, count, residual);
  if (a.y) load_group<kAligned>(a.y + t * a.width + c, count, y);
}
/// x += drop(y), rounded to T.
template <int kSize, class T>
TEARLESS_BODY void add_dropped(const AddNorm<T>& a, const Mask& mask, const RowCounter& counter, int64_t c,
                               float (&y)[kSize], float (&x)[kSize]) {
  if (!a.y) return;
  mask.apply(c, counter.outer, counter.line, y);
  TEARLESS_UNROLL
  for (int i = 0; i < kSize; ++i) x[i] = rounded_to<T>(x[i] + y[i]);
}

/// normed = gain ⊙ x̂ + bias of one group.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void norm_group(const AddNorm<T>& a, const RowStatistics<float>& s, int64_t t, int64_t c, int count,
                              float (&x)[kSize]) {
  const float inverse = a.gain_size == 1 ? s.inverse * a.gain[0] : s.inverse;
  TEARLESS_UNROLL
  for (int i = 0; i < kSize; ++i) x[i] = (x[i] - s.mean) * inverse;
  float of_channel[kSize];
  if (a.gain_size > 1) {
    load_group<kAligned>(a.gain + c, count, of_channel);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] *= of_channel[i];
  }
  if (a.bias) {
    load_group<kAligned>(a.bias + c, count, of_channel);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] += of_channel[i];
  }
  store_group<kAligned>(a.normed + t * a.width + c, count, x);
}

/// One warp per row; a lane holds kGroups groups of it.
template <class T, bool kAligned, int kGroups>
struct AddNormRows {
  static constexpr const char* kName = "add_norm";
  static constexpr int kThreads = 128;
  static constexpr int kSize = kGroup<T, kAligned>;
  static constexpr int kBlocksAtOnce = kGroups * kSize <= 16 ? 6 : 4;  // resident blocks per SM; no register spills
  AddNorm<T> a;

  Shape shape() const { return {blocks_for(a.rows, kThreads / kLanes), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t t = block.index() * block.warps() + block.warp();
    if (t >= a.rows) return;
    const Mask mask(a.dropout, a.y != nullptr);
    const RowCounter counter = counter_of(mask, a.counters, t);
    const auto channel = [&](int g) { return (g * kLanes + block.lane()) * kSize; };
    float x[kGroups][kSize], y[kGroups][kSize];
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {  // all loads first: the compiler may not move a load across a store
      const int c = channel(g);
      load_both<kAligned>(a, t, c, inside<kSize>(c, a.width), x[g], y[g]);
    }
    float sum = 0;
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(g);
      add_dropped(a, mask, counter, c, y[g], x[g]);
      if (a.sum) store_group<kAligned>(a.sum + t * a.width + c, inside<kSize>(c, a.width), x[g]);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) sum += x[g][i];  // 0 past the end of the row
    }
    if (!a.normed) return;

    const float mean = a.norm.centred ? warp_sum(block, sum) / static_cast<float>(a.width) : 0.0f;
    float squares = 0;
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int count = inside<kSize>(channel(g), a.width);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (i < count) squares += (x[g][i] - mean) * (x[g][i] - mean);
      }
    }
    const RowStatistics<float> s = statistics_of(a.norm, mean, warp_sum(block, squares), a.width);
    if (a.statistics && block.lane() == 0) a.statistics[t] = s;
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(g);
      norm_group<kAligned>(a, s, t, c, inside<kSize>(c, a.width), x[g]);
    }
  }
};

/// One block per row of more than kWidestWarpRow channels.
template <class T, bool kAligned>
struct AddNormWideRow {
  static constexpr const char* kName = "add_norm_wide";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kGroup<T, kAligned>;
  AddNorm<T> a;

  Shape shape() const { return {a.rows, kThreads, kBlockSumBytes<float>}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t t = block.index();
    const Mask mask(a.dropout, a.y != nullptr);
    const RowCounter counter = counter_of(mask, a.counters, t);
    const auto for_groups = [&](auto&& f) {
      for (int64_t c = int64_t{block.thread()} * kSize; c < a.width; c += kThreads * kSize) {
        const int count = inside<kSize>(c, a.width);
        float x[kSize], y[kSize];
        load_both<kAligned>(a, t, c, count, x, y);
        add_dropped(a, mask, counter, c, y, x);
        f(c, count, x);
      }
    };
    float sum = 0;
    for_groups([&](int64_t c, int count, float(&x)[kSize]) {
      if (a.sum) store_group<kAligned>(a.sum + t * a.width + c, count, x);
      for (int i = 0; i < kSize; ++i) sum += x[i];
    });
    if (!a.normed) return;

    const float mean = a.norm.centred ? block_sum(block, sum, block.shared()) / static_cast<float>(a.width) : 0.0f;
    float squares = 0;
    for_groups([&](int64_t, int count, float(&x)[kSize]) {
      for (int i = 0; i < kSize; ++i) {
        if (i < count) squares += (x[i] - mean) * (x[i] - mean);
      }
    });
    const RowStatistics<float> s = statistics_of(a.norm, mean, block_sum(block, squares, block.shared()), a.width);
    if (a.statistics && block.thread() == 0) a.statistics[t] = s;
    for_groups([&](int64_t c, int count, float(&x)[kSize]) { norm_group<kAligned>(a, s, t, c, count, x); });
  }
};

/// d_x += the gradient through the norm for one group (kernels.h: RowStatistics), given scaled = δ' = gain ⊙ δ,
/// mean = mean(δ') or 0, and slope = inverse² · weight · Σ δ' (x - mean).
template <int kSize>
TEARLESS_BODY void add_norm_gradient(const RowStatistics<float>& s, float mean, float slope, const float (&x)[kSize],
                                     const float (&scaled)[kSize], float (&d_x)[kSize]) {
  TEARLESS_UNROLL
  for (int i = 0; i < kSize; ++i) d_x[i] += s.inverse * (scaled[i] - mean - (x[i] - s.mean) * slope);
}

/// d_x = d_sum of one group, 0 where it is not given.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void load_more(const AddNormBackward<T>& a, int64_t t, int64_t c, int count, float (&d_x)[kSize]) {
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
  mask.apply(c, counter.outer, counter.line, d_x);
  store_group<kAligned>(a.d_y + t * a.width + c, count, d_x);
}

/// scaled = δ' = gain ⊙ δ of one group.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void scale_group(const AddNormBackward<T>& a, int64_t c, int count, const float (&d)[kSize],
                               float (&scaled)[kSize]) {
  if (a.gain_size > 1) {
    load_group<kAligned>(a.gain + c, count, scaled);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) scaled[i] *= d[i];
  } else {
    const float gain = a.gain_size == 1 ? a.gain[0] : 1.0f;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) scaled[i] = gain * d[i];
  }
}

/// Backward without a norm: d_residual = d_sum, d_y = m ⊙ d_sum with m the dropout multipliers.
template <class T, bool kAligned>
struct AddBackwardRows {
  static constexpr const char* kName = "add_backward";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  AddNormBackward<T> a;
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.rows), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = group_of<kSize>(tiling, block, a.width);
    if (t >= a.rows || count == 0) return;
    const Mask mask(a.dropout, a.d_y != nullptr);
    float d_x[kSize];
    load_group<kAligned>(a.d_sum + t * a.width + c, count, d_x);
    if (a.d_residual != a.d_sum) store_group<kAligned>(a.d_residual + t * a.width + c, count, d_x);
    if (!a.d_y) return;
    const RowCounter counter = counter_of(mask, a.counters, t);
    mask.apply(c, counter.outer, counter.line, d_x);
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
    const auto channel = [&](int g) { return (g * kLanes + block.lane()) * kSize; };
    float gain_sum[kGroups][kSize] = {}, bias_sum[kGroups][kSize] = {};
    float scalar_sum = 0;

    for (int64_t t = first + block.warp(); t < last; t += block.warps()) {
      const RowStatistics<float> s = a.statistics[t];
      const RowCounter counter = counter_of(mask, a.counters, t);
      float x[kGroups][kSize], d[kGroups][kSize];
      TEARLESS_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        const int count = inside<kSize>(channel(g), a.width);
        load_group<kAligned>(a.x + t * a.width + channel(g), count, x[g]);
        load_group<kAligned>(a.d_normed + t * a.width + channel(g), count, d[g]);
      }
      float sum = 0, dot = 0;
      TEARLESS_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        const int count = inside<kSize>(channel(g), a.width);
        float scaled[kSize];
        scale_group<kAligned>(a, channel(g), count, d[g], scaled);
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
        load_more<kAligned>(a, t, channel(g), inside<kSize>(channel(g), a.width), d_x[g]);
      }
      const float mean = a.norm.centred ? warp_sum(block, sum) / static_cast<float>(a.width) : 0.0f;
      const float slope = s.inverse * s.inverse * s.weight * warp_sum(block, dot);
      TEARLESS_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        const int c = channel(g);
        add_norm_gradient(s, mean, slope, x[g], d[g], d_x[g]);
        store_gradients<kAligned>(a, mask, counter, t, c, inside<kSize>(c, a.width), d_x[g]);
      }
    }

    if (gain_width + bias_width == 0) return;
    float* sums = reinterpret_cast<float*>(block.shared());
    float* to = partial + block.index() * (gain_width + bias_width);
    if (gain_width == 1) {
      const float total = block_sum(block, scalar_sum, sums);
      if (block.thread() == 0) to[0] = total;
    }
    for (int w = 0; w < block.warps(); ++w) {
      if (block.warp() == w) {
        TEARLESS_UNROLL
        for (int g = 0; g < kGroups; ++g) {
          const int c = channel(g);
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
        scale_group<kAligned>(a, c, count, d, scaled);
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
    const float mean = a.norm.centred ? block_sum(block, sum, block.shared()) / static_cast<float>(a.width) : 0.0f;
    const float slope = s.inverse * s.inverse * s.weight * block_sum(block, dot, block.shared());
    if (row_gain) {
      const float total = s.inverse * block_sum(block, plain, block.shared());
      if (block.thread() == 0) row_gain[t] = total;
    }
    for_groups([&](int64_t c, int count, Channels& x, Channels&, Channels& scaled) {
      float d_x[kSize];
      load_more<kAligned>(a, t, c, count, d_x);
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

/// Calls f with the number of groups that a lane holds of a row of `width` channels, a power of two, as an
/// std::integral_constant.
template <int kSize, int kGroups = 1, class F>
void with_groups(int64_t width, F&& f) {
  constexpr int kHeld = kGroups * kLanes * kSize;
  if constexpr (kHeld < kWidestWarpRow) {
    if (width > kHeld) return with_groups<kSize, 2 * kGroups>(width, f);
  }
  f(std::integral_constant<int, kGroups>{});
}

template <class T, bool kAligned, class Runner>
void launch_add_norm(const AddNorm<T>& a, Runner& runner) {
  if (a.width > kWidestWarpRow) return runner.run(AddNormWideRow<T, kAligned>{a});
  with_groups<kGroup<T, kAligned>>(a.width,
                                   [&](auto groups) { runner.run(AddNormRows<T, kAligned, groups.value>{a}); });
}

template <class T, class Runner>
void launch(const AddNorm<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  const auto may_be = [&](const auto* data) { return !data || is_aligned(data, a.width); };
  const bool aligned = may_be(a.residual) && may_be(a.y) && may_be(a.sum) && may_be(a.normed) && may_be(a.bias) &&
                       (a.gain_size <= 1 || may_be(a.gain));
  if (aligned) {
    launch_add_norm<T, true>(a, runner);
  } else {
    launch_add_norm<T, false>(a, runner);
  }
}

template <class T, bool kAligned, class Runner>
void launch_add_norm_backward(const AddNormBackward<T>& a, Runner& runner) {
  constexpr int kSize = kGroup<T, kAligned>;
  if (!a.d_normed) return runner.run(AddBackwardRows<T, kAligned>{a, Tiling::of(a.width, kSize)});
  const int64_t gain_width = a.d_gain ? a.gain_size : 0;
  const int64_t bias_width = a.d_bias ? a.width : 0;
  if (a.width > kWidestWarpRow) {
    // Before the rows, because d_residual may be the same memory as d_normed.
    if (gain_width > 1) launch_column_sums<kSize>(GainRows<T, kAligned>{a}, a.rows, a.width, a.d_gain, runner);
    if (a.d_bias) {
      launch_column_sums<kSize>(PlainRows<T, kAligned>{a.d_normed, a.width}, a.rows, a.width, a.d_bias, runner);
    }
    float* row_gain = gain_width == 1 ? runner.template workspace<float>(a.rows) : nullptr;
    runner.run(AddNormBackwardWideRow<T, kAligned>{a, row_gain});
    if (row_gain) runner.run(AddPartials{row_gain, a.rows, 1, a.d_gain, 1, nullptr});
    return;
  }
  const int64_t per_block = rows_per_partial(a.rows, 16);
  const int64_t parts = blocks_for(a.rows, per_block);
  const int64_t sums = gain_width + bias_width;
  float* partial = sums > 0 ? runner.template workspace<float>(parts * sums) : nullptr;
  with_groups<kSize>(a.width, [&](auto groups) {
    runner.run(AddNormBackwardRows<T, kAligned, groups.value>{a, per_block, partial, static_cast<int>(gain_width),
                                                              static_cast<int>(bias_width)});
  });
  if (sums > 0) runner.run(AddPartials{partial, parts, sums, a.d_gain, gain_width, a.d_bias});
}

template <class T, class Runner>
void launch(const AddNormBackward<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  const auto may_be = [&](const auto* data) { return !data || is_aligned(data, a.width); };
  const bool aligned = may_be(a.x) && may_be(a.d_normed) && may_be(a.d_sum) && may_be(a.d_residual) && may_be(a.d_y) &&
                       (a.gain_size <= 1 || may_be(a.gain));
  if (aligned) {
    launch_add_norm_backward<T, true>(a, runner);
  } else {
    launch_add_norm_backward<T, false>(a, runner);
  }
}

}  // namespace tearless::engine
