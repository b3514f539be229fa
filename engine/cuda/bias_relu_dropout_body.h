// drop(ReLU(x + bias)) of the feed-forward block (kernels.h: BiasReluDropout).
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/column_sums_body.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// A thread takes one group of channels in four rows: four loads in flight, and the bias is loaded once for them.
template <class T, bool kAligned>
struct BiasReluDropoutRows {
  static constexpr const char* kName = "bias_relu_dropout";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  static constexpr int kRows = 4;
  BiasReluDropout<T> a;
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.rows, kRows), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [first, c, count] = group_of<kSize>(tiling, block, a.width, kRows);
    if (count == 0) return;
    const Mask mask(a.dropout);
    float bias[kSize] = {}, h[kRows][kSize];
    if (a.bias) load_group<kAligned>(a.bias + c, count, bias);
    TEARLESS_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int64_t t = first + r * tiling.down();
      load_group<kAligned>(a.x + t * a.width + c, t < a.rows ? count : 0, h[r]);
    }
    TEARLESS_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int64_t t = first + r * tiling.down();
      if (t >= a.rows) return;
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        h[r][i] += bias[i];
        if (h[r][i] < 0.0f) h[r][i] = 0.0f;  // NaN stays NaN, unlike with fmaxf()
      }
      if (mask.active()) {
        mask.apply(c, static_cast<uint32_t>(a.counters.positions[t]), static_cast<uint32_t>(a.counters.sentence_ids[t]),
                   h[r]);
      }
      store_group<kAligned>(a.out + t * a.width + c, count, h[r]);
    }
  }
};

/// The rows of ∂ℓ/∂(x + bias) for ColumnSumRows: load() also writes them to d_x.
template <class T, bool kAligned>
struct ReluGradientRows {
  static constexpr const char* kName = "bias_relu_dropout_backward";
  BiasReluDropoutBackward<T> a;

  template <int kSize>
  TEARLESS_BODY void load(int64_t t, int64_t c, int count, float (&d)[kSize]) const {
    const int64_t at = t * a.width + c;
    const float scale = Mask(a.dropout).scale();
    float out[kSize];
    load_group<kAligned>(a.out + at, count, out);
    load_group<kAligned>(a.d_out + at, count, d);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) d[i] = out[i] > 0.0f ? scale * d[i] : 0.0f;
    store_group<kAligned>(a.d_x + at, count, d);
  }
};

template <class T, class Runner>
void launch(const BiasReluDropout<T>& a, Runner& runner) {
  with_alignment(all_aligned(a.width, a.x, a.out, a.bias), [&](auto aligned) {
    runner.run(BiasReluDropoutRows<T, aligned.value>{a, Tiling::of(a.width, kGroup<T, aligned.value>)});
  });
}

template <class T, class Runner>
void launch(const BiasReluDropoutBackward<T>& a, Runner& runner) {
  with_alignment(all_aligned(a.width, a.out, a.d_out, a.d_x), [&](auto aligned) {
    launch_column_sums<kGroup<T, aligned.value>>(ReluGradientRows<T, aligned.value>{a}, a.rows, a.width, a.d_bias,
                                                 runner);
  });
}

}  // namespace tearless::engine
