// Two halves of a row, each times its gate, added (kernels.h: GatedSum).
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// 1 / (1 + e⁻ᶻ); e⁻ᶻ may be infinite.
TEARLESS_BODY float sigmoid(float z) { return 1.0f / (1.0f + expf(-z)); }

template <class T, bool kAligned>
struct GatedSumRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "gated_sum";
  using GroupBody<T, kAligned>::kSize;
  GatedSum<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = this->group(block);
    if (count == 0) return;
    float sum[kSize] = {};
    TEARLESS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int64_t at = (2 * t + half) * a.width + c;
      float gates[kSize], x[kSize];
      load_group<kAligned>(a.gates + at, count, gates);
      load_group<kAligned>(a.x + at, count, x);
      TEARLESS_UNROLL
      for (int j = 0; j < kSize; ++j) sum[j] += sigmoid(gates[j]) * x[j];
    }
    store_group<kAligned>(a.out + t * a.width + c, count, sum);
  }
};

template <class T, bool kAligned>
struct GatedSumGradients : GroupBody<T, kAligned> {
  static constexpr const char* kName = "gated_sum_backward";
  using GroupBody<T, kAligned>::kSize;
  GatedSumBackward<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = this->group(block);
    if (count == 0) return;
    float d_out[kSize];
    load_group<kAligned>(a.d_out + t * a.width + c, count, d_out);
    TEARLESS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int64_t at = (2 * t + half) * a.width + c;
      float gates[kSize], x[kSize], d_x[kSize];
      load_group<kAligned>(a.gates + at, count, gates);
      load_group<kAligned>(a.x + at, count, x);
      load_group<kAligned>(a.d_x + at, count, d_x);
      TEARLESS_UNROLL
      for (int j = 0; j < kSize; ++j) {
        const float s = sigmoid(gates[j]);
        gates[j] = d_out[j] * x[j] * s * (1.0f - s);
        d_x[j] += d_out[j] * s;
      }
      store_group<kAligned>(a.d_gates + at, count, gates);
      store_group<kAligned>(a.d_x + at, count, d_x);
    }
  }
};

template <class T, class Runner>
void launch(const GatedSum<T>& a, Runner& runner) {
  launch_groups<GatedSumRows>(a, a.rows, a.width, all_aligned(a.width, a.gates, a.x, a.out), runner);
}

template <class T, class Runner>
void launch(const GatedSumBackward<T>& a, Runner& runner) {
  launch_groups<GatedSumGradients>(a, a.rows, a.width, all_aligned(a.width, a.gates, a.x, a.d_out, a.d_gates, a.d_x),
                                   runner);
}

}  // namespace tearless::engine
