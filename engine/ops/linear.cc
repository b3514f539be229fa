#include "engine/ops/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <cstdlib>

#include "engine/ops/rows.h"

namespace tearless::engine {

void fix_product_order() {
  // AMD processors keep the promise by themselves, and not with the variable set (widths of 8 and 12, measured on an
  // EPYC).
  if (!__builtin_cpu_is("intel")) return;
  ::setenv("MKL_CBWR", __builtin_cpu_supports("avx512f") ? "AVX512,STRICT" : "AVX2,STRICT", /*overwrite=*/0);
}

void add_column_sums(const at::Tensor& rows, at::Tensor& sum) {
  if (!rows.device().is_cpu()) {
    sum.add_(rows.sum(0));
    return;
  }
  assert(rows.stride(1) == 1 && sum.is_contiguous());
  const int64_t width = rows.size(1);
  for_scalar_type(rows, [&](auto zero) {
    using T = decltype(zero);
    const T* data = rows.const_data_ptr<T>();
    const int64_t stride = rows.stride(0);
    add_over_rows(rows.size(0), width, sum.mutable_data_ptr<T>(), [&](int64_t t, T* partial) {
      const T* row = data + t * stride;
      for (int64_t c = 0; c < width; ++c) partial[c] += row[c];
    });
  });
}

Value linear(Tape& tape, const Value& x, const Value& weight, const Value& bias) {
  const at::Tensor weight_t = weight.data().t();
  const Value y(bias ? at::addmm(bias.data(), x.data(), weight_t) : at::mm(x.data(), weight_t));
  tape.record([x, weight, bias, y] {
    if (!y.has_grad()) return;
    const at::Tensor& dy = y.grad();                // [T, out]
    weight.grad_buffer().addmm_(dy.t(), x.data());  // [out, in]
    if (bias) add_column_sums(dy, bias.grad_buffer());
    if (x.has_grad()) {
      x.grad_buffer().addmm_(dy, weight.data());  // [T, in]
    } else {
      x.add_grad(at::mm(dy, weight.data()));
    }
  });
  return y;
}

Value gather_rows(Tape& tape, const Value& table, const at::Tensor& indices) {
  const Value rows(table.data().index_select(0, indices));
  tape.record([table, indices, rows] {
    // The indices are distinct, so the order of additions cannot matter.
    if (rows.has_grad()) table.grad_buffer().index_add_(0, indices, rows.grad());
  });
  return rows;
}

}  // namespace tearless::engine
