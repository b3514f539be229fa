// Matmuls of small matrices (scores and values of one head of one sentence), where a GEMM call would cost more than the
// arithmetic.
#pragma once

#include "engine/ops/cpu/simd.h"

namespace tearless::engine::TEARLESS_ISA {

/// A left operand, read one element at a time: element (i, j) is data[i · row + j · column].
template <class T>
struct Strided {
  const T* data;
  int64_t row, column;
};

/// c = a · b, or c += a · b where `add`, for a tile of kRows × (kVectors · kLanes) held in registers.
template <class T, int kRows, int kVectors>
inline void matmul_tile(int64_t depth, const Strided<T>& a, const T* b, int64_t b_row, T* c, int64_t c_row, bool add) {
  Vector<T> sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) sum[i][j] = add ? load(c + i * c_row + j * kLanes<T>) : Vector<T>{};
  }
  for (int64_t l = 0; l < depth; ++l) {
    Vector<T> right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = load(b + l * b_row + j * kLanes<T>);
    for (int i = 0; i < kRows; ++i) {
      const T left = a.data[i * a.row + l * a.column];
      for (int j = 0; j < kVectors; ++j) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) store(c + i * c_row + j * kLanes<T>, sum[i][j]);
  }
}

/// The same for any number of rows.
template <class T, int kVectors>
inline void matmul_columns(int64_t rows, int64_t depth, Strided<T> a, const T* b, int64_t b_row, T* c, int64_t c_row,
                           bool add) {
  constexpr int kTile = 4;
  for (; rows >= kTile; rows -= kTile, a.data += kTile * a.row, c += kTile * c_row) {
    matmul_tile<T, kTile, kVectors>(depth, a, b, b_row, c, c_row, add);
  }
  for (; rows > 0; --rows, a.data += a.row, c += c_row) {
    matmul_tile<T, 1, kVectors>(depth, a, b, b_row, c, c_row, add);
  }
}

/// c [rows, width] = a [rows, depth] · b [depth, width], or c += a · b where `add`. `width` is a multiple of kLanes<T>;
/// the rows of b and c are b_row and c_row elements apart.
template <class T>
inline void small_matmul(int64_t rows, int64_t width, int64_t depth, const Strided<T>& a, const T* b, int64_t b_row,
                         T* c, int64_t c_row, bool add = false) {
  int64_t column = 0;
  for (; column + 2 * kLanes<T> <= width; column += 2 * kLanes<T>) {
    matmul_columns<T, 2>(rows, depth, a, b + column, b_row, c + column, c_row, add);
  }
  if (column < width) matmul_columns<T, 1>(rows, depth, a, b + column, b_row, c + column, c_row, add);
}

}  // namespace tearless::engine::TEARLESS_ISA
