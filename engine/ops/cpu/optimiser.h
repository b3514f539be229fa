// Clipping and Adam over flat buffers (kernels.h: Adam, SquaredNorm).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// Σ g² of n gradients. Four independent accumulators, because one would be limited by the latency of the addition.
inline double sum_of_squares(const float* g, int64_t n) {
  typedef float Narrow __attribute__((vector_size(kVectorBytes / 2)));
  constexpr int64_t kStep = kLanes<double>;
  Vector<double> sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * kStep <= n; i += 4 * kStep) {
    for (int64_t j = 0; j < 4; ++j) {
      Narrow narrow;
      __builtin_memcpy(&narrow, g + i + j * kStep, sizeof narrow);
      const Vector<double> x = __builtin_convertvector(narrow, Vector<double>);
      sums[j] += x * x;
    }
  }
  double sum = sum_of_lanes<double>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i) sum += static_cast<double>(g[i]) * static_cast<double>(g[i]);
  return sum;
}

inline void squared_norm(const SquaredNorm& a, void*) {
  constexpr int64_t kBlock = 1 << 13;
  const int64_t blocks = (a.size + kBlock - 1) / kBlock;
  const Scratch<double> partial(blocks);
  for_ranges(blocks, kBlock, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      partial.get()[block] = sum_of_squares(a.gradients + block * kBlock, smaller(kBlock, a.size - block * kBlock));
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
    const AdamFactors f = a.factors;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float clipped = a.clip * g[i];
      m[i] = a.beta1 * m[i] + a.one_minus_beta1 * clipped;
      v[i] = a.beta2 * v[i] + a.one_minus_beta2 * clipped * clipped;
      theta[i] -=
          f.decay * theta[i] + f.step_size * m[i] / (__builtin_sqrtf(v[i]) * f.inverse_sqrt_correction2 + f.eps);
      g[i] = 0;
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
