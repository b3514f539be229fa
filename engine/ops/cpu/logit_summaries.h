// What a search needs of each row of logits (kernels.h: LogitSummaries), while the row is in the cache.
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// The largest of n values; -∞ if all are NaN.
template <class T>
inline T largest_number(const T* z, int64_t n) {
  Vector<T> lanes = broadcast(static_cast<T>(-__builtin_inff()));
  int64_t v = 0;
  for (; v + kLanes<T> <= n; v += kLanes<T>) {
    const Vector<T> x = load(z + v);
    lanes = x > lanes ? x : lanes;
  }
  T largest = largest_of_lanes<T>(lanes);
  for (; v < n; ++v) largest = z[v] > largest ? z[v] : largest;
  return largest;
}

/// Σ_v e^(z[v] - largest), n values. Lanes hold partial sums.
template <class T>
inline T sum_of_exponentials(const T* z, int64_t n, T largest) {
  Vector<T> lanes = {};
  int64_t v = 0;
  for (; v + kLanes<T> <= n; v += kLanes<T>) lanes += exp_of(load(z + v) - largest);
  T sum = sum_of_lanes<T>(lanes);
  for (; v < n; ++v) sum += exp_of(z[v] - largest);
  return sum;
}

template <class T>
void logit_summaries(const LogitSummaries<T>& a, void*) {
  const int64_t blocks = (a.vocab_size + kLogitBlock - 1) / kLogitBlock;
  for_ranges(a.rows, 8 * a.vocab_size, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const T* z = a.logits + t * a.stride;
      T* maxima = a.maxima + t * blocks;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * kLogitBlock;
        maxima[b] = largest_number(z + first, smaller(kLogitBlock, a.vocab_size - first));
      }
      const T largest = largest_number(maxima, blocks);
      a.log_sums[t] = largest + log_of(sum_of_exponentials(z, a.vocab_size, largest));
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
