// Clipping and Adam over flat buffers (kernels.h: Adam, SquaredNorm).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

inline void squared_norm(const SquaredNorm& a, void*) {
  constexpr int64_t kBlock = 1 << 13;
  const int64_t blocks = (a.size + kBlock - 1) / kBlock;
  const Scratch<double> partial(blocks);
  for_ranges(blocks, kBlock, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const float* g = a.gradients + block * kBlock;
      partial.get()[block] = sum_of<double>(smaller(kBlock, a.size - block * kBlock), [g](int64_t i) {
        return static_cast<double>(g[i]) * static_cast<double>(g[i]);
      });
    }
  });
  double sum = 0;
  for (int64_t block = 0; block < blocks; ++block) sum += partial.get()[block];
  *a.sum = sum;
}

inline void adam(const Adam& a, void*) {
  for_ranges(a.size, 4, [&](int64_t begin, int64_t end) {
    float* __restrict theta = a.theta;
    float* __restrict m = a.first_moment;
    float* __restrict v = a.second_moment;
    float* __restrict g = a.gradients;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float clipped = a.clip * g[i];
      m[i] = a.beta1 * m[i] + a.rest1 * clipped;
      v[i] = a.beta2 * v[i] + a.rest2 * clipped * clipped;
      theta[i] -= a.rate * m[i] / (__builtin_sqrtf(v[i]) * a.inverse_root + a.eps);
      g[i] = 0;
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
