#include "engine/ops/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
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
                             const Dropout& dropout, const at::Tensor& vector, AddedTo added_to) {
  const at::Tensor tokens = index_tensor(rows.tokens, table);
  const at::Tensor is_token = tokens.ge(0).to(table.scalar_type()).unsqueeze(1);
  const at::Tensor words = table.index_select(0, tokens.clamp_min(0)) * is_token * scale;
  at::Tensor sum = words + positions.to(table.options()).index_select(0, index_tensor(rows.positions, table));
  if (vector.defined() && added_to == AddedTo::kAllRows) sum = sum + vector;
  if (vector.defined() && added_to == AddedTo::kAllButFirst) {
    sum = sum + index_tensor(rows.positions, table).gt(0).to(table.scalar_type()).unsqueeze(1) * vector;
  }
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

/// d_vector += Σ_t drop'(d_out[t]) over the rows that it is added to: the gradient of a table that has one token, which
/// these rows are. `by_token`: the order of the rows by token, for kAllButFirst, where the rows without one come first.
void add_vector_gradient(const at::Tensor& d_out, const Dropout& dropout, const DropoutCounters& counters,
                         AddedTo added_to, const int32_t* by_token, const at::Tensor& d_vector) {
  const int64_t count = d_out.size(0);
  const at::TensorOptions ints = d_out.options().dtype(at::kInt);
  at::Tensor tokens = at::zeros({count}, ints);
  const at::Tensor in_order = at::arange(count, ints);
  const int32_t* order = read<int32_t>(in_order);
  if (added_to == AddedTo::kAllButFirst) {
    static_assert(kNoToken == -1);
    tokens = at::from_blob(const_cast<int32_t*>(counters.positions), {count}, ints).gt(0).to(at::kInt).sub_(1);
    order = by_token;
  }
  with_kernels(d_out, [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.embedding_backward({.rows = count,
                                .width = d_out.size(1),
                                .d_out = read<T>(d_out),
                                .tokens = read<int32_t>(tokens),
                                .by_token = order,
                                .scale = 1,
                                .dropout = dropout,
                                .counters = counters,
                                .d_table = write<Wide<T>>(d_vector)},
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
                const Dropout& dropout, at::ScalarType type, const Value& vector, AddedTo added_to) {
  const int64_t count = rows.row_count();
  const int64_t width = table.data().size(1);
  const Value out(at::empty({count, width}, table.data().options().dtype(type)));
  // The kernels read positions in fp32, and so the vector, which is added to them.
  const bool in_fp32 = !vector || vector.data().scalar_type() == at::kFloat;
  if (!in_fp32 ||
      !fast(tape, out.data(), [](const auto& kernels) { return kernels.embedding && kernels.embedding_backward; })) {
    const auto formula = [&rows, positions, scale, dropout, added_to](const std::vector<at::Tensor>& in) {
      return embedding_formula(in[0], rows, positions, scale, dropout, in[1], added_to);
    };
    return tape.by_formula({table, vector}, formula, type);
  }
  const at::Tensor places = vector ? positions + vector.data() : positions;
  if (vector && added_to == AddedTo::kAllButFirst) places.select(0, 0).copy_(positions.select(0, 0));
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
  tape.record(
      "embedding", [&tape, table, vector, added_to, &rows, counters, tokens, scale, dropout, out, count, width] {
        if (!out.has_grad()) return;
        const std::vector<int32_t>& order = rows.by_token.empty() ? tape.save(rows_by_token(rows)) : rows.by_token;
        const OnDevice<int32_t> by_token(tape, order, out.data());
        if (vector) {
          add_vector_gradient(out.grad(), dropout, counters.get(), added_to, by_token.data(), vector.grad_buffer());
        }
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
    if (rows.tokens[t] == kPad || rows.tokens[t] == kNoToken) continue;
    const uint32_t bits = dropout.stream.draw(0, static_cast<uint32_t>(rows.positions[t]),
                                              static_cast<uint32_t>(rows.sentence_ids[t]), dropout.update);
    if (bits < dropout.threshold) rows.tokens[t] = unknown;
  }
  return rows;
}

}  // namespace tearless::engine
