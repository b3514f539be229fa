#include "engine/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/ops/attention_call.h"
#include "engine/ops/backend.h"
#include "engine/ops/kernel_variants.h"

namespace tearless::engine {
namespace {

at::Tensor attention_formula(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                             const AttentionSpans& spans, const Dropout& dropout) {
  if (!spans.key_rows.empty()) {
    const at::Tensor rows = index_tensor(spans.key_rows, k);
    AttentionSpans gathered = spans;
    gathered.key_rows.clear();
    return attention_formula(q, k.index_select(0, rows), v.index_select(0, rows), heads, gathered, dropout);
  }
  const int64_t d_head = q.size(1) / heads;
  std::vector<at::Tensor> rows;
  for (const auto& s : spans.spans) {
    if (s.query_count == 0) continue;
    const auto split = [&](const at::Tensor& x, int64_t begin, int64_t count) {
      return x.slice(0, begin, begin + count).view({count, heads, d_head}).transpose(0, 1);  // [H, count, d_h]
    };
    const at::Tensor keys = split(k, s.key_begin, s.key_count);
    at::Tensor scores = at::matmul(split(q, s.query_begin, s.query_count), keys.transpose(1, 2)) /
                        std::sqrt(static_cast<double>(d_head));
    if (spans.causal) {
      const at::Tensor future =
          at::ones({s.query_count, s.key_count}, q.options()).triu(1 + s.keys_before()).to(at::kBool);
      scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
    }
    at::Tensor p = at::softmax(scores, 2);  // [H, query, key]
    if (dropout.active()) p = p * attention_keep_scales(dropout, s, heads, q);
    rows.push_back(
        at::matmul(p, split(v, s.key_begin, s.key_count)).transpose(0, 1).reshape({s.query_count, q.size(1)}));
  }
  if (spans.padded) {
    int64_t covered = 0;
    for (const auto& s : spans.spans) covered += s.query_count;
    rows.push_back(at::zeros({q.size(0) - covered, q.size(1)}, q.options()));
  }
  return at::cat(rows);
}

}  // namespace

at::Tensor attention_keep_scales(const Dropout& dropout, const AttentionSpan& s, int64_t heads,
                                 const at::Tensor& like) {
  const at::Tensor query = at::arange(s.query_count, like.options().dtype(at::kLong)).unsqueeze(0);
  const at::Tensor head = at::arange(heads, like.options().dtype(at::kLong)).unsqueeze(1);
  const at::Tensor outer = (query + head * (int64_t{1} << 16)).flatten();
  const at::Tensor sentence = at::full_like(outer, static_cast<int64_t>(s.sentence_id));
  return keep_scale_tensor(dropout, outer, sentence, s.key_count, like).view({heads, s.query_count, s.key_count});
}

AttentionSpans AttentionSpans::self(const PackedRows& rows, bool causal) {
  AttentionSpans out = cross(rows, rows);
  out.causal = causal;
  return out;
}

AttentionSpans AttentionSpans::cross(const PackedRows& queries, const PackedRows& keys) {
  require(queries.offsets.size() == keys.offsets.size(), "attention: queries and keys of different sentences");
  AttentionSpans out;
  for (size_t i = 0; i + 1 < queries.offsets.size(); ++i) {
    const int32_t query = queries.offsets[i];
    const int32_t key = keys.offsets[i];
    out.add({query, queries.offsets[i + 1] - query, key, keys.offsets[i + 1] - key,
             queries.sentence_ids[static_cast<size_t>(query)]});
  }
  return out;
}

int64_t AttentionSpans::seen_pairs() const {
  int64_t pairs = 0;
  for (const AttentionSpan& s : spans) {
    pairs += int64_t{s.query_count} * s.key_count;
    if (causal) pairs -= int64_t{s.query_count} * (s.query_count - 1) / 2;
  }
  return pairs;
}

void AttentionSpans::add(const AttentionSpan& span) {
  max_query_length = std::max<int64_t>(max_query_length, span.query_count);
  max_key_length = std::max<int64_t>(max_key_length, span.key_count);
  spans.push_back(span);
}

Value attention(Tape& tape, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, int64_t d_model,
                int64_t heads, const AttentionSpans& spans, const Dropout& dropout) {
  // The formula has this gradient and the kernels have not: without the check a model would train on some devices.
  require(spans.key_rows.empty() || !tape.recording(), "attention: key_rows on a recording tape have no gradient");
  const int64_t d_head = attention_head_width(q, k, v, d_model, heads);
  if (!fast(tape, q.rows.data(), [d_head](const auto& kernels) {
        return kernels.attention && kernels.attention_backward && kernels.attention_saved_size &&
               d_head <= kernels.widest_head;
      })) {
    return tape.by_formula({q.rows, k.rows, v.rows}, [&](const std::vector<at::Tensor>& in) {
      return attention_formula(in[0].slice(1, q.column, q.column + d_model),
                               in[1].slice(1, k.column, k.column + d_model),
                               in[2].slice(1, v.column, v.column + d_model), heads, spans, dropout);
    });
  }
  if (TapeProfile* profile = tape.profile()) profile->attention_multiply_adds += 2 * d_model * spans.seen_pairs();
  AttentionCall call{{tape, spans, q.rows.data()}, q, k, v, heads, d_head, dropout};
  const bool stores = kernel_variants().stored_gradients &&
                      kernels_have(q.rows.data(), [](const auto& kernels) { return kernels.stores_attention; });
  const Value out = call.output(
      tape, stores, [&](const auto& kernels, const auto& a, void* stream) { kernels.attention(a, stream); });
  tape.record("attention", [=] {
    if (!out.has_grad()) return;
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      AttentionBackward<T> b{.forward = call.arguments<T>(), .short_spans = kernel_variants().short_attention};
      b.d_out = read<T>(out.grad());
      if (stores && !q.rows.has_grad()) {
        const at::Tensor& rows = q.rows.data();
        const bool together = rows.is_same(k.rows.data()) && rows.is_same(v.rows.data());
        // Every column has to be written.
        if (rows.size(1) == (together ? 3 : 1) * d_model) {
          b.stored_rows = rows.size(0);
          b.stores_keys = together;
          q.rows.add_grad(at::empty_like(rows));
        }
      }
      b.d_q = gradient_of<T>(q);
      b.d_k = gradient_of<T>(k);
      b.d_v = gradient_of<T>(v);
      b.d_q_stride = q.rows.grad().stride(0);
      b.d_k_stride = k.rows.grad().stride(0);
      b.d_v_stride = v.rows.grad().stride(0);
      kernels.attention_backward(b, stream);
    });
  });
  return out;
}

}  // namespace tearless::engine
