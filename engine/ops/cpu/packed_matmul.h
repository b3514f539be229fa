// y = x Wᵀ + b with W in panels (kernels.h: PackedMatmul). A tile of y, some rows of one panel, is held in registers
// while the inputs pass by; a library would lay out W again in each call, which for few rows costs as much as the
// arithmetic.
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// Vectors in a panel, and rows of a tile: as many sums as the registers hold beside a row of the panel.
inline constexpr int kPanelVectors = 2;
#if defined(__AVX512F__)
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 6;
#endif

/// `kRows` rows of one panel; `start`: what each row starts from, the bias.
template <class T, int kRows>
inline void panel_tile(int64_t inputs, const T* x, int64_t x_stride, const T* panel, const T* start, T* y,
                       int64_t y_stride) {
  Vector<T> sum[kRows][kPanelVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kPanelVectors; ++j) sum[i][j] = load(start + j * kLanes<T>);
  }
  for (int64_t k = 0; k < inputs; ++k) {
    Vector<T> right[kPanelVectors];
    for (int j = 0; j < kPanelVectors; ++j) right[j] = load(panel + (k * kPanelVectors + j) * kLanes<T>);
    for (int i = 0; i < kRows; ++i) {
      const T left = x[i * x_stride + k];
      for (int j = 0; j < kPanelVectors; ++j) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kPanelVectors; ++j) store(y + i * y_stride + j * kLanes<T>, sum[i][j]);
  }
}

/// The same for `rows` ≤ kRows rows.
template <class T, int kRows>
inline void panel_tile_of(int64_t rows, int64_t inputs, const T* x, int64_t x_stride, const T* panel, const T* start,
                          T* y, int64_t y_stride) {
  if (rows == kRows) return panel_tile<T, kRows>(inputs, x, x_stride, panel, start, y, y_stride);
  if constexpr (kRows > 1) panel_tile_of<T, kRows - 1>(rows, inputs, x, x_stride, panel, start, y, y_stride);
}

/// Parallel over panels.
template <class T>
void packed_matmul(const PackedMatmul<T>& a, void*) {
  constexpr int64_t kPanel = kPanelVectors * kLanes<T>;
  const int64_t panels = (a.outputs + kPanel - 1) / kPanel;
  constexpr int64_t kOfOneElement = 8;  // multiply-adds that cost what an element of other kernels does
  for_ranges(panels, a.rows * a.inputs * kPanel / kOfOneElement + 1, [&](int64_t begin, int64_t end) {
    T start[kPanel], tile[kTileRows * kPanel];
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * kPanel, width = smaller(kPanel, a.outputs - first);
      const T* panel = a.panels + first * a.inputs;
      for (int64_t c = 0; c < kPanel; ++c) start[c] = a.bias && c < width ? a.bias[first + c] : T(0);
      for (int64_t t = 0; t < a.rows; t += kTileRows) {
        const int64_t rows = smaller(kTileRows, a.rows - t);
        const T* x = a.x + t * a.x_stride;
        T* y = a.y + t * a.outputs + first;
        if (width == kPanel) {
          panel_tile_of<T, kTileRows>(rows, a.inputs, x, a.x_stride, panel, start, y, a.outputs);
          continue;
        }
        panel_tile_of<T, kTileRows>(rows, a.inputs, x, a.x_stride, panel, start, tile, kPanel);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t c = 0; c < width; ++c) y[i * a.outputs + c] = tile[i * kPanel + c];
        }
      }
    }
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
