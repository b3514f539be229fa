#include "engine/ops/gates.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sigmoid.h>

#include "engine/ops/backend.h"

namespace tearless::engine {

Value join_columns(Tape& tape, const Value& a, const Value& b) {
  const int64_t width = a.data().size(1);
  const Value joined(at::cat({a.data(), b.data()}, 1));
  tape.record("join columns", [a, b, joined, width] {
    if (!joined.has_grad()) return;
    a.grad_buffer().add_(joined.grad().slice(1, 0, width));
    b.grad_buffer().add_(joined.grad().slice(1, width));
  });
  return joined;
}

Value gated_sum(Tape& tape, const Value& gates, const Value& x) {
  const int64_t rows = x.data().size(0), width = x.data().size(1) / 2;
  if (!fast(tape, x.data(), [](const auto& kernels) { return kernels.gated_sum && kernels.gated_sum_backward; })) {
    return tape.by_formula({gates, x}, [width](const std::vector<at::Tensor>& in) {
      const at::Tensor passed = at::sigmoid(in[0]) * in[1];
      return passed.slice(1, 0, width) + passed.slice(1, width);
    });
  }
  const Value out(at::empty({rows, width}, x.data().options()));
  with_kernels(x.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.gated_sum({.rows = rows,
                       .width = width,
                       .gates = read<T>(gates.data()),
                       .x = read<T>(x.data()),
                       .out = write<T>(out.data())},
                      stream);
  });
  tape.record("gates", [gates, x, out, rows, width] {
    if (!out.has_grad()) return;
    at::Tensor d_gates = at::empty_like(gates.data());
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.gated_sum_backward({.rows = rows,
                                  .width = width,
                                  .gates = read<T>(gates.data()),
                                  .x = read<T>(x.data()),
                                  .d_out = read<T>(out.grad()),
                                  .d_gates = write<T>(d_gates),
                                  .d_x = write<T>(x.grad_buffer())},
                                 stream);
    });
    gates.add_grad(std::move(d_gates));
  });
  return out;
}

}  // namespace tearless::engine
