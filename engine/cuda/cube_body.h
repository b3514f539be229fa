// x³ (kernels.h: Cube).
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct CubeRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "cube";
  using GroupBody<T, kAligned>::kSize;
  Cube<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = this->group(block);
    if (count == 0) return;
    float x[kSize];
    load_group<kAligned>(a.x + t * a.width + c, count, x);
    TEARLESS_UNROLL
    for (int j = 0; j < kSize; ++j) x[j] = x[j] * x[j] * x[j];
    store_group<kAligned>(a.out + t * a.width + c, count, x);
  }
};

template <class T, bool kAligned>
struct CubeGradients : GroupBody<T, kAligned> {
  static constexpr const char* kName = "cube_backward";
  using GroupBody<T, kAligned>::kSize;
  CubeBackward<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = this->group(block);
    if (count == 0) return;
    const int64_t at = t * a.width + c;
    float x[kSize], d[kSize];
    load_group<kAligned>(a.x + at, count, x);
    load_group<kAligned>(a.d_out + at, count, d);
    TEARLESS_UNROLL
    for (int j = 0; j < kSize; ++j) d[j] = 3.0f * x[j] * x[j] * d[j];
    store_group<kAligned>(a.d_x + at, count, d);
  }
};

template <class T, class Runner>
void launch(const Cube<T>& a, Runner& runner) {
  launch_groups<CubeRows>(a, a.rows, a.width, all_aligned(a.width, a.x, a.out), runner);
}

template <class T, class Runner>
void launch(const CubeBackward<T>& a, Runner& runner) {
  launch_groups<CubeGradients>(a, a.rows, a.width, all_aligned(a.width, a.x, a.d_out, a.d_x), runner);
}

}  // namespace tearless::engine
