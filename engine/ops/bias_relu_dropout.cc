#include "engine/ops/bias_relu_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>

#include "engine/ops/backend.h"

namespace tearless::engine {

Value bias_relu_dropout(Tape& tape, const Value& x, const Value& bias, const Dropout& dropout, const PackedRows& rows) {
  if (!fast(tape, x.data(),
            [](const auto& kernels) { return kernels.bias_relu_dropout && kernels.bias_relu_dropout_backward; })) {
    return tape.by_formula({x, bias}, [&rows, dropout](const std::vector<at::Tensor>& in) {
      const at::Tensor h = at::relu(in[1].defined() ? in[0] + in[1] : in[0]);
      return dropout.active() ? h * keep_scale_tensor(dropout, rows, h.size(1), h) : h;
    });
  }
  const int64_t count = x.data().size(0);
  const int64_t width = x.data().size(1);
  const DropoutCountersOnDevice counters(tape, rows, x.data());
  const Value out(x.data());  // in place: backward needs the result only
  with_kernels(x.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.bias_relu_dropout({.rows = count,
                               .width = width,
                               .x = read<T>(x.data()),
                               .bias = bias ? read<Wide<T>>(bias.data()) : nullptr,
                               .dropout = dropout,
                               .counters = counters.get(),
                               .out = write<T>(out.data())},
                              stream);
  });
  tape.record("bias, ReLU, dropout", [x, bias, out, dropout, count, width] {
    if (!out.has_grad()) return;
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.bias_relu_dropout_backward({.rows = count,
                                          .width = width,
                                          .out = read<T>(out.data()),
                                          .dropout = dropout,
                                          .d_out = read<T>(out.grad()),
                                          .d_x = write<T>(out.grad()),
                                          .d_bias = bias ? write<Wide<T>>(bias.grad_buffer()) : nullptr},
                                         stream);
    });
    x.add_grad(out.grad());
  });
  return out;
}

}  // namespace tearless::engine
