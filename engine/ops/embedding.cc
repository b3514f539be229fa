#include "engine/ops/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/ops/backend.h"

namespace tearless::engine {
namespace {

at::Tensor embedding_formula(const at::Tensor& table, const PackedRows& rows, const at::Tensor& positions, double scale,
                             const Dropout& dropout, const at::Tensor& language) {
  const at::Tensor words = table.index_select(0, index_tensor(rows.tokens, table)) * scale;
  at::Tensor sum = words + positions.to(table.options()).index_select(0, index_tensor(rows.positions, table));
  if (language.defined()) sum = sum + language;
  return dropout.active() ? sum * keep_scale_tensor(dropout, rows, table.size(1), table) : sum;
}

/// Channel c of the vector of position p.
double interleaved(double p, int64_t c, int64_t d_model, bool sin_only) {
  const int64_t even = c - c % 2;
  const double angle = p / std::pow(10000.0, static_cast<double>(even) / static_cast<double>(d_model));
  return c % 2 == 0 || sin_only ? std::sin(angle) : std::cos(angle);
}

double halves(double p, int64_t c, int64_t d_model) {
  const int64_t m = d_model / 2, i = c % m;
  if (c >= 2 * m) return 0;
  const double r = std::log(10000.0) / static_cast<double>(std::max<int64_t>(m - 1, 1));  // with m = 1, i = 0
  const double angle = p * std::exp(-static_cast<double>(i) * r);
  return c < m ? std::sin(angle) : std::cos(angle);
}

/// d_language += Σ_t drop'(d_out[t]): the gradient of a table that has one token, which every row is.
void add_language_gradient(const at::Tensor& d_out, const Dropout& dropout, const DropoutCounters& counters,
                           const at::Tensor& d_language) {
  const int64_t count = d_out.size(0);
  const at::Tensor tokens = at::zeros({count}, d_out.options().dtype(at::kInt));
  const at::Tensor order = at::arange(count, d_out.options().dtype(at::kInt));
  with_kernels(d_out, [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.embedding_backward({.rows = count,
                                .width = d_out.size(1),
                                .d_out = read<T>(d_out),
                                .tokens = read<int32_t>(tokens),
                                .by_token = read<int32_t>(order),
                                .scale = 1,
                                .dropout = dropout,
                                .counters = counters,
                                .d_table = write<Wide<T>>(d_language)},
                               stream);
  });
}

}  // namespace

std::vector<int32_t> rows_by_token(const PackedRows& rows) {
  std::vector<int32_t> order(rows.tokens.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int32_t x = rows.tokens[static_cast<size_t>(a)], y = rows.tokens[static_cast<size_t>(b)];
    return x != y ? x < y : a < b;
  });
  return order;
}

at::Tensor sinusoid_positions(int64_t count, int64_t d_model, PositionForm form, int64_t first) {
  at::Tensor table = at::empty({count, d_model}, at::kFloat);
  float* data = table.mutable_data_ptr<float>();
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t c = 0; c < d_model; ++c) {
      const auto p = static_cast<double>(first + row);
      data[row * d_model + c] = static_cast<float>(form == PositionForm::kHalves
                                                       ? halves(p, c, d_model)
                                                       : interleaved(p, c, d_model, form == PositionForm::kSinOnly));
    }
  }
  return table;
}

Value embedding(Tape& tape, const Value& table, const PackedRows& rows, const at::Tensor& positions, double scale,
                const Dropout& dropout, at::ScalarType type, const Value& language) {
  const int64_t count = rows.row_count();
  const int64_t width = table.data().size(1);
  const Value out(at::empty({count, width}, table.data().options().dtype(type)));
  // The kernels read positions in fp32, and so the language's vector, which is added to each of them.
  const bool in_fp32 = !language || language.data().scalar_type() == at::kFloat;
  if (!in_fp32 ||
      !fast(tape, out.data(), [](const auto& kernels) { return kernels.embedding && kernels.embedding_backward; })) {
    const auto formula = [&rows, positions, scale, dropout](const std::vector<at::Tensor>& in) {
      return embedding_formula(in[0], rows, positions, scale, dropout, in[1]);
    };
    return tape.by_formula({table, language}, formula, type);
  }
  const at::Tensor places = language ? positions + language.data() : positions;
  const DropoutCountersOnDevice counters(tape, rows, table.data());
  const OnDevice<int32_t> tokens(tape, rows.tokens, table.data());
  with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.embedding({.rows = count,
                       .width = width,
                       .table = read<Wide<T>>(table.data()),
                       .positions = read<float>(places),
                       .tokens = tokens.data(),
                       .scale = scale,
                       .dropout = dropout,
                       .counters = counters.get(),
                       .out = write<T>(out.data())},
                      stream);
  });
  tape.record("embedding", [&tape, table, language, &rows, counters, tokens, scale, dropout, out, count, width] {
    if (!out.has_grad()) return;
    if (language) add_language_gradient(out.grad(), dropout, counters.get(), language.grad_buffer());
    const std::vector<int32_t>& order = rows.by_token.empty() ? tape.save(rows_by_token(rows)) : rows.by_token;
    const OnDevice<int32_t> by_token(tape, order, out.data());
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.embedding_backward({.rows = count,
                                  .width = width,
                                  .d_out = read<T>(out.grad()),
                                  .tokens = tokens.data(),
                                  .by_token = by_token.data(),
                                  .scale = scale,
                                  .dropout = dropout,
                                  .counters = counters.get(),
                                  .d_table = write<Wide<T>>(table.grad_buffer())},
                                 stream);
    });
  });
  return out;
}

PackedRows drop_words(PackedRows rows, const Dropout& dropout, int32_t unknown) {
  if (!dropout.active()) return rows;
  for (size_t t = 0; t < rows.tokens.size(); ++t) {
    if (rows.tokens[t] == kPad) continue;
    const uint32_t bits = dropout.stream.draw(0, static_cast<uint32_t>(rows.positions[t]),
                                              static_cast<uint32_t>(rows.sentence_ids[t]), dropout.update);
    if (bits < dropout.threshold) rows.tokens[t] = unknown;
  }
  return rows;
}

}  // namespace tearless::engine
