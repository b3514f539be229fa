// Maxima of 2 × 2 windows, stride 2 (kernels.h: MaxPool).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// As many bytes as V has lanes.
template <class V>
struct BytesOfVector {
  typedef uint8_t type __attribute__((vector_size(sizeof(V) / sizeof(V{}[0]))));
};
template <class V>
using BytesOf = typename BytesOfVector<V>::type;

/// Parallel over rows of windows.
template <class T>
void max_pool(const MaxPool<T>& a, void*) {
  const int64_t height = a.image.height / 2, width = a.image.width / 2, channels = a.image.channels;
  const int64_t line = a.image.width * channels;
  for_ranges(a.images * height, 4 * width * channels, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* top = a.x + (i / height * a.image.height + i % height * 2) * line;
      for (int64_t x = 0; x < width; ++x) {
        const T *x0 = top + 2 * x * channels, *x1 = x0 + channels, *x2 = x0 + line, *x3 = x2 + channels;
        const int64_t window = (i * width + x) * channels;
        for_chunks<T>(channels, [&]<class V>(V best, int64_t c) {
          decltype(best < best) winner = {};
          __builtin_memcpy(&best, x0 + c, sizeof best);
          const auto compare = [&](const T* pixel, int number) {
            V value;
            __builtin_memcpy(&value, pixel + c, sizeof value);
            const auto wins = (value > best) | (value != value);  // NaN wins
            best = wins ? value : best;
            winner = wins ? winner * 0 + number : winner;
          };
          compare(x1, 1);
          compare(x2, 2);
          compare(x3, 3);
          __builtin_memcpy(a.out + window + c, &best, sizeof best);
          if (!a.winners) return;
          const auto bytes = __builtin_convertvector(winner, BytesOf<V>);
          __builtin_memcpy(a.winners + window + c, &bytes, sizeof bytes);
        });
      }
    }
  });
}

/// Parallel over rows of pixels.
template <class T>
void max_pool_backward(const MaxPoolBackward<T>& a, void*) {
  const int64_t height = a.image.height / 2, width = a.image.width / 2, channels = a.image.channels;
  const int64_t line = a.image.width * channels;
  for_ranges(a.images * a.image.height, line, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / a.image.height, y = i % a.image.height;
      T* d_line = a.d_x + i * line;
      const int64_t inside = y / 2 < height ? 2 * width : 0;  // pixels that are in a window
      for (int64_t x = 0; x < inside; ++x) {
        const int64_t window = ((image * height + y / 2) * width + x / 2) * channels;
        const T* d_out = a.d_out + window;
        const uint8_t* winners = a.winners + window;
        T* d_x = d_line + x * channels;
        const int pixel = static_cast<int>(y % 2 * 2 + x % 2);
        for_chunks<T>(channels, [&]<class V>(V d, int64_t c) {
          BytesOf<V> bytes;
          __builtin_memcpy(&d, d_out + c, sizeof d);
          __builtin_memcpy(&bytes, winners + c, sizeof bytes);
          d = __builtin_convertvector(bytes, decltype(d < d)) == pixel ? d : V{};
          __builtin_memcpy(d_x + c, &d, sizeof d);
        });
      }
      for (int64_t c = inside * channels; c < line; ++c) d_line[c] = T(0);
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
