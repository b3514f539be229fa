#include "engine/ops/bias_relu_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/relu.h>

#include "engine/ops/linear.h"
#include "engine/ops/rows.h"

namespace tearless::engine {

Value bias_relu_dropout(Tape& tape, const Value& x, const Value& bias, const Dropout& dropout, const PackedRows& rows) {
  if (!tape.fast(x.data())) {
    return tape.by_formula({x, bias}, [&rows, dropout](const std::vector<at::Tensor>& in) {
      const at::Tensor h = at::relu(in[0] + in[1]);
      return dropout.active() ? h * keep_scale_tensor(dropout, rows, h.size(1), h) : h;
    });
  }
  const int64_t count = x.data().size(0);
  const int64_t width = x.data().size(1);
  const Value out(at::empty_like(x.data()));
  for_scalar_type(x.data(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data().const_data_ptr<T>();
    const T* b = bias.data().const_data_ptr<T>();
    T* to = out.data().mutable_data_ptr<T>();
    for_row_ranges(count, width, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const auto row = static_cast<size_t>(t);
        const T* in = from + t * width;
        T* y = to + t * width;
        for (int64_t c = 0; c < width; ++c) y[c] = std::max(in[c] + b[c], T(0));
        if (!dropout.active()) continue;
        for_each_kept(dropout, width, static_cast<uint32_t>(rows.positions[row]),
                      static_cast<uint32_t>(rows.lines[row]),
                      [&](int64_t c, float keep) { y[c] *= static_cast<T>(keep); });
      }
    });
  });
  tape.record([x, bias, out, dropout, count, width] {
    if (!out.has_grad()) return;
    at::Tensor dx = at::empty_like(x.data());
    for_scalar_type(dx, [&](auto zero) {
      using T = decltype(zero);
      const T* y = out.data().const_data_ptr<T>();
      const T* dy = out.grad().const_data_ptr<T>();
      T* to = dx.mutable_data_ptr<T>();
      // y > 0 exactly where the ReLU was open and the element was kept: no mask need be made again.
      const T scale = dropout.active() ? static_cast<T>(dropout.scale) : T(1);
      for_row_ranges(count, width, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * width; i < end * width; ++i) to[i] = y[i] > T(0) ? scale * dy[i] : T(0);
      });
    });
    add_column_sums(dx, bias.grad_buffer());
    x.add_grad(std::move(dx));
  });
  return out;
}

}  // namespace tearless::engine
