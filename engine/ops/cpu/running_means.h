// The mean of the rows up to each row (kernels.h: RunningMeans). Parallel over spans: one thread adds the rows of a
// span in order, so that sums depend on neither the threads nor the batch, and search, which adds one row at a time,
// gets the same ones.
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
void running_means(const RunningMeans<T>& a, void*) {
  const int64_t width = a.width;
  const int64_t rows_of_one = a.rows / larger(a.span_count, 1) + 1;
  for_ranges(a.span_count, 2 * rows_of_one * width, [&](int64_t begin, int64_t end) {
    const Scratch<T> scratch(width);
    T* sum = scratch.get();
    for (int64_t i = begin; i < end; ++i) {
      const AttentionSpan& span = a.spans[i];
      const int64_t before = span.key_count - span.query_count;
      const auto sum_at = [&](int64_t key) {
        return a.sums + (a.key_rows ? a.key_rows[span.key_begin + key] : span.key_begin + key) * width;
      };
      for (int64_t c = 0; c < width; ++c) sum[c] = before > 0 ? sum_at(before - 1)[c] : T(0);
      for (int64_t q = 0; q < span.query_count; ++q) {
        const T* x = a.x + (span.query_begin + q) * width;
        T* out = a.out + (span.query_begin + q) * width;
        const T divisor = static_cast<T>(before + q + 1);
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          sum[c] += x[c];
          out[c] = sum[c] / divisor;
        }
        if (!a.sums) continue;
        T* kept = sum_at(before + q);
        for (int64_t c = 0; c < width; ++c) kept[c] = sum[c];
      }
    }
  });
}

template <class T>
void running_means_backward(const RunningMeansBackward<T>& a, void*) {
  const int64_t width = a.width;
  const int64_t rows_of_one = a.rows / larger(a.span_count, 1) + 1;
  for_ranges(a.span_count, 2 * rows_of_one * width, [&](int64_t begin, int64_t end) {
    const Scratch<T> scratch(width);
    T* sum = scratch.get();  // of what the means of this row and of those after it pass back
    for (int64_t i = begin; i < end; ++i) {
      const AttentionSpan& span = a.spans[i];
      const int64_t before = span.key_count - span.query_count;
      for (int64_t c = 0; c < width; ++c) sum[c] = T(0);
      for (int64_t q = span.query_count - 1; q >= 0; --q) {
        const T* d_out = a.d_out + (span.query_begin + q) * width;
        T* d_x = a.d_x + (span.query_begin + q) * width;
        const T divisor = static_cast<T>(before + q + 1);
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
          sum[c] += d_out[c] / divisor;
          d_x[c] += sum[c];
        }
      }
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
