#include "engine/ops/add_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "engine/ops/backend.h"
#include "engine/ops/kernel_variants.h"

namespace tearless::engine {
namespace {

bool does_nothing(const NormOp& norm) {
  return norm.row && norm.row->denominator == RowNorm::Denominator::kOne && !norm.row->centred && !norm.gain;
}

bool has_fused(const Tape& tape, const Value& x) {
  return fast(tape, x.data(), [](const auto& kernels) { return kernels.add_norm && kernels.add_norm_backward; });
}

Value norm_by_formula(Tape& tape, const Value& x, const NormOp& norm) {
  return tape.by_formula({x, norm.gain, norm.bias},
                         [norm](const std::vector<at::Tensor>& in) { return norm.formula(in[0], in[1], in[2]); });
}

Value add_by_formula(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout,
                     const PackedRows& rows) {
  return tape.by_formula({residual, y}, [&rows, dropout](const std::vector<at::Tensor>& in) {
    return dropout.active() ? in[0] + in[1] * keep_scale_tensor(dropout, rows, in[1].size(1), in[1]) : in[0] + in[1];
  });
}

/// One call of the fused kernel. `y` may be empty: then the sum is `residual`, and `rows` may be null. `norm` may be
/// null: then only the sum is computed.
Normed fused(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows* rows,
             const NormOp* norm) {
  const at::Tensor& in = residual.data();
  const int64_t count = in.size(0);
  const int64_t width = in.size(1);
  const Value sum = y ? Value(at::empty_like(in)) : residual;
  const Value normed = norm ? Value(at::empty_like(in)) : Value();
  const int64_t gain_size = norm && norm->gain ? norm->gain.data().numel() : 0;
  std::optional<DropoutCountersOnDevice> counters;
  if (rows && dropout.active()) counters.emplace(tape, *rows, in);
  at::Tensor statistics;  // [T, 3]
  if (norm && tape.recording()) statistics = at::empty({count, 3}, wide_options(in));

  with_kernels(in, [&]<class T>(const Kernels<T>& kernels, void* stream) {
    AddNorm<T> a{.rows = count, .width = width, .residual = read<T>(in)};
    if (y) {
      a.y = read<T>(y.data());
      a.dropout = dropout;
      if (counters) a.counters = counters->get();
      a.sum = write<T>(sum.data());
    }
    if (norm) {
      a.norm = *norm->row;
      if (norm->gain) a.gain = read<Wide<T>>(norm->gain.data());
      a.gain_size = gain_size;
      if (norm->bias) a.bias = read<Wide<T>>(norm->bias.data());
      a.normed = write<T>(normed.data());
      a.statistics = reinterpret_cast<RowStatistics<Wide<T>>*>(write<Wide<T>>(statistics));
    }
    kernels.add_norm(a, stream);
  });

  tape.record(norm ? "residual, dropout, norm" : "residual, dropout", [=, norm = norm ? *norm : NormOp{}] {
    const bool through_norm = normed && normed.has_grad();
    if (!through_norm && !sum.has_grad()) return;
    // In place: ∂ℓ/∂x overwrites a gradient that is read for the last time here.
    const at::Tensor d_x = sum.has_grad() ? sum.grad() : normed.grad();
    const at::Tensor d_y = y ? at::empty_like(d_x) : at::Tensor();
    with_kernels(d_x, [&]<class T>(const Kernels<T>& kernels, void* stream) {
      AddNormBackward<T> b{.rows = count, .width = width, .ahead = kernel_variants().norm_backward};
      if (through_norm) {
        b.x = read<T>(sum.data());
        b.statistics = reinterpret_cast<const RowStatistics<Wide<T>>*>(read<Wide<T>>(statistics));
        b.norm = *norm.row;
        b.gain_size = gain_size;
        b.d_normed = read<T>(normed.grad());
        if (norm.gain) {
          b.gain = read<Wide<T>>(norm.gain.data());
          b.d_gain = write<Wide<T>>(norm.gain.grad_buffer());
        }
        if (norm.bias) b.d_bias = write<Wide<T>>(norm.bias.grad_buffer());
      }
      if (sum.has_grad()) b.d_sum = read<T>(sum.grad());
      b.d_residual = write<T>(d_x);
      if (y) {
        b.dropout = dropout;
        if (counters) b.counters = counters->get();
        b.d_y = write<T>(d_y);
      }
      kernels.add_norm_backward(b, stream);
    });
    if (y) {
      y.add_grad(d_y);
      residual.add_grad(d_x);
    } else if (!residual.has_grad()) {
      residual.add_grad(d_x);
    }
  });
  return {sum, norm ? normed : sum};
}

}  // namespace

Normed add_norm(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows,
                const NormOp& norm) {
  if (has_fused(tape, residual) && norm.row && !does_nothing(norm)) {
    return fused(tape, residual, y, dropout, &rows, &norm);
  }
  const Value sum = add_dropped(tape, residual, y, dropout, rows);
  return {sum, norm_rows(tape, sum, norm)};
}

Value norm_rows(Tape& tape, const Value& x, const NormOp& norm) {
  if (does_nothing(norm)) return x;
  if (!norm.row || !has_fused(tape, x)) return norm_by_formula(tape, x, norm);
  return fused(tape, x, {}, Dropout::off(), nullptr, &norm).normed;
}

Value drop_rows(Tape& tape, const Value& x, const Dropout& dropout, const PackedRows& rows) {
  if (!dropout.active()) return x;
  return add_dropped(tape, Value(at::zeros_like(x.data()), /*requires_grad=*/false), x, dropout, rows);
}

Value add_dropped(Tape& tape, const Value& residual, const Value& y, const Dropout& dropout, const PackedRows& rows) {
  if (!has_fused(tape, residual)) return add_by_formula(tape, residual, y, dropout, rows);
  return fused(tape, residual, y, dropout, &rows, nullptr).sum;
}

}  // namespace tearless::engine
