// The windows of images as rows (kernels.h: Patches). A row of a window, k pixels of C channels, is contiguous in the
// image and in the window, so both directions move runs of k · C elements.
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

}  // namespace tearless::engine::TEARLESS_ISA
