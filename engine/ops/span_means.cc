#include "engine/ops/span_means.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "base/error.h"
#include "engine/ops/backend.h"

namespace tearless::engine {
namespace {

at::Tensor running_formula(const at::Tensor& x, const AttentionSpans& spans, const at::Tensor& sums) {
  at::Tensor means = at::zeros_like(x);
  for (const AttentionSpan& s : spans.spans) {
    if (s.query_count == 0) continue;
    const int64_t before = s.key_count - s.query_count;
    const auto row_of = [&](int64_t key) -> int64_t {
      const int64_t listed = s.key_begin + key;
      return spans.key_rows.empty() ? listed : spans.key_rows[static_cast<size_t>(listed)];
    };
    at::Tensor sum = x.slice(0, s.query_begin, s.query_begin + s.query_count).cumsum(0);
    if (before > 0) sum = sum + sums[row_of(before - 1)].to(sum.scalar_type());
    for (int64_t q = 0; sums.defined() && q < s.query_count; ++q) sums[row_of(before + q)].copy_(sum[q].detach());
    const at::Tensor counts = at::arange(before + 1, s.key_count + 1, x.options()).unsqueeze(1);
    means.slice(0, s.query_begin, s.query_begin + s.query_count).copy_(sum / counts);
  }
  return means;
}

/// Of both operations, by that kernel.
template <class KernelOf>
void record_gradient(Tape& tape, const char* name, const Value& x, const Value& out,
                     const OnDevice<AttentionSpan>& list, int64_t span_count, KernelOf kernel_of) {
  tape.record(name, [=] {
    if (!out.has_grad()) return;
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernel_of(kernels)({.spans = list.data(),
                          .span_count = span_count,
                          .rows = x.data().size(0),
                          .width = x.data().size(1),
                          .d_out = read<T>(out.grad()),
                          .d_x = write<T>(x.grad_buffer())},
                         stream);
    });
  });
}

}  // namespace

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
  const OnDevice<AttentionSpan> list(tape, spans.spans, x.data());
  const Value out(at::empty({count, x.data().size(1)}, x.data().options()), x.requires_grad());
  with_kernels(x.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.span_means({.spans = list.data(),
                        .span_count = count,
                        .rows = x.data().size(0),
                        .width = x.data().size(1),
                        .x = read<T>(x.data()),
                        .out = write<T>(out.data())},
                       stream);
  });
  record_gradient(tape, "span means", x, out, list, count,
                  [](const auto& kernels) { return kernels.span_means_backward; });
  return out;
}

Value running_means(Tape& tape, const Value& x, const AttentionSpans& spans, const at::Tensor& sums) {
  require(spans.causal || std::ranges::all_of(spans.spans, [](const auto& s) { return s.query_count <= 1; }),
          "running means: spans that are not causal");
  require(
      sums.defined() || std::ranges::all_of(spans.spans, [](const auto& s) { return s.key_count == s.query_count; }),
      "running means: keys before the queries, and no sums of them");
  require(spans.key_rows.empty() || (sums.defined() && !tape.recording()), "running means: spans with key_rows");
  if (!fast(tape, x.data(),
            [](const auto& kernels) { return kernels.running_means && kernels.running_means_backward; })) {
    return tape.by_formula({x}, [&](const std::vector<at::Tensor>& in) { return running_formula(in[0], spans, sums); });
  }
  const auto count = static_cast<int64_t>(spans.spans.size());
  const int64_t rows = x.data().size(0), width = x.data().size(1);
  const OnDevice<AttentionSpan> list(tape, spans.spans, x.data());
  const OnDevice<int32_t> key_rows(tape, spans.key_rows, x.data());
  const at::TensorOptions& options = x.data().options();
  const Value out(spans.padded ? at::zeros({rows, width}, options) : at::empty({rows, width}, options),
                  x.requires_grad());
  with_kernels(x.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.running_means({.spans = list.data(),
                           .span_count = count,
                           .rows = rows,
                           .width = width,
                           .key_rows = spans.key_rows.empty() ? nullptr : key_rows.data(),
                           .x = read<T>(x.data()),
                           .sums = write<Wide<T>>(sums),
                           .out = write<T>(out.data())},
                          stream);
  });
  record_gradient(tape, "running means", x, out, list, count,
                  [](const auto& kernels) { return kernels.running_means_backward; });
  return out;
}

}  // namespace tearless::engine
