// Sums of a table's rows (kernels.h: SumsOfTerms).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
void sums_of_terms(const SumsOfTerms<T>& a, void*) {
  const int64_t width = a.width;
  for_ranges(a.rows, a.each * width, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      T* out = a.out + n * width;
      for (int64_t c = 0; c < width; ++c) out[c] = a.bias ? a.bias[c] : T(0);
      const int32_t* terms = a.term_of + n * a.each;
      int64_t f = 0;
      for (; f + 4 <= a.each; f += 4) {  // the sums are loaded and stored once for four terms
        const T* one = a.terms + terms[f] * width;
        const T* two = a.terms + terms[f + 1] * width;
        const T* three = a.terms + terms[f + 2] * width;
        const T* four = a.terms + terms[f + 3] * width;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) out[c] = (((out[c] + one[c]) + two[c]) + three[c]) + four[c];
      }
      for (; f < a.each; ++f) {
        const T* term = a.terms + terms[f] * width;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) out[c] += term[c];
      }
    }
  });
}

/// Parallel over terms: all places of a term are added by one thread, in order. A range of places begins with a term.
template <class T>
void sums_of_terms_backward(const SumsOfTermsBackward<T>& a, void*) {
  const int64_t width = a.width;
  const int64_t places = a.first[a.terms];
  /// The first term whose places begin at `place` or later.
  const auto term_from = [&](int64_t place) {
    int64_t low = 0, high = a.terms;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (a.first[middle] < place) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  for_ranges(places, 2 * width, [&](int64_t begin, int64_t end) {
    const int64_t last = end == places ? a.terms : term_from(end);
    for (int64_t p = term_from(begin); p < last; ++p) {
      T* to = a.d_terms + p * width;
      for (int64_t c = 0; c < width; ++c) to[c] = T(0);
      for (int64_t i = a.first[p]; i < a.first[p + 1]; ++i) {
        const T* from = a.d_out + a.places[i] / a.each * width;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) to[c] += from[c];
      }
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
