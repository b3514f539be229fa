// Label-smoothed cross-entropy, loss and gradient while a row of logits is in the cache (kernels.h: CrossEntropy).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
void cross_entropy(const CrossEntropy<T>& a, void*) {
  const int64_t types = a.types;
  const T uniform = static_cast<T>(a.smoothing / static_cast<double>(types));
  const T share = static_cast<T>(a.share);
  for_ranges(a.rows, 8 * types, [&](int64_t begin, int64_t end) {
    const Scratch<T> exponentials(types);
    for (int64_t t = begin; t < end; ++t) {
      T* z = a.logits + t * types;
      const int64_t gold = a.labels[t];
      if (gold < 0) {
        a.row_losses[t] = {0, 0};
        for (int64_t v = 0; a.gradient && v < types; ++v) z[v] = T(0);
        continue;
      }
      const T largest = largest_of(z, types);
      T* e = exponentials.get();
      T sum = 0, total = 0;
#pragma omp simd reduction(+ : sum, total)
      for (int64_t v = 0; v < types; ++v) {
        const T centred = z[v] - largest;
        e[v] = exp_of(centred);
        sum += e[v];
        total += centred;
      }
      const T log_sum = log_of(sum);
      const T nll = log_sum - (z[gold] - largest);
      const T smooth = static_cast<T>(types) * log_sum - total;
      a.row_losses[t] = {static_cast<double>((T(1) - static_cast<T>(a.smoothing)) * nll + uniform * smooth),
                         static_cast<double>(nll)};
      if (!a.gradient) continue;
      const T factor = share / sum;
      const T flat = share * uniform;
#pragma omp simd
      for (int64_t v = 0; v < types; ++v) z[v] = e[v] * factor - flat;
      z[gold] -= share * static_cast<T>(1 - a.smoothing);
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
