// What the operations of attention share (attention.cc, relative_attention.cc): from their arguments to those of the
// kernels, and dropout in their formulas.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstdint>

#include "base/error.h"
#include "engine/ops/attention.h"
#include "engine/ops/backend.h"
#include "engine/ops/kernel_variants.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// d_h. The kernels see pointers alone: std::logic_error where columns or heads do not fit.
inline int64_t attention_head_width(const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, int64_t d_model,
                                    int64_t heads) {
  for (const ColumnSlice* x : {&q, &k, &v}) {
    require(x->column + d_model <= x->rows.data().size(1), "attention: columns beyond the end of the rows");
  }
  require(d_model % heads == 0, "attention: heads that do not divide the columns");
  return d_model / heads;
}

/// For formulas: the dropout multipliers of a span's probabilities, [heads, query_count, key_count] of `like`'s type.
at::Tensor attention_keep_scales(const Dropout& dropout, const AttentionSpan& s, int64_t heads, const at::Tensor& like);

template <class T>
const T* column_of(const ColumnSlice& columns) {
  return read<T>(columns.rows.data()) + columns.column;
}
template <class T>
T* gradient_of(const ColumnSlice& columns) {
  return write<T>(columns.rows.grad_buffer()) + columns.column;
}

/// The spans, and their arrays readable on the kernels' device.
struct SpansOnDevice {
  SpansOnDevice(const Tape& tape, const AttentionSpans& spans, const at::Tensor& like)
      : host(spans), list(tape, spans.spans, like), key_rows(tape, spans.key_rows, like) {}
  const AttentionSpans& host;
  const OnDevice<AttentionSpan> list;
  const OnDevice<int32_t> key_rows;
};

/// One call of an operation.
struct AttentionCall {
  const SpansOnDevice spans;
  const ColumnSlice q, k, v;
  const int64_t heads, d_head;
  const Dropout dropout;
  at::Tensor saved = {};  // for the gradient

  /// The kernel's arguments, all but the outputs.
  template <class T>
  Attention<T> arguments() const {
    Attention<T> a;
    a.spans = spans.list.data();
    a.span_count = static_cast<int64_t>(spans.host.spans.size());
    a.max_query_length = spans.host.max_query_length;
    a.max_key_length = spans.host.max_key_length;
    a.causal = spans.host.causal;
    if (!spans.host.key_rows.empty()) a.key_rows = spans.key_rows.data();
    a.heads = heads;
    a.d_head = d_head;
    a.q = column_of<T>(q);
    a.k = column_of<T>(k);
    a.v = column_of<T>(v);
    a.q_stride = q.rows.data().stride(0);
    a.k_stride = k.rows.data().stride(0);
    a.v_stride = v.rows.data().stride(0);
    a.saved = write<Wide<T>>(saved);
    a.dropout = dropout;
    a.one_query = kernel_variants().search_attention;
    return a;
  }

  /// What `kernel` makes of the arguments. Where the tape records, it saves what the gradient needs. `zeroes`: the
  /// kernel knows Attention::padded_rows.
  template <class Kernel>
  Value output(const Tape& tape, bool zeroes, Kernel&& kernel) {
    const auto options = q.rows.data().options();
    const std::vector<int64_t> shape = {q.rows.data().size(0), heads * d_head};
    Value out(spans.host.padded && !zeroes ? at::zeros(shape, options) : at::empty(shape, options));
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      Attention<T> a = arguments<T>();
      if (tape.recording()) {
        saved = at::empty({kernels.attention_saved_size(spans.host.spans.data(), a.span_count, heads)},
                          wide_options(out.data()));
        a.saved = write<Wide<T>>(saved);
      }
      a.out = write<T>(out.data());
      if (spans.host.padded && zeroes) a.padded_rows = shape[0];
      kernel(kernels, a, stream);
    });
    return out;
  }
};

}  // namespace tearless::engine
