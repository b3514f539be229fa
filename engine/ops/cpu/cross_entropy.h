// Label-smoothed cross-entropy (kernels.h: CrossEntropy): loss and gradient of a row of logits while it is in the
// cache.
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
void cross_entropy(const CrossEntropy<T>& a, void*) {
  const int64_t vocab_size = a.vocab_size;
  const T each = static_cast<T>(a.each), of_gold = static_cast<T>(a.gold);
  const T counted = static_cast<T>(vocab_size - (a.without >= 0));  // tokens that have mass
  for_ranges(a.rows, 8 * vocab_size, [&](int64_t begin, int64_t end) {
    const Scratch<T> exponentials(vocab_size);
    for (int64_t t = begin; t < end; ++t) {
      T* z = a.logits + t * a.stride;
      const int64_t gold = a.labels[t];
      if (gold < 0) {
        a.row_losses[t] = {0, 0};
        for (int64_t v = 0; a.gradient && v < vocab_size; ++v) z[v] = T(0);
        continue;
      }
      const T largest = largest_of(z, vocab_size);
      T* e = exponentials.get();
      T sum = 0, total = 0;
#pragma omp simd reduction(+ : sum, total)
      for (int64_t v = 0; v < vocab_size; ++v) {
        const T centred = z[v] - largest;
        e[v] = exp_of(centred);
        sum += e[v];
        total += centred;
      }
      const T log_sum = log_of(sum);
      const T nll = log_sum - (z[gold] - largest);
      if (a.without >= 0) total -= z[a.without] - largest;
      const T smooth = counted * log_sum - total;
      a.row_losses[t] = {static_cast<double>(of_gold * nll + each * smooth) - a.entropy, static_cast<double>(nll)};
      if (!a.gradient) continue;
      const T loss_scale =
          static_cast<T>(a.row_weights ? a.loss_scale * static_cast<double>(a.row_weights[t]) : a.loss_scale);
      const T factor = loss_scale / sum;
      const T flat = loss_scale * each;
#pragma omp simd
      for (int64_t v = 0; v < vocab_size; ++v) z[v] = e[v] * factor - flat;
      if (a.without >= 0) z[a.without] = e[a.without] * factor;
      z[gold] -= loss_scale * of_gold;
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
