#include "engine/ops/add_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "engine/ops/linear.h"
#include "engine/ops/rows.h"

namespace tearless::engine {
namespace {

// normed = gain ⊙ x̂ + bias with x̂ = (x - μ)·s, s = 1/denominator. With δ' = gain ⊙ δ (knobs.md §2.2):
//   ∂ℓ/∂x = s·(δ' - [centred] mean(δ') - x̂·w·Σ δ' x̂)
// where w says how the denominator moves with the row: 1/d for √(ms + ε) (exact with ε, since x̂ holds the same s), 1
// for the length, 0 where the denominator is constant (no norm, or a clamped length).
template <class T>
struct RowStatistics {
  T mean, inverse, weight;
};

template <class T>
RowStatistics<T> statistics(const T* x, int64_t width, const RowNorm& norm) {
  T mean = 0;
  if (norm.centred) mean = sum_of<T>(width, [&](int64_t c) { return x[c]; }) / static_cast<T>(width);
  const auto squares = [&] { return sum_of<T>(width, [&](int64_t c) { return (x[c] - mean) * (x[c] - mean); }); };
  const T eps = static_cast<T>(norm.eps);
  switch (norm.denominator) {
    case RowNorm::Denominator::kOne:
      return {mean, T(1), T(0)};
    case RowNorm::Denominator::kRootAddEps:
      return {mean, T(1) / std::sqrt(squares() / static_cast<T>(width) + eps), T(1) / static_cast<T>(width)};
    case RowNorm::Denominator::kLengthClamped: {
      const T length = std::sqrt(squares());
      return length > eps ? RowStatistics<T>{mean, T(1) / length, T(1)} : RowStatistics<T>{mean, T(1) / eps, T(0)};
    }
  }
  return {mean, T(1), T(0)};
}

/// A gain or bias as the loops read it: element c of a [D] vector, or the one element of a [1].
template <class T>
struct Vector {
  const T* data = nullptr;
  int64_t step = 0;
  explicit Vector(const Value& value) {
    if (!value) return;
    data = value.data().const_data_ptr<T>();
    step = value.data().numel() == 1 ? 0 : 1;
  }
  T operator[](int64_t c) const { return data[c * step]; }
};

template <class T>
void forward_row(const T* x, T* out, int64_t width, const RowNorm& norm, const Vector<T>& gain, const Vector<T>& bias,
                 RowStatistics<T>& stats) {
  stats = statistics(x, width, norm);
  for (int64_t c = 0; c < width; ++c) out[c] = (x[c] - stats.mean) * stats.inverse;
  if (gain.data) {
    for (int64_t c = 0; c < width; ++c) out[c] *= gain[c];
  }
  if (bias.data) {
    for (int64_t c = 0; c < width; ++c) out[c] += bias[c];
  }
}

template <class T>
void backward_row(const T* x, const T* dy, T* dx, int64_t width, const RowNorm& norm, const Vector<T>& gain,
                  const RowStatistics<T>& stats) {
  const auto scaled = [&](int64_t c) { return gain.data ? gain[c] * dy[c] : dy[c]; };
  const auto unit = [&](int64_t c) { return (x[c] - stats.mean) * stats.inverse; };
  T mean = 0;
  if (norm.centred) mean = sum_of<T>(width, scaled) / static_cast<T>(width);
  T along = 0;
  if (stats.weight != T(0)) along = stats.weight * sum_of<T>(width, [&](int64_t c) { return scaled(c) * unit(c); });
  for (int64_t c = 0; c < width; ++c) dx[c] = stats.inverse * (scaled(c) - mean - unit(c) * along);
}

/// Adds ∂ℓ/∂gain = Σ x̂ ⊙ δ, summed over channels too for a scalar gain.
template <class T>
void add_gain_grad(const at::Tensor& x, const at::Tensor& dy, const std::vector<RowStatistics<T>>& stats,
                   const Value& gain) {
  const int64_t width = x.size(1);
  const T* rows = x.const_data_ptr<T>();
  const T* grads = dy.const_data_ptr<T>();
  const bool scalar = gain.data().numel() == 1;
  T* to = gain.grad_buffer().template mutable_data_ptr<T>();
  add_over_rows(x.size(0), scalar ? 1 : width, to, [&](int64_t t, T* partial) {
    const RowStatistics<T>& s = stats[static_cast<size_t>(t)];
    const T* row = rows + t * width;
    const T* grad = grads + t * width;
    if (scalar) {
      *partial += s.inverse * sum_of<T>(width, [&](int64_t c) { return (row[c] - s.mean) * grad[c]; });
    } else {
      for (int64_t c = 0; c < width; ++c) partial[c] += (row[c] - s.mean) * s.inverse * grad[c];
    }
  });
}

at::Tensor apply_formula(const NormOp& norm, const std::vector<at::Tensor>& in) {
  return norm.formula(in[0], in[1], in[2]);
}

}  // namespace

Value add_dropped(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows) {
  if (!tape.fast(y.data())) {
    return tape.by_formula({residual, y}, [&rows, dropout](const std::vector<at::Tensor>& in) {
      return dropout.active() ? in[0] + in[1] * keep_scale_tensor(dropout, rows, in[1].size(1), in[1]) : in[0] + in[1];
    });
  }
  const int64_t count = y.data().size(0);
  const int64_t width = y.data().size(1);
  const Value sum(at::empty_like(y.data()));
  for_scalar_type(y.data(), [&](auto zero) {
    using T = decltype(zero);
    const T* r = residual.data().const_data_ptr<T>();
    const T* f = y.data().const_data_ptr<T>();
    T* out = sum.data().mutable_data_ptr<T>();
    for_row_ranges(count, width, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const auto row = static_cast<size_t>(t);
        const int64_t at = t * width;
        if (!dropout.active()) {
          for (int64_t c = 0; c < width; ++c) out[at + c] = r[at + c] + f[at + c];
          continue;
        }
        for_each_kept(dropout, width, static_cast<uint32_t>(rows.positions[row]),
                      static_cast<uint32_t>(rows.lines[row]),
                      [&](int64_t c, float keep) { out[at + c] = r[at + c] + static_cast<T>(keep) * f[at + c]; });
      }
    });
  });
  tape.record([residual, y, sum, dropout, &rows, count, width] {
    if (!sum.has_grad()) return;
    at::Tensor dy = at::empty_like(sum.data());
    for_scalar_type(dy, [&](auto zero) {
      using T = decltype(zero);
      const T* from = sum.grad().const_data_ptr<T>();
      T* to = dy.mutable_data_ptr<T>();
      for_row_ranges(count, width, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const auto row = static_cast<size_t>(t);
          const int64_t at = t * width;
          if (!dropout.active()) {
            std::copy_n(from + at, width, to + at);
            continue;
          }
          for_each_kept(dropout, width, static_cast<uint32_t>(rows.positions[row]),
                        static_cast<uint32_t>(rows.lines[row]),
                        [&](int64_t c, float keep) { to[at + c] = static_cast<T>(keep) * from[at + c]; });
        }
      });
    });
    y.add_grad(std::move(dy));
    residual.add_grad(sum.grad());  // the sum is not read again: its gradient changes owner
  });
  return sum;
}

Value norm_rows(Tape& tape, const Value& x, const NormOp& norm) {
  if (norm.row && norm.row->denominator == RowNorm::Denominator::kOne && !norm.gain) return x;
  if (!norm.row || !tape.fast(x.data())) {
    return tape.by_formula({x, norm.gain, norm.bias},
                           [norm](const std::vector<at::Tensor>& in) { return apply_formula(norm, in); });
  }
  const int64_t count = x.data().size(0);
  const int64_t width = x.data().size(1);
  const Value out(at::empty_like(x.data()));
  for_scalar_type(x.data(), [&](auto zero) {
    using T = decltype(zero);
    auto stats = std::make_shared<std::vector<RowStatistics<T>>>(static_cast<size_t>(count));
    const T* from = x.data().const_data_ptr<T>();
    T* to = out.data().mutable_data_ptr<T>();
    const Vector<T> gain(norm.gain);
    const Vector<T> bias(norm.bias);
    for_row_ranges(count, width, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        forward_row(from + t * width, to + t * width, width, *norm.row, gain, bias, (*stats)[static_cast<size_t>(t)]);
      }
    });
    tape.record([x, norm, out, stats, count, width] {
      if (!out.has_grad()) return;
      if (norm.gain) add_gain_grad<T>(x.data(), out.grad(), *stats, norm.gain);
      if (norm.bias) add_column_sums(out.grad(), norm.bias.grad_buffer());
      at::Tensor dx = at::empty_like(x.data());
      const T* rows = x.data().const_data_ptr<T>();
      const T* dy = out.grad().template const_data_ptr<T>();
      T* grads = dx.mutable_data_ptr<T>();
      const Vector<T> g(norm.gain);
      for_row_ranges(count, width, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          backward_row(rows + t * width, dy + t * width, grads + t * width, width, *norm.row, g,
                       (*stats)[static_cast<size_t>(t)]);
        }
      });
      x.add_grad(std::move(dx));
    });
  });
  return out;
}

}  // namespace tearless::engine
