// x³ (kernels.h: Cube).
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

template <class T>
void cube(const Cube<T>& a, void*) {
  for_ranges(a.rows * a.width, 2, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) a.out[i] = a.x[i] * a.x[i] * a.x[i];
  });
}

template <class T>
void cube_backward(const CubeBackward<T>& a, void*) {
  for_ranges(a.rows * a.width, 3, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) a.d_x[i] = T(3) * a.x[i] * a.x[i] * a.d_out[i];
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
