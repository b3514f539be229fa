// residual + drop(y) and the norm of it (kernels.h: AddNorm): chooses and launches the kernels of add_norm_forward.h
// and add_norm_backward*.h. Rows of up to 1024 channels: one warp per row, which it holds in registers. Wider rows: one
// block per row, which reads the row again for every reduction.
#pragma once

#include <type_traits>

#include "engine/cuda/add_norm_backward.h"
#include "engine/cuda/add_norm_backward_ahead.h"
#include "engine/cuda/add_norm_forward.h"
#include "engine/cuda/block.h"
#include "engine/cuda/column_sums_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// Calls f with the number of groups that a lane holds of a row of `width` channels, a power of two, as an
/// std::integral_constant.
template <int kSize, int kGroups = 1, class F>
void with_groups(int64_t width, F&& f) {
  constexpr int kHeld = kGroups * kLanes * kSize;
  if constexpr (kHeld < kMaxWarpRow) {
    if (width > kHeld) return with_groups<kSize, 2 * kGroups>(width, f);
  }
  f(std::integral_constant<int, kGroups>{});
}

template <class T, bool kAligned, class Runner>
void launch_add_norm(const AddNorm<T>& a, Runner& runner) {
  if (a.width > kMaxWarpRow) return runner.run(AddNormWideRow<T, kAligned>{a});
  with_groups<kGroup<T, kAligned>>(a.width,
                                   [&](auto groups) { runner.run(AddNormRows<T, kAligned, groups.value>{a}); });
}

template <class T, class Runner>
void launch(const AddNorm<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  const bool aligned_rows = all_aligned(a.width, a.residual, a.y, a.sum, a.normed, a.bias) &&
                            (a.gain_size <= 1 || is_aligned(a.gain, a.width));
  with_alignment(aligned_rows, [&](auto aligned) { launch_add_norm<T, aligned.value>(a, runner); });
}

template <class T, bool kAligned, class Runner>
void launch_add_norm_backward(const AddNormBackward<T>& a, Runner& runner) {
  constexpr int kSize = kGroup<T, kAligned>;
  if (!a.d_normed) return runner.run(AddBackwardRows<T, kAligned>{{a.rows, a.width}, a});
  const int64_t gain_width = a.d_gain ? a.gain_size : 0;
  const int64_t bias_width = a.d_bias ? a.width : 0;
  if (a.width > kMaxWarpRow) {
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
  const int gains = static_cast<int>(gain_width), biases = static_cast<int>(bias_width);
  with_groups<kSize>(a.width, [&](auto groups) {
    if constexpr (kAligned && std::is_same_v<T, bf16>) {
      if (a.ahead) return runner.run(AddNormBackwardAhead<groups.value>{a, per_block, partial, gains, biases});
    }
    runner.run(AddNormBackwardRows<T, kAligned, groups.value>{a, per_block, partial, gains, biases});
  });
  if (sums > 0) runner.run(AddPartials{partial, parts, sums, a.d_gain, gain_width, a.d_bias});
}

template <class T, class Runner>
void launch(const AddNormBackward<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  const bool aligned_rows = all_aligned(a.width, a.x, a.d_normed, a.d_sum, a.d_residual, a.d_y) &&
                            (a.gain_size <= 1 || is_aligned(a.gain, a.width));
  with_alignment(aligned_rows, [&](auto aligned) { launch_add_norm_backward<T, aligned.value>(a, runner); });
}

}  // namespace tearless::engine
