#include "engine/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>

#include <limits>

#include "engine/ops/rows.h"

namespace tearless::engine {
namespace {

uint32_t outer_of(int64_t query, int64_t head) {
  return static_cast<uint32_t>(query) | static_cast<uint32_t>(head) << 16;
}

at::Tensor attention_formula(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                             const AttentionSpans& spans, const Dropout& dropout) {
  const int64_t d_head = q.size(1) / heads;
  std::vector<at::Tensor> rows;
  for (const auto& s : spans.spans) {
    const auto split = [&](const at::Tensor& x, int64_t begin, int64_t count) {
      return x.slice(0, begin, begin + count).view({count, heads, d_head}).transpose(0, 1);  // [H, count, d_h]
    };
    const at::Tensor keys = split(k, s.key_begin, s.key_count);
    at::Tensor scores = at::matmul(split(q, s.query_begin, s.query_count), keys.transpose(1, 2)) /
                        std::sqrt(static_cast<double>(d_head));
    if (spans.causal) {
      const at::Tensor future = at::ones({s.query_count, s.key_count}, q.options()).triu(1).to(at::kBool);
      scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
    }
    at::Tensor p = at::softmax(scores, 2);  // [H, query, key]
    if (dropout.active()) {
      const at::Tensor query = at::arange(s.query_count, q.options().dtype(at::kLong)).unsqueeze(0);
      const at::Tensor head = at::arange(heads, q.options().dtype(at::kLong)).unsqueeze(1);
      const at::Tensor outer = (query + head * (int64_t{1} << 16)).flatten();
      const at::Tensor line = at::full_like(outer, static_cast<int64_t>(s.line));
      p = p * keep_scale_tensor(dropout, outer, line, s.key_count, q).view_as(p);
    }
    rows.push_back(
        at::matmul(p, split(v, s.key_begin, s.key_count)).transpose(0, 1).reshape({s.query_count, q.size(1)}));
  }
  return at::cat(rows);
}

/// One operand as the loops see it: rows `stride` apart, of which head h owns d_h columns.
template <class T>
struct Operand {
  T* data;
  int64_t stride;
  T* row(int64_t t) const { return data + t * stride; }
};

template <class T>
Operand<const T> operand(const Columns& columns, int64_t head_column) {
  const at::Tensor& rows = columns.rows.data();
  assert(rows.stride(1) == 1);
  return {rows.const_data_ptr<T>() + columns.column + head_column, rows.stride(0)};
}

template <class T>
Operand<T> gradient(const Columns& columns, int64_t head_column) {
  at::Tensor& rows = columns.rows.grad_buffer();
  return {rows.mutable_data_ptr<T>() + columns.column + head_column, rows.stride(0)};
}

/// [count, d_h] rows → [d_h, count], so that sums over d_h become vector operations over keys.
template <class T>
void transpose_head(const Operand<const T>& x, int64_t begin, int64_t count, int64_t d_head, std::vector<T>& out) {
  out.resize(static_cast<size_t>(d_head * count));
  for (int64_t j = 0; j < count; ++j) {
    const T* row = x.row(begin + j);
    for (int64_t c = 0; c < d_head; ++c) out[static_cast<size_t>(c * count + j)] = row[c];
  }
}

/// out[j] = Σ_c a[c] · bt[c][j] for j < count.
template <class T>
void row_times_transposed(const T* a, const std::vector<T>& bt, int64_t d_head, int64_t stride, int64_t count, T* out) {
  std::fill_n(out, count, T(0));
  for (int64_t c = 0; c < d_head; ++c) {
    add_scaled(count, a[c], bt.data() + c * stride, out);
  }
}

template <class T>
void softmax_in_place(T* row, int64_t count) {
  T largest = row[0];
  for (int64_t j = 1; j < count; ++j) largest = std::max(largest, row[j]);
  for (int64_t j = 0; j < count; ++j) row[j] = exp_of(row[j] - largest);
  const T sum = sum_of<T>(count, [&](int64_t j) { return row[j]; });
  for (int64_t j = 0; j < count; ++j) row[j] /= sum;
}

/// Calls f(span, where its probabilities start) for a range of spans on each thread.
struct Layout {
  std::vector<int64_t> starts;  // into the probabilities, per span: [H, query, key]
  int64_t size = 0;
  Layout(const AttentionSpans& spans, int64_t heads) {
    for (const auto& s : spans.spans) {
      starts.push_back(size);
      size += heads * s.query_count * s.key_count;
    }
  }
};

}  // namespace

AttentionSpans AttentionSpans::self(const PackedRows& rows, bool causal) {
  AttentionSpans out = cross(rows, rows);
  out.causal = causal;
  return out;
}

AttentionSpans AttentionSpans::cross(const PackedRows& queries, const PackedRows& keys) {
  assert(queries.offsets.size() == keys.offsets.size());
  AttentionSpans out;
  for (size_t i = 0; i + 1 < queries.offsets.size(); ++i) {
    const int32_t query = queries.offsets[i];
    const int32_t key = keys.offsets[i];
    out.spans.push_back({query, queries.offsets[i + 1] - query, key, keys.offsets[i + 1] - key,
                         queries.lines[static_cast<size_t>(query)]});
  }
  return out;
}

Value attention(Tape& tape, const Columns& q, const Columns& k, const Columns& v, int64_t d_model, int64_t heads,
                const AttentionSpans& spans, const Dropout& dropout) {
  if (!tape.fast(q.rows.data())) {
    return tape.by_formula({q.rows, k.rows, v.rows}, [=](const std::vector<at::Tensor>& in) {
      return attention_formula(in[0].slice(1, q.column, q.column + d_model),
                               in[1].slice(1, k.column, k.column + d_model),
                               in[2].slice(1, v.column, v.column + d_model), heads, spans, dropout);
    });
  }
  const int64_t d_head = d_model / heads;
  const int64_t rows = q.rows.data().size(0);
  const auto layout = std::make_shared<Layout>(spans, heads);
  const auto span_count = static_cast<int64_t>(spans.spans.size());
  const Value out(at::empty({rows, d_model}, q.rows.data().options()));
  at::Tensor probabilities = at::empty({layout->size}, q.rows.data().options());  // before dropout

  for_scalar_type(out.data(), [&](auto zero) {
    using T = decltype(zero);
    const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(d_head)));
    T* p_all = probabilities.mutable_data_ptr<T>();
    at::parallel_for(0, span_count, 1, [&](int64_t begin, int64_t end) {
      std::vector<T> kt, query(static_cast<size_t>(d_head)), dropped;
      for (int64_t i = begin; i < end; ++i) {
        const auto& s = spans.spans[static_cast<size_t>(i)];
        for (int64_t h = 0; h < heads; ++h) {
          const auto qh = operand<T>(q, h * d_head);
          const auto vh = operand<T>(v, h * d_head);
          transpose_head(operand<T>(k, h * d_head), s.key_begin, s.key_count, d_head, kt);
          T* p = p_all + layout->starts[static_cast<size_t>(i)] + h * s.query_count * s.key_count;
          for (int64_t a = 0; a < s.query_count; ++a, p += s.key_count) {
            const int64_t visible = spans.causal ? a + 1 : s.key_count;
            const T* from = qh.row(s.query_begin + a);
            for (int64_t c = 0; c < d_head; ++c) query[static_cast<size_t>(c)] = scale * from[c];
            row_times_transposed(query.data(), kt, d_head, s.key_count, visible, p);
            softmax_in_place(p, visible);
            std::fill(p + visible, p + s.key_count, T(0));
            dropped.assign(p, p + visible);
            if (dropout.active()) {
              for_each_kept(dropout, visible, outer_of(a, h), static_cast<uint32_t>(s.line),
                            [&](int64_t j, float keep) { dropped[static_cast<size_t>(j)] *= static_cast<T>(keep); });
            }
            T* y = out.data().template mutable_data_ptr<T>() + (s.query_begin + a) * d_model + h * d_head;
            std::fill_n(y, d_head, T(0));
            for (int64_t j = 0; j < visible; ++j) {
              const T weight = dropped[static_cast<size_t>(j)];
              const T* value = vh.row(s.key_begin + j);
              add_scaled(d_head, weight, value, y);
            }
          }
        }
      }
    });
  });

  // With D the dropped probabilities and δ the gradient of the output: ∂v = Dᵀδ; ∂p = mask ⊙ (δ vᵀ);
  // ∂scores = p ⊙ (∂p - Σ_j p_j ∂p_j); ∂q = ∂scores k / √d_h; ∂k = ∂scoresᵀ q / √d_h.
  tape.record([=] {
    if (!out.has_grad()) return;
    for_scalar_type(out.data(), [&](auto zero) {
      using T = decltype(zero);
      const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(d_head)));
      const T* p_all = probabilities.const_data_ptr<T>();
      const T* dy_all = out.grad().const_data_ptr<T>();
      // Made before the threads start: a gradient buffer is made where it is first asked for.
      q.rows.grad_buffer(), k.rows.grad_buffer(), v.rows.grad_buffer();
      at::parallel_for(0, span_count, 1, [&](int64_t begin, int64_t end) {
        std::vector<T> vt, dp, keep_row;
        for (int64_t i = begin; i < end; ++i) {
          const auto& s = spans.spans[static_cast<size_t>(i)];
          dp.resize(static_cast<size_t>(s.key_count));
          keep_row.resize(static_cast<size_t>(s.key_count));
          for (int64_t h = 0; h < heads; ++h) {
            const int64_t column = h * d_head;
            const auto qh = operand<T>(q, column);
            const auto kh = operand<T>(k, column);
            const auto dq = gradient<T>(q, column);
            const auto dk = gradient<T>(k, column);
            const auto dv = gradient<T>(v, column);
            transpose_head(operand<T>(v, column), s.key_begin, s.key_count, d_head, vt);
            const T* p = p_all + layout->starts[static_cast<size_t>(i)] + h * s.query_count * s.key_count;
            for (int64_t a = 0; a < s.query_count; ++a, p += s.key_count) {
              const int64_t visible = spans.causal ? a + 1 : s.key_count;
              const T* dy = dy_all + (s.query_begin + a) * d_model + column;
              std::fill_n(keep_row.begin(), visible, T(1));
              if (dropout.active()) {
                for_each_kept(dropout, visible, outer_of(a, h), static_cast<uint32_t>(s.line),
                              [&](int64_t j, float keep) { keep_row[static_cast<size_t>(j)] = static_cast<T>(keep); });
              }
              row_times_transposed(dy, vt, d_head, s.key_count, visible, dp.data());
              for (int64_t j = 0; j < visible; ++j) dp[static_cast<size_t>(j)] *= keep_row[static_cast<size_t>(j)];
              const T mean = sum_of<T>(visible, [&](int64_t j) { return p[j] * dp[static_cast<size_t>(j)]; });
              const T* query = qh.row(s.query_begin + a);
              T* dquery = dq.row(s.query_begin + a);
              for (int64_t j = 0; j < visible; ++j) {
                const T dropped = p[j] * keep_row[static_cast<size_t>(j)];
                const T dscore = scale * p[j] * (dp[static_cast<size_t>(j)] - mean);
                const T* key = kh.row(s.key_begin + j);
                T* dkey = dk.row(s.key_begin + j);
                T* dvalue = dv.row(s.key_begin + j);
                add_scaled(d_head, dropped, dy, dvalue);
                add_scaled(d_head, dscore, key, dquery);
                add_scaled(d_head, dscore, query, dkey);
              }
            }
          }
        }
      });
    });
  });
  return out;
}

}  // namespace tearless::engine
