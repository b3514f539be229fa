// drop(ReLU(x + bias)) of the feed-forward block, and plain column sums (kernels.h: BiasReluDropout, ColumnSums).
#pragma once

#include "engine/ops/cpu/dropout.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
void bias_relu_dropout(const BiasReluDropout<T>& a, void*) {
  const int64_t width = a.width;
  const Scratch<T> zeros(a.bias ? 0 : width);
  for (int64_t c = 0; c < width && !a.bias; ++c) zeros.get()[c] = T(0);
  const T* bias = a.bias ? a.bias : zeros.get();  // a condition within the loops would not be vectorised
  for_ranges(a.rows, 2 * width, [&](int64_t begin, int64_t end) {
    for_rows_with_keep<T>(a.dropout, a.counters, begin, end, width, [&](int64_t t, const T* keep) {
      const T* x = a.x + t * width;
      T* out = a.out + t * width;
      if (keep) {
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          const T h = x[c] + bias[c];
          out[c] = keep[c] * (h < T(0) ? T(0) : h);  // NaN stays NaN, unlike with fmax()
        }
      } else {
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          const T h = x[c] + bias[c];
          out[c] = h < T(0) ? T(0) : h;
        }
      }
    });
  });
}

template <class T>
void bias_relu_dropout_backward(const BiasReluDropoutBackward<T>& a, void*) {
  const int64_t width = a.width;
  const T scale = a.dropout.active() ? static_cast<T>(a.dropout.scale) : T(1);
  const auto add_rows = [&](int64_t begin, int64_t end, T* partial) {
    for (int64_t t = begin; t < end; ++t) {
      const T* out = a.out + t * width;
      const T* d_out = a.d_out + t * width;
      T* d_x = a.d_x + t * width;
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) {
        const T open = scale * d_out[c];  // unconditional: a load under a condition is not vectorised
        const T d = out[c] > T(0) ? open : T(0);
        d_x[c] = d;
        partial[c] += d;
      }
    }
  };
  if (a.d_bias) return add_over_rows(a.rows, width, a.d_bias, add_rows);
  for_ranges(a.rows, 3 * width, [&](int64_t begin, int64_t end) {
    const Scratch<T> unused(width);
    for (int64_t c = 0; c < width; ++c) unused.get()[c] = T(0);
    add_rows(begin, end, unused.get());
  });
}

template <class T>
void column_sums(const ColumnSums<T>& a, void*) {
  add_over_rows(a.rows, a.width, a.sum, [&](int64_t begin, int64_t end, T* partial) {
    for (int64_t t = begin; t < end; ++t) {
      const T* row = a.data + t * a.stride;
#pragma omp simd
      for (int64_t c = 0; c < a.width; ++c) partial[c] += row[c];
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
