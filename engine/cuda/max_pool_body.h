// Maxima of 2 × 2 windows, stride 2 (kernels.h: MaxPool). A thread takes one group of a window's, or in backward of a
// pixel's, channels.
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/cuda/patches_body.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct MaxPoolRows {
  static constexpr const char* kName = "max_pool";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  MaxPool<T> a;
  int64_t height, width;  // in windows
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.images * height * width), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t channels = a.image.channels;
    const auto [row, c, count] = group_of<kSize>(tiling, block, channels);
    if (row >= a.images * height * width || count == 0) return;
    const auto [image, top, left] = pixel_of(row, height, width);
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

template <class T, bool kAligned>
struct MaxPoolGradients {
  static constexpr const char* kName = "max_pool_backward";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  MaxPoolBackward<T> a;
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.images * a.image.pixels()), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t channels = a.image.channels;
    const auto [row, c, count] = group_of<kSize>(tiling, block, channels);
    if (row >= a.images * a.image.pixels() || count == 0) return;
    const auto [image, y, x] = pixel_of(row, a.image.height, a.image.width);
    const int64_t height = a.image.height / 2, width = a.image.width / 2;
    float d[kSize] = {};
    if (y / 2 < height && x / 2 < width) {
      const int64_t at = ((image * height + y / 2) * width + x / 2) * channels + c;
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
void launch(const MaxPool<T>& a, Runner& runner) {
  const int64_t height = a.image.height / 2, width = a.image.width / 2;
  with_alignment(is_aligned(a.x, a.image.channels) && is_aligned(a.out, a.image.channels), [&](auto aligned) {
    runner.run(MaxPoolRows<T, aligned.value>{a, height, width, Tiling::of(a.image.channels, kGroup<T, aligned.value>)});
  });
}

template <class T, class Runner>
void launch(const MaxPoolBackward<T>& a, Runner& runner) {
  with_alignment(is_aligned(a.d_x, a.image.channels) && is_aligned(a.d_out, a.image.channels), [&](auto aligned) {
    runner.run(MaxPoolGradients<T, aligned.value>{a, Tiling::of(a.image.channels, kGroup<T, aligned.value>)});
  });
}

}  // namespace tearless::engine
