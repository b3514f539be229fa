// What the hand-written loops share: one scalar type at a time, rows spread over threads, and sums whose order is
// fixed. Every loop here gives the same bits for any number of threads: a row is computed by one thread, and a sum over
// rows is made of fixed blocks added in order.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tearless::engine {

/// Calls f(T{}) with the tensor's element type. float is what trains; double is for finite differences in tests.
template <class F>
void for_scalar_type(const at::Tensor& x, F&& f) {
  if (x.scalar_type() == at::kFloat) return f(float{});
  assert(x.scalar_type() == at::kDouble);
  f(double{});
}

/// Rows a thread takes at a time so that a task is worth its start: about 16k elements.
inline int64_t row_grain(int64_t row_size) { return std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, row_size)); }

/// f(begin, end) over ranges of [0, rows).
template <class F>
void for_row_ranges(int64_t rows, int64_t row_size, F&& f) {
  at::parallel_for(0, rows, row_grain(row_size), std::forward<F>(f));
}

/// Rows a block of a blocked sum holds: fixed, so that the order of additions never depends on the threads.
inline constexpr int64_t kSumBlock = 64;

/// sum[c] += Σ_t value(t, c), in an order that depends only on the number of rows. `add_row(t, partial)` adds row t.
template <class T, class AddRow>
void add_over_rows(int64_t rows, int64_t width, T* sum, AddRow&& add_row) {
  const int64_t blocks = (rows + kSumBlock - 1) / kSumBlock;
  std::vector<T> partial(static_cast<size_t>(blocks * width), T(0));
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t last = std::min(rows, (block + 1) * kSumBlock);
      for (int64_t t = block * kSumBlock; t < last; ++t) add_row(t, partial.data() + block * width);
    }
  });
  for (int64_t block = 0; block < blocks; ++block) {
    const T* p = partial.data() + block * width;
    for (int64_t c = 0; c < width; ++c) sum[c] += p[c];
  }
}

/// y += a · x. The rows must not overlap: said, so that the compiler need not check it for every short row.
template <class T>
inline void add_scaled(int64_t n, T a, const T* __restrict x, T* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

/// e^x by range reduction and a degree-6 polynomial (relative error < 2e-7 in float), written so that the compiler
/// vectorises it. Arguments below -87 give a number near zero. For double the library's exp is used.
inline float exp_of(float x) {
  x = std::max(x, -87.0f);
  const float magic = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer in the low bits
  const float n = (x * 1.44269504f + magic) - magic;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float e = (p * r) * r + r + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return e * power;
}
inline double exp_of(double x) { return std::exp(x); }

/// Σ f(i) over [0, n) in eight interleaved partial sums: a fixed order that the compiler can vectorise without being
/// allowed to re-associate.
template <class T, class F>
T sum_of(int64_t n, F&& f) {
  T partial[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t j = 0; j < 8; ++j) partial[j] += f(i + j);
  }
  for (; i < n; ++i) partial[i % 8] += f(i);
  return ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
         ((partial[4] + partial[5]) + (partial[6] + partial[7]));
}

}  // namespace tearless::engine
