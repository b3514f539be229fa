// The windows of images as rows (kernels.h: Patches). Rows and columns are divided in 32 bits, because a 64-bit
// division is a slow subroutine on a GPU.
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// A row of [images · height · width, …] as image, y and x.
struct PixelOfRow {
  int64_t image;
  int y, x;
};
TEARLESS_BODY PixelOfRow pixel_of(int64_t row, int64_t height, int64_t width) {
  const uint32_t line = static_cast<uint32_t>(row) / static_cast<uint32_t>(width);
  const uint32_t image = line / static_cast<uint32_t>(height);
  return {image, static_cast<int>(line - image * static_cast<uint32_t>(height)),
          static_cast<int>(static_cast<uint32_t>(row) - line * static_cast<uint32_t>(width))};
}

/// A thread takes one group of a window's columns. With kAligned a group lies within one pixel.
template <class T, bool kAligned>
struct PatchRows {
  static constexpr const char* kName = "patches";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  Patches<T> a;
  int64_t height, width;  // in windows
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.images * height * width), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t run = a.size * a.image.channels;
    const auto [row, c, count] = group_of<kSize>(tiling, block, a.size * run);
    if (row >= a.images * height * width || count == 0) return;
    const auto [image, top, left] = pixel_of(row, height, width);
    const int64_t line = a.image.width * a.image.channels;
    const T* from = a.x + (image * a.image.height + top) * line + left * a.image.channels;
    int64_t ky = static_cast<uint32_t>(c) / static_cast<uint32_t>(run);
    int64_t in_run = c - ky * run;
    float x[kSize];
    if constexpr (kAligned) {
      load_group<true>(from + ky * line + in_run, count, x);
    } else {
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        x[i] = i < count ? static_cast<float>(from[ky * line + in_run]) : 0.0f;
        if (++in_run == run) {
          in_run = 0;
          ++ky;
        }
      }
    }
    store_group<kAligned>(a.out + row * a.size * run + c, count, x);
  }
};

/// A thread takes one group of a pixel's channels, and adds those of the windows that the pixel is in.
template <class T, bool kAligned>
struct PatchGradients {
  static constexpr const char* kName = "patches_backward";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  PatchesBackward<T> a;
  int64_t height, width;  // in windows
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.images * a.image.pixels()), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t channels = a.image.channels;
    const auto [row, c, count] = group_of<kSize>(tiling, block, channels);
    if (row >= a.images * a.image.pixels() || count == 0) return;
    const auto [image, y, x] = pixel_of(row, a.image.height, a.image.width);
    const int size = static_cast<int>(a.size);
    float sum[kSize] = {};
    for (int top = y < size ? 0 : y - size + 1; top <= y && top < height; ++top) {
      for (int left = x < size ? 0 : x - size + 1; left <= x && left < width; ++left) {
        const int64_t window = (image * height + top) * width + left;
        float d[kSize];
        load_group<kAligned>(a.d_out + ((window * size + y - top) * size + x - left) * channels + c, count, d);
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) sum[i] += d[i];
      }
    }
    store_group<kAligned>(a.d_x + row * channels + c, count, sum);
  }
};

template <class T, class Runner>
void launch(const Patches<T>& a, Runner& runner) {
  const int64_t height = a.image.height - a.size + 1, width = a.image.width - a.size + 1;
  const int64_t columns = a.size * a.size * a.image.channels;
  with_alignment(is_aligned(a.x, a.image.channels) && is_aligned(a.out, a.image.channels), [&](auto aligned) {
    runner.run(PatchRows<T, aligned.value>{a, height, width, Tiling::of(columns, kGroup<T, aligned.value>)});
  });
}

template <class T, class Runner>
void launch(const PatchesBackward<T>& a, Runner& runner) {
  const int64_t height = a.image.height - a.size + 1, width = a.image.width - a.size + 1;
  with_alignment(is_aligned(a.d_x, a.image.channels) && is_aligned(a.d_out, a.image.channels), [&](auto aligned) {
    runner.run(
        PatchGradients<T, aligned.value>{a, height, width, Tiling::of(a.image.channels, kGroup<T, aligned.value>)});
  });
}

}  // namespace tearless::engine
