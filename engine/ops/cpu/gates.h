// Two halves of a row, each times its gate, added (kernels.h: GatedSum).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// 1 / (1 + e⁻ᶻ). exp_of() takes no large numbers.
template <class T>
inline T sigmoid(T z) {
  const T e = exp_of(z < T(0) ? z : -z);
  return (z < T(0) ? e : T(1)) / (T(1) + e);
}

template <class T>
void gated_sum(const GatedSum<T>& a, void*) {
  const int64_t width = a.width;
  for_ranges(a.rows, 8 * width, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const T* gates = a.gates + 2 * t * width;
      const T* x = a.x + 2 * t * width;
      T* out = a.out + t * width;
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) {
        out[c] = sigmoid(gates[c]) * x[c] + sigmoid(gates[width + c]) * x[width + c];
      }
    }
  });
}

template <class T>
void gated_sum_backward(const GatedSumBackward<T>& a, void*) {
  const int64_t width = a.width;
  for_ranges(a.rows, 8 * width, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      for (const int64_t half : {2 * t * width, (2 * t + 1) * width}) {
        const T* gates = a.gates + half;
        const T* x = a.x + half;
        const T* d_out = a.d_out + t * width;
        T* d_gates = a.d_gates + half;
        T* d_x = a.d_x + half;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          const T s = sigmoid(gates[c]);
          d_gates[c] = d_out[c] * x[c] * s * (T(1) - s);
          d_x[c] += d_out[c] * s;
        }
      }
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
