// The mean row of each span (kernels.h: SpanMeans).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// Parallel over spans: the rows of a span are added by one thread, in order.
template <class T>
void span_means(const SpanMeans<T>& a, void*) {
  const int64_t width = a.width;
  const int64_t rows_of_one = a.rows / larger(a.span_count, 1) + 1;
  for_ranges(a.span_count, rows_of_one * width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = a.spans[i].key_begin, count = a.spans[i].key_count;
      T* out = a.out + i * width;
      for (int64_t c = 0; c < width; ++c) out[c] = T(0);
      for (int64_t t = first; t < first + count; ++t) {
        const T* x = a.x + t * width;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) out[c] += x[c];
      }
      const T divisor = static_cast<T>(larger(count, 1));
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) out[c] /= divisor;
    }
  });
}

template <class T>
void span_means_backward(const SpanMeansBackward<T>& a, void*) {
  const int64_t width = a.width;
  const int64_t rows_of_one = a.rows / larger(a.span_count, 1) + 1;
  for_ranges(a.span_count, rows_of_one * width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = a.spans[i].key_begin, count = a.spans[i].key_count;
      const T* d_out = a.d_out + i * width;
      const T divisor = static_cast<T>(count);
      for (int64_t t = first; t < first + count; ++t) {
        T* d_x = a.d_x + t * width;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) d_x[c] += d_out[c] / divisor;
      }
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
