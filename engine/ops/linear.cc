#include "engine/ops/linear.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/slice.h>
#include <dlfcn.h>

#include "base/error.h"
#include "engine/ops/backend.h"
#include "engine/ops/kernel_variants.h"
#include "engine/ops/matmul.h"
#include "engine/ops/packed_weights.h"

namespace tearless::engine {

void add_column_sums(const at::Tensor& rows, at::Tensor& sum) {
  if (!kernels_have(rows, [](const auto& kernels) { return kernels.column_sums; })) {
    sum.add_(rows.to(sum.scalar_type()).sum(0));
    return;
  }
  require(rows.stride(1) == 1 && sum.is_contiguous() && sum.numel() == rows.size(1),
          "column sums: rows or sums that do not lie as the kernel reads them");
  with_kernels(rows, [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.column_sums({.rows = rows.size(0),
                         .width = rows.size(1),
                         .stride = rows.stride(0),
                         .data = read<T>(rows),
                         .sum = write<Wide<T>>(sum)},
                        stream);
  });
}

namespace {

Matrix matrix(const at::Tensor& x) {
  const bool by_rows = x.stride(1) == 1 && x.stride(0) >= x.size(1);
  require(by_rows || (x.stride(0) == 1 && x.stride(1) >= x.size(0)), "matmul: a matrix with gaps in rows and columns");
  return {x.const_data_ptr<float>(), by_rows ? x.stride(0) : x.stride(1), !by_rows};
}

/// The number of threads that oneDNN uses when this thread calls it. LibTorch has no function for it: its own
/// at::set_num_threads() is for all threads, and slow.
void set_openmp_threads(int threads) {
  static const auto set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set) set(threads);
}

/// matmul() with operands and result rounded to bf16, by LibTorch's oneDNN. With AMX instructions it sums in an order
/// that depends on its number of threads. So each call computes a part of the rows by one thread, and the parts follow
/// from the shape alone. A call takes 20 µs at least.
void matmul_in_bf16(const at::Tensor& a, const at::Tensor& b, at::Tensor& c, bool add) {
  const at::Tensor left = a.to(at::kBFloat16), right = b.to(at::kBFloat16);
  at::Tensor rounded = at::empty(c.sizes(), c.options().dtype(at::kBFloat16));
  const int64_t rows = c.size(0);
  const bool is_large = rows >= 64 && rows * c.size(1) * a.size(1) >= 1 << 22;
  const int64_t parts = is_large ? 2 : 1;
  const int threads = at::get_num_threads();  // OpenMP's number, which is 1 afterwards where this thread computes alone
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    set_openmp_threads(1);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = rows * i / parts, last = rows * (i + 1) / parts;
      at::Tensor part = rounded.slice(0, first, last);
      at::mm_out(part, left.slice(0, first, last), right);
    }
  });
  set_openmp_threads(threads);
  add ? c.add_(rounded) : c.copy_(rounded);
}

}  // namespace

void matmul(const at::Tensor& a, const at::Tensor& b, at::Tensor& c, bool add) {
  if (c.scalar_type() != a.scalar_type()) {
    if (!c.device().is_cuda()) return matmul(a.to(c.scalar_type()), b.to(c.scalar_type()), c, add);
    at::addmm_out(c, c, a, b, c.scalar_type(), /*beta=*/add ? 1 : 0);
    return;
  }
  const bool processor = c.device().is_cpu() && c.scalar_type() == at::kFloat;
  if (!processor || !(has_matmul_library() || uses_bf16_matmuls())) {
    if (add) {
      c.addmm_(a, b);
    } else {
      at::mm_out(c, a, b);
    }
    return;
  }
  // The libraries see pointers alone, where at::mm() would compare the shapes.
  require(a.size(1) == b.size(0) && c.size(0) == a.size(0) && c.size(1) == b.size(1), "matmul: shapes do not match");
  require(c.stride(1) == 1, "matmul: a result with gaps in its rows");
  if (uses_bf16_matmuls()) return matmul_in_bf16(a, b, c, add);
  multiply(c.size(0), c.size(1), a.size(1), matrix(a), matrix(b), add, c.mutable_data_ptr<float>(), c.stride(0));
}

namespace {

at::Tensor empty_rows(int64_t rows, int64_t width, RowStride stride, const at::TensorOptions& options) {
  constexpr int64_t kGroup = 8;  // 16 bytes of bf16, the narrowest type
  if (stride == RowStride::kWidth || !options.device().is_cuda()) return at::empty({rows, width}, options);
  return at::empty({rows, (width + kGroup - 1) / kGroup * kGroup}, options).slice(1, 0, width);
}

/// y = x Wᵀ + b.
void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y) {
  if (!bias.defined()) return matmul(x, weight.t(), y, /*add=*/false);
  if (y.device().is_cuda()) {
    at::addmm_out(y, bias, x, weight.t());  // cuBLAS adds the bias in its epilogue, if y has no gaps
    return;
  }
  y.copy_(bias.expand_as(y));
  matmul(x, weight.t(), y, /*add=*/true);
}

/// y = x Wᵀ + b with the tape's packed weights; false if it has none for this matmul.
bool by_panels(const Tape& tape, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
               const at::Tensor& y) {
  if (!tape.packed_weights() || tape.recording()) return false;
  const at::Tensor panels = tape.packed_weights()->panels_of(weight);
  if (!panels.defined()) return false;
  require(x.stride(1) == 1 && y.is_contiguous() && x.size(1) == weight.size(1), "packed matmul: shapes do not match");
  kernels_for<float>(x).packed_matmul({.rows = x.size(0),
                                       .inputs = x.size(1),
                                       .outputs = weight.size(0),
                                       .x = read<float>(x),
                                       .x_stride = x.stride(0),
                                       .panels = read<float>(panels),
                                       .bias = read<float>(bias),
                                       .y = write<float>(y)},
                                      nullptr);
  return true;
}

/// Both gradients as one matmul, or false where that is not to be.
bool add_weight_and_bias_gradient(const at::Tensor& dy, const at::Tensor& x, const Value& weight, const Value& bias) {
  if (!kernel_variants().bias_gradients || dy.scalar_type() != at::kBFloat16) return false;
  const Kernels<bf16>& kernels = kernels_for<bf16>(dy);
  if (!kernels.weight_gradient) return false;
  at::Tensor& d_weight = weight.grad_buffer();
  at::Tensor sums = at::empty({dy.size(1)}, d_weight.options());
  const bool done = kernels.weight_gradient({.rows = dy.size(0),
                                             .in = x.size(1),
                                             .out = dy.size(1),
                                             .x = read<bf16>(x),
                                             .d_y = read<bf16>(dy),
                                             .x_stride = x.stride(0),
                                             .d_y_stride = dy.stride(0),
                                             .d_weight = write<float>(d_weight),
                                             .d_weight_stride = d_weight.stride(0),
                                             .bias_sums = write<float>(sums)},
                                            stream_for(dy));
  if (done) bias.grad_buffer().add_(sums);
  return done;
}

}  // namespace

Value linear(Tape& tape, const Value& x, const Value& weight, const Value& bias, RowStride stride) {
  const at::ScalarType type = x.data().scalar_type();
  const Value y(empty_rows(x.data().size(0), weight.data().size(0), stride, x.data().options()));
  const at::Tensor w = weight.as(type);  // [out, in]
  const at::Tensor b = bias ? bias.as(type) : at::Tensor();
  if (!by_panels(tape, x.data(), w, b, y.data())) {
    at::Tensor rows = y.data();
    forward(x.data(), w, b, rows);
  }
  if (TapeProfile* profile = tape.profile()) {
    profile->matmuls.push_back({x.data().size(0), x.data().size(1), weight.data().size(0)});
  }
  tape.record("matmul", [x, weight, w, bias, y] {
    if (!y.has_grad()) return;
    const at::Tensor& dy = y.grad();  // [T, out]
    if (!bias || !add_weight_and_bias_gradient(dy, x.data(), weight, bias)) {
      matmul(dy.t(), x.data(), weight.grad_buffer(), /*add=*/true);  // [out, in]
      if (bias) add_column_sums(dy, bias.grad_buffer());
    }
    if (!x.requires_grad()) return;
    const bool add = x.has_grad();
    at::Tensor dx = add ? x.grad() : at::empty_like(x.data());
    matmul(dy, w, dx, add);  // [T, in]
    if (!add) x.add_grad(std::move(dx));
  });
  return y;
}

Value slice_rows(Tape& tape, const Value& table, int64_t begin, int64_t end) {
  const auto rows = [&](const at::Tensor& x) { return x.defined() ? x.slice(0, begin, end) : x; };
  return Value::parameter(rows(table.data()), tape.recording() ? rows(table.grad_buffer()) : at::Tensor(),
                          rows(table.bf16_copy()));
}

Value gather_rows(Tape& tape, const Value& table, const at::Tensor& indices) {
  const Value rows(table.data().index_select(0, indices));
  tape.record("gather", [table, indices, rows] {
    // The indices are distinct, so the order of additions does not matter.
    if (rows.has_grad()) table.grad_buffer().index_add_(0, indices, rows.grad());
  });
  return rows;
}

}  // namespace tearless::engine
