// The windows of images as rows, and maxima of 2 × 2 windows (kernels.h: Patches, MaxPool). Rows and columns are
// divided in 32 bits, because a 64-bit division is a slow subroutine on a GPU.
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
TEARLESS_BODY PixelOfRow pixel_of(int64_t row, const ImageShape& shape) {
  const uint32_t height = static_cast<uint32_t>(shape.height), width = static_cast<uint32_t>(shape.width);
  const uint32_t line = static_cast<uint32_t>(row) / width;
  const uint32_t image = line / height;
  return {image, static_cast<int>(line - image * height), static_cast<int>(static_cast<uint32_t>(row) - line * width)};
}

/// A thread takes one group of a window's columns. With kAligned a group lies within one pixel.
template <class T, bool kAligned>
struct PatchRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "patches";
  using GroupBody<T, kAligned>::kSize;
  Patches<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const ImageShape windows = a.image.windows(a.size);
    const int64_t run = a.size * a.image.channels;
    const auto [row, c, count] = this->group(block);
    if (count == 0) return;
    const auto [image, top, left] = pixel_of(row, windows);
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
struct PatchGradients : GroupBody<T, kAligned> {
  static constexpr const char* kName = "patches_backward";
  using GroupBody<T, kAligned>::kSize;
  PatchesBackward<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t channels = a.image.channels;
    const ImageShape windows = a.image.windows(a.size);
    const auto [row, c, count] = this->group(block);
    if (count == 0) return;
    const auto [image, y, x] = pixel_of(row, a.image);
    const int size = static_cast<int>(a.size);
    float sum[kSize] = {};
    for (int top = y < size ? 0 : y - size + 1; top <= y && top < windows.height; ++top) {
      for (int left = x < size ? 0 : x - size + 1; left <= x && left < windows.width; ++left) {
        const int64_t window = (image * windows.height + top) * windows.width + left;
        float d[kSize];
        load_group<kAligned>(a.d_out + ((window * size + y - top) * size + x - left) * channels + c, count, d);
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) sum[i] += d[i];
      }
    }
    store_group<kAligned>(a.d_x + row * channels + c, count, sum);
  }
};

/// A thread takes one group of a window's channels.
template <class T, bool kAligned>
struct MaxPoolRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "max_pool";
  using GroupBody<T, kAligned>::kSize;
  MaxPool<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t channels = a.image.channels;
    const auto [row, c, count] = this->group(block);
    if (count == 0) return;
    const auto [image, top, left] = pixel_of(row, a.image.pooled());
    const T* x = a.x + ((image * a.image.height + 2 * top) * a.image.width + 2 * left) * channels + c;
    float best[kSize];
    uint8_t winners[kSize] = {};
    load_group<kAligned>(x, count, best);
    TEARLESS_UNROLL
    for (int pixel = 1; pixel < 4; ++pixel) {
      float value[kSize];
      load_group<kAligned>(x + (pixel / 2 * a.image.width + pixel % 2) * channels, count, value);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (!(value[i] > best[i]) && value[i] == value[i]) continue;  // NaN wins
        best[i] = value[i];
        winners[i] = static_cast<uint8_t>(pixel);
      }
    }
    store_group<kAligned>(a.out + row * channels + c, count, best);
    if (!a.winners) return;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) {
      if (i < count) a.winners[row * channels + c + i] = winners[i];
    }
  }
};

/// A thread takes one group of a pixel's channels.
template <class T, bool kAligned>
struct MaxPoolGradients : GroupBody<T, kAligned> {
  static constexpr const char* kName = "max_pool_backward";
  using GroupBody<T, kAligned>::kSize;
  MaxPoolBackward<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t channels = a.image.channels;
    const auto [row, c, count] = this->group(block);
    if (count == 0) return;
    const auto [image, y, x] = pixel_of(row, a.image);
    const ImageShape pooled = a.image.pooled();
    float d[kSize] = {};
    if (y / 2 < pooled.height && x / 2 < pooled.width) {
      const int64_t at = ((image * pooled.height + y / 2) * pooled.width + x / 2) * channels + c;
      load_group<kAligned>(a.d_out + at, count, d);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (i >= count || a.winners[at + i] != y % 2 * 2 + x % 2) d[i] = 0.0f;
      }
    }
    store_group<kAligned>(a.d_x + row * channels + c, count, d);
  }
};

template <class T, class Runner>
void launch(const Patches<T>& a, Runner& runner) {
  const ImageShape windows = a.image.windows(a.size);
  launch_groups<PatchRows>(a, a.images * windows.pixels(), windows.channels, all_aligned(a.image.channels, a.x, a.out),
                           runner);
}

template <class T, class Runner>
void launch(const PatchesBackward<T>& a, Runner& runner) {
  launch_groups<PatchGradients>(a, a.images * a.image.pixels(), a.image.channels,
                                all_aligned(a.image.channels, a.d_x, a.d_out), runner);
}

template <class T, class Runner>
void launch(const MaxPool<T>& a, Runner& runner) {
  launch_groups<MaxPoolRows>(a, a.images * a.image.pooled().pixels(), a.image.channels,
                             all_aligned(a.image.channels, a.x, a.out), runner);
}

template <class T, class Runner>
void launch(const MaxPoolBackward<T>& a, Runner& runner) {
  launch_groups<MaxPoolGradients>(a, a.images * a.image.pixels(), a.image.channels,
                                  all_aligned(a.image.channels, a.d_x, a.d_out), runner);
}

}  // namespace tearless::engine
