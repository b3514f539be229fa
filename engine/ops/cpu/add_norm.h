// residual + drop(y) and the norm of it, row by row (kernels.h: AddNorm).
#pragma once

#include "engine/ops/cpu/dropout.h"

namespace tearless::engine::TEARLESS_ISA {

/// Mean, 1 / denominator and weight of one row (kernels.h: RowStatistics).
template <class T>
inline RowStatistics<T> statistics_of(const T* x, int64_t width, const RowNorm& norm) {
  using Denominator = RowNorm::Denominator;
  const T d = static_cast<T>(width);
  const T eps = static_cast<T>(norm.eps);
  T mean = 0;
  if (norm.centred) mean = sum_of<T>(width, [x](int64_t c) { return x[c]; }) / d;
  if (norm.denominator == Denominator::kOne) return {mean, T(1), T(0)};
  const T squares = sum_of<T>(width, [x, mean](int64_t c) { return (x[c] - mean) * (x[c] - mean); });
  const T on = norm.denominator_has_gradient ? T(1) : T(0);
  const T n = norm.unbiased ? d - T(1) : d;
  switch (norm.denominator) {
    case Denominator::kRootAddEps:
      return {mean, T(1) / root_of(squares / n + eps), on / n};
    case Denominator::kDeviationAddEps: {
      const T s = root_of(squares / n);
      return {mean, T(1) / (s + eps), s > T(0) ? on * (s + eps) / (n * s) : T(0)};
    }
    case Denominator::kDeviationClamped: {
      const T s = root_of(squares / n);
      return s > eps ? RowStatistics<T>{mean, T(1) / s, on / n} : RowStatistics<T>{mean, T(1) / eps, T(0)};
    }
    default: {
      const T length = root_of(squares);
      return length > eps ? RowStatistics<T>{mean, T(1) / length, on} : RowStatistics<T>{mean, T(1) / eps, T(0)};
    }
  }
}

/// out = gain ⊙ x̂ + bias, or scale · (1 - shrink x̂) ⊙ x̂, with x̂ = (x - mean) · inverse.
template <class T>
inline void norm_row(const AddNorm<T>& a, const T* x, const RowStatistics<T>& s, T* out) {
  const T* gain = a.gain;
  const T* bias = a.bias;
  const T mean = s.mean;
  const T scale = static_cast<T>(a.norm.scale), shrink = static_cast<T>(a.norm.shrink);
  if (shrink != T(0)) {
#pragma omp simd
    for (int64_t c = 0; c < a.width; ++c) {
      const T unit = (x[c] - mean) * s.inverse;
      out[c] = scale * (T(1) - shrink * unit) * unit;
    }
    return;
  }
  const T inverse = s.inverse * (a.gain_size == 1 ? gain[0] : scale);
  if (a.gain_size <= 1) {
#pragma omp simd
    for (int64_t c = 0; c < a.width; ++c) out[c] = (x[c] - mean) * inverse;
  } else {
#pragma omp simd
    for (int64_t c = 0; c < a.width; ++c) out[c] = (x[c] - mean) * inverse * gain[c];
  }
  if (!bias) return;
#pragma omp simd
  for (int64_t c = 0; c < a.width; ++c) out[c] += bias[c];
}

template <class T>
void add_norm(const AddNorm<T>& a, void*) {
  const int64_t width = a.width;
  for_ranges(a.rows, 4 * width, [&](int64_t begin, int64_t end) {
    const Scratch<T> unseen(a.y && !a.sum ? width : 1);  // x, where the caller does not want it
    for_rows_with_keep<T>(a.y ? a.dropout : Dropout::off(), a.counters, begin, end, width,
                          [&](int64_t t, const T* keep) {
                            const T* residual = a.residual + t * width;
                            const T* x = residual;
                            if (a.y) {
                              const T* y = a.y + t * width;
                              T* sum = a.sum ? a.sum + t * width : unseen.get();
                              if (keep) {
#pragma omp simd
                                for (int64_t c = 0; c < width; ++c) sum[c] = residual[c] + keep[c] * y[c];
                              } else {
#pragma omp simd
                                for (int64_t c = 0; c < width; ++c) sum[c] = residual[c] + y[c];
                              }
                              x = sum;
                            }
                            if (!a.normed) return;
                            const RowStatistics<T> s = statistics_of(x, width, a.norm);
                            if (a.statistics) a.statistics[t] = s;
                            norm_row(a, x, s, a.normed + t * width);
                          });
  });
}

/// Adds the gradients of gain and bias from rows begin … end - 1 to partial [gain_size + D].
template <class T>
inline void add_gain_bias(const AddNormBackward<T>& a, int64_t begin, int64_t end, T* partial) {
  const int64_t width = a.width;
  T* bias = partial + a.gain_size;
  for (int64_t t = begin; t < end; ++t) {
    const T* x = a.x + t * width;
    const T* d = a.d_normed + t * width;
    const T mean = a.statistics[t].mean;
    const T inverse = a.statistics[t].inverse;
    if (a.d_gain && a.gain_size == 1) {
      *partial += inverse * sum_of<T>(width, [=](int64_t c) { return (x[c] - mean) * d[c]; });
    } else if (a.d_gain) {
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) partial[c] += (x[c] - mean) * inverse * d[c];
    }
    if (a.d_bias) {
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) bias[c] += d[c];
    }
  }
}

/// to = ∂ℓ/∂x of row t, with δ' = upstream(c); `to` may be the row of d_normed or d_sum itself.
template <class T, class Upstream>
inline void norm_row_backward(const AddNormBackward<T>& a, int64_t t, T* to, const Upstream& upstream) {
  const int64_t width = a.width;
  const T* x = a.x + t * width;
  const T* more = a.d_sum ? a.d_sum + t * width : nullptr;
  const RowStatistics<T> s = a.statistics[t];
  T sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (int64_t c = 0; c < width; ++c) {
    const T scaled = upstream(c);
    sum += scaled;
    dot += scaled * (x[c] - s.mean);
  }
  // inverse · (δ' - mean(δ') - x̂ · weight · Σ δ' x̂) with x̂ = (x - mean) · inverse
  const T mean = a.norm.centred && a.norm.mean_has_gradient ? sum / static_cast<T>(width) : T(0);
  const T slope = s.inverse * s.inverse * s.weight * dot;
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) {
    const T dx = s.inverse * (upstream(c) - mean - (x[c] - s.mean) * slope);
    to[c] = more ? dx + more[c] : dx;
  }
}

template <class T>
inline void norm_row_backward(const AddNormBackward<T>& a, int64_t t, T* to) {
  const T* d = a.d_normed + t * a.width;
  const T scale = static_cast<T>(a.norm.scale), shrink = static_cast<T>(a.norm.shrink);
  if (a.gain_size > 1) {
    norm_row_backward(a, t, to, [gain = a.gain, d](int64_t c) { return gain[c] * d[c]; });
  } else if (shrink == T(0)) {
    norm_row_backward(a, t, to,
                      [scalar = a.gain_size == 1 ? a.gain[0] : scale, d](int64_t c) { return scalar * d[c]; });
  } else {
    const T* x = a.x + t * a.width;
    const RowStatistics<T> s = a.statistics[t];
    norm_row_backward(a, t, to,
                      [=](int64_t c) { return scale * (T(1) - shrink * ((x[c] - s.mean) * s.inverse)) * d[c]; });
  }
}

template <class T>
void add_norm_backward(const AddNormBackward<T>& a, void*) {
  const int64_t width = a.width;
  // Before the rows, because d_residual may be the same memory as d_normed.
  if (a.d_normed && (a.d_gain || a.d_bias)) {
    const int64_t gain = a.d_gain ? a.gain_size : 0;
    const Scratch<T> sums(gain + width);
    for (int64_t c = 0; c < gain + width; ++c) sums.get()[c] = T(0);
    AddNormBackward<T> of_gain = a;
    of_gain.gain_size = gain;
    add_over_rows(a.rows, gain + (a.d_bias ? width : 0), sums.get(),
                  [&](int64_t begin, int64_t end, T* partial) { add_gain_bias(of_gain, begin, end, partial); });
    for (int64_t c = 0; c < gain; ++c) a.d_gain[c] += sums.get()[c];
    for (int64_t c = 0; a.d_bias && c < width; ++c) a.d_bias[c] += sums.get()[gain + c];
  }
  for_ranges(a.rows, 4 * width, [&](int64_t begin, int64_t end) {
    for_rows_with_keep<T>(a.d_y ? a.dropout : Dropout::off(), a.counters, begin, end, width,
                          [&](int64_t t, const T* keep) {
                            T* to = a.d_residual + t * width;
                            if (a.d_normed) {
                              norm_row_backward(a, t, to);
                            } else if (to != a.d_sum + t * width) {
                              __builtin_memcpy(to, a.d_sum + t * width, static_cast<size_t>(width) * sizeof(T));
                            }
                            if (!a.d_y) return;
                            T* dy = a.d_y + t * width;
                            if (keep) {
#pragma omp simd
                              for (int64_t c = 0; c < width; ++c) dy[c] = keep[c] * to[c];
                            } else {
                              __builtin_memcpy(dy, to, static_cast<size_t>(width) * sizeof(T));
                            }
                          });
  });
}

}  // namespace tearless::engine::TEARLESS_ISA
