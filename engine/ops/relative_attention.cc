#include "engine/ops/relative_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/ops/attention_call.h"
#include "engine/ops/backend.h"

namespace tearless::engine {
namespace {

at::Tensor relative_formula(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& r,
                            const at::Tensor& u, const at::Tensor& w, int64_t heads, const AttentionSpans& spans,
                            int64_t window, const Dropout& dropout) {
  const int64_t d_head = q.size(1) / heads;
  const auto split = [&](const at::Tensor& x) { return x.view({x.size(0), heads, d_head}).transpose(0, 1); };
  const at::Tensor positions = split(r).transpose(1, 2);  // [H, d_h, P]
  at::Tensor out = at::zeros_like(q);
  for (const AttentionSpan& s : spans.spans) {
    if (s.query_count == 0) continue;
    const at::Tensor queries = q.slice(0, s.query_begin, s.query_begin + s.query_count);
    const auto keys_of = [&](const at::Tensor& x) { return split(x.slice(0, s.key_begin, s.key_begin + s.key_count)); };
    const at::TensorOptions index = q.options().dtype(at::kLong);
    const at::Tensor distance = at::arange(s.keys_before(), s.key_count, index).unsqueeze(1) -
                                at::arange(s.key_count, index).unsqueeze(0);  // [query, key]
    const at::Tensor row = distance.clamp(0, r.size(0) - 1).unsqueeze(0).expand({heads, -1, -1});
    at::Tensor scores = (at::matmul(split(queries + u), keys_of(k).transpose(1, 2)) +
                         at::matmul(split(queries + w), positions).gather(2, row)) /
                        std::sqrt(static_cast<double>(d_head));
    at::Tensor hidden = distance < 0;
    if (window > 0) hidden = hidden.logical_or(distance >= window);
    at::Tensor p = at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), 2);
    if (dropout.active()) p = p * attention_keep_scales(dropout, s, heads, q);
    out.slice(0, s.query_begin, s.query_begin + s.query_count)
        .copy_(at::matmul(p, keys_of(v)).transpose(0, 1).reshape({s.query_count, q.size(1)}));
  }
  return out;
}

/// The kernel's arguments, all but the outputs.
template <class T>
RelativeAttention<T> relative_call(const Attention<T>& attention, const Value& r, const Value& u, const Value& w,
                                   int64_t window) {
  return {.attention = attention,
          .positions = r.data().size(0),
          .r = read<T>(r.data()),
          .u = read<Wide<T>>(u.data()),
          .w = read<Wide<T>>(w.data()),
          .window = window};
}

/// The scores and weighted sums of the keys that the queries see, and the scores of their distances.
int64_t multiply_adds(const AttentionSpans& spans, int64_t window, int64_t d_model) {
  int64_t pairs = spans.seen_pairs();
  for (const AttentionSpan& s : spans.spans) {
    for (int64_t seen = s.keys_before() + 1; window > 0 && seen <= s.key_count; ++seen) {
      pairs -= std::max<int64_t>(0, seen - window);
    }
  }
  return 3 * d_model * pairs;
}

}  // namespace

Value relative_attention(Tape& tape, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Value& r,
                         const Value& u, const Value& w, int64_t d_model, int64_t heads, const AttentionSpans& spans,
                         int64_t window, const Dropout& dropout) {
  require(spans.causal && spans.key_rows.empty(), "relative attention: spans that are not causal, or with key_rows");
  const int64_t d_head = attention_head_width(q, k, v, d_model, heads);
  require(r.data().dim() == 2 && r.data().size(0) > 0 && r.data().size(1) == d_model && u.data().numel() == d_model &&
              w.data().numel() == d_model,
          "relative attention: positions or biases of another width");
  require(window >= 0, "relative attention: a negative window");
  if (!fast(tape, q.rows.data(), [d_head](const auto& kernels) {
        return kernels.relative_attention && kernels.relative_attention_backward && kernels.attention_saved_size &&
               d_head <= kernels.widest_head;
      })) {
    return tape.by_formula({q.rows, k.rows, v.rows, r, u, w}, [&](const std::vector<at::Tensor>& in) {
      return relative_formula(
          in[0].slice(1, q.column, q.column + d_model), in[1].slice(1, k.column, k.column + d_model),
          in[2].slice(1, v.column, v.column + d_model), in[3], in[4], in[5], heads, spans, window, dropout);
    });
  }
  if (TapeProfile* profile = tape.profile()) profile->attention_multiply_adds += multiply_adds(spans, window, d_model);
  AttentionCall call{{tape, spans, q.rows.data()}, q, k, v, heads, d_head, dropout};
  const Value out = call.output(tape, /*zeroes=*/false, [&](const auto& kernels, const auto& a, void* stream) {
    kernels.relative_attention(relative_call(a, r, u, w, window), stream);
  });
  tape.record("relative attention", [=] {
    if (!out.has_grad()) return;
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      RelativeAttentionBackward<T> b{.forward = relative_call(call.arguments<T>(), r, u, w, window),
                                     .d_out = read<T>(out.grad())};
      const auto of_columns = [](const ColumnSlice& x, T*& gradient, int64_t& stride) {
        if (!x.rows.requires_grad()) return;
        gradient = gradient_of<T>(x);
        stride = x.rows.grad().stride(0);
      };
      of_columns(q, b.d_q, b.d_q_stride);
      of_columns(k, b.d_k, b.d_k_stride);
      of_columns(v, b.d_v, b.d_v_stride);
      if (r.requires_grad()) b.d_r = write<T>(r.grad_buffer());
      if (u.requires_grad()) b.d_u = write<Wide<T>>(u.grad_buffer());
      if (w.requires_grad()) b.d_w = write<Wide<T>>(w.grad_buffer());
      kernels.relative_attention_backward(b, stream);
    });
  });
  return out;
}

}  // namespace tearless::engine
