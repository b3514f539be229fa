// Token embedding + position with dropout on the sum (kernels.h: Embedding).
#pragma once

#include "engine/ops/cpu/dropout.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
void embedding(const Embedding<T>& a, void*) {
  const int64_t width = a.width;
  const T scale = static_cast<T>(a.scale);
  for_ranges(a.rows, 3 * width, [&](int64_t begin, int64_t end) {
    for_rows_with_keep<T>(a.dropout, a.counters, begin, end, width, [&](int64_t t, const T* keep) {
      const float* place = a.positions + static_cast<int64_t>(a.counters.positions[t]) * width;
      T* out = a.out + t * width;
      if (a.tokens[t] < 0) {  // kNoToken
        for (int64_t c = 0; c < width; ++c) out[c] = static_cast<T>(place[c]);
      } else {
        const T* word = a.table + static_cast<int64_t>(a.tokens[t]) * width;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) out[c] = scale * word[c] + static_cast<T>(place[c]);
      }
      if (!keep) return;
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) out[c] *= keep[c];
    });
  });
}

/// Parallel over tokens, not rows: all rows of a token are added by one thread, in order.
template <class T>
void embedding_backward(const EmbeddingBackward<T>& a, void*) {
  const int64_t width = a.width;
  const T scale = static_cast<T>(a.scale);
  const auto starts_token = [&](int64_t i) {
    return i == 0 || i == a.rows || a.tokens[a.by_token[i]] != a.tokens[a.by_token[i - 1]];
  };
  for_ranges(a.rows, 4 * width, [&](int64_t begin, int64_t end) {
    while (!starts_token(begin)) ++begin;
    while (!starts_token(end)) ++end;
    const int64_t quarters = quarters_of(width);
    const Scratch<T> keep(keep_size(1, width));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = a.by_token[i];
      if (a.tokens[t] < 0) continue;
      const T* from = a.d_out + t * width;
      T* to = a.d_table + static_cast<int64_t>(a.tokens[t]) * width;
      if (!a.dropout.active()) {
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) to[c] += scale * from[c];
        continue;
      }
      fill_keep(
          a.dropout, 1, quarters, [&](int64_t) { return a.counters.positions[t]; },
          [&](int64_t) { return a.counters.sentence_ids[t]; }, keep.get());
      const T* kept = keep.get();
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) to[c] += scale * kept[c] * from[c];
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
