// The windows of images as rows, and maxima of 2 × 2 windows (kernels.h: Patches, MaxPool). A row of a window, k pixels
// of C channels, is contiguous in the image and in the window, so both directions of patches move runs of k · C
// elements.
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// to[i] = from[i] for i < n. Not memcpy(): runs are so short that its call would take most of the time.
template <class T>
inline void copy_run(const T* from, int64_t n, T* to) {
  for_chunks<T>(n, [&](auto chunk, int64_t i) {
    __builtin_memcpy(&chunk, from + i, sizeof chunk);
    __builtin_memcpy(to + i, &chunk, sizeof chunk);
  });
}

/// Parallel over rows of windows.
template <class T>
void patches(const Patches<T>& a, void*) {
  const int64_t height = a.image.height - a.size + 1, width = a.image.width - a.size + 1;  // in windows
  const int64_t line = a.image.width * a.image.channels;
  const int64_t run = a.size * a.image.channels;
  for_ranges(a.images * height, width * a.size * run, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = a.x + (i / height * a.image.height + i % height) * line;
      T* to = a.out + i * width * a.size * run;
      for (int64_t x = 0; x < width; ++x, from += a.image.channels) {
        for (int64_t ky = 0; ky < a.size; ++ky, to += run) copy_run(from + ky * line, run, to);
      }
    }
  });
}

/// Parallel over rows of pixels: each adds up its part of all windows that it is in.
template <class T>
void patches_backward(const PatchesBackward<T>& a, void*) {
  const int64_t height = a.image.height - a.size + 1, width = a.image.width - a.size + 1;  // in windows
  const int64_t line = a.image.width * a.image.channels;
  const int64_t run = a.size * a.image.channels;
  for_ranges(a.images * a.image.height, line * a.size * a.size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / a.image.height, y = i % a.image.height;
      T* d_line = a.d_x + i * line;
      for (int64_t c = 0; c < line; ++c) d_line[c] = T(0);
      for (int64_t top = larger(0, y - a.size + 1); top < smaller(y + 1, height); ++top) {
        const T* from = a.d_out + ((image * height + top) * width * a.size + y - top) * run;
        for (int64_t x = 0; x < width; ++x, from += a.size * run) {
          T* to = d_line + x * a.image.channels;
#pragma omp simd
          for (int64_t c = 0; c < run; ++c) to[c] += from[c];
        }
      }
    }
  });
}

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
