#include "engine/ops/span_means.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "base/error.h"
#include "engine/ops/backend.h"

namespace tearless::engine {

Value span_means(Tape& tape, const Value& x, const AttentionSpans& spans) {
  require(spans.key_rows.empty(), "span means: spans with key_rows");
  if (!fast(tape, x.data(), [](const auto& kernels) { return kernels.span_means && kernels.span_means_backward; })) {
    return tape.by_formula({x}, [&](const std::vector<at::Tensor>& in) {
      std::vector<at::Tensor> means;
      for (const AttentionSpan& s : spans.spans) {
        means.push_back(s.key_count > 0 ? in[0].slice(0, s.key_begin, s.key_begin + s.key_count).mean(0)
                                        : at::zeros({in[0].size(1)}, in[0].options()));
      }
      return at::stack(means);
    });
  }
  const auto count = static_cast<int64_t>(spans.spans.size());
  const int64_t rows = x.data().size(0);
  const int64_t width = x.data().size(1);
  const OnDevice<AttentionSpan> list(tape, spans.spans, x.data());
  const Value out(at::empty({count, width}, x.data().options()), x.requires_grad());
  with_kernels(x.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.span_means({.spans = list.data(),
                        .span_count = count,
                        .rows = rows,
                        .width = width,
                        .x = read<T>(x.data()),
                        .out = write<T>(out.data())},
                       stream);
  });
  tape.record("span means", [x, out, list, count, rows, width] {
    if (!out.has_grad()) return;
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.span_means_backward({.spans = list.data(),
                                   .span_count = count,
                                   .rows = rows,
                                   .width = width,
                                   .d_out = read<T>(out.grad()),
                                   .d_x = write<T>(x.grad_buffer())},
                                  stream);
    });
  });
  return out;
}

}  // namespace tearless::engine
