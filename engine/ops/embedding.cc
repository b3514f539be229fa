#include "engine/ops/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include "engine/ops/rows.h"

namespace tearless::engine {
namespace {

at::Tensor embedding_formula(const at::Tensor& table, const PackedRows& rows, const at::Tensor& positions, double scale,
                             const Dropout& dropout) {
  const at::Tensor words = table.index_select(0, index_tensor(rows.tokens, table)) * scale;
  const at::Tensor sum = words + positions.to(table.options()).index_select(0, index_tensor(rows.positions, table));
  return dropout.active() ? sum * keep_scale_tensor(dropout, rows, table.size(1), table) : sum;
}

}  // namespace

at::Tensor sinusoid_positions(int64_t positions, int64_t d_model) {
  at::Tensor table = at::empty({positions, d_model}, at::kFloat);
  float* data = table.mutable_data_ptr<float>();
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t c = 0; c < d_model; ++c) {
      const double angle =
          static_cast<double>(p) / std::pow(10000.0, static_cast<double>(c / 2 * 2) / static_cast<double>(d_model));
      data[p * d_model + c] = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

Value embedding(Tape& tape, const Value& table, const PackedRows& rows, const at::Tensor& positions, double scale,
                const Dropout& dropout) {
  if (!tape.fast(table.data())) {
    return tape.by_formula({table}, [&rows, positions, scale, dropout](const std::vector<at::Tensor>& in) {
      return embedding_formula(in[0], rows, positions, scale, dropout);
    });
  }
  const int64_t count = rows.row_count();
  const int64_t width = table.data().size(1);
  const Value out(at::empty({count, width}, table.data().options()));
  for_scalar_type(table.data(), [&](auto zero) {
    using T = decltype(zero);
    const T* words = table.data().const_data_ptr<T>();
    const float* pe = positions.const_data_ptr<float>();
    T* y = out.data().mutable_data_ptr<T>();
    for_row_ranges(count, width, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const auto row = static_cast<size_t>(t);
        const T* word = words + rows.tokens[row] * width;
        const float* place = pe + rows.positions[row] * width;
        T* to = y + t * width;
        for (int64_t c = 0; c < width; ++c) to[c] = static_cast<T>(scale) * word[c] + static_cast<T>(place[c]);
        if (!dropout.active()) continue;
        for_each_kept(dropout, width, static_cast<uint32_t>(rows.positions[row]),
                      static_cast<uint32_t>(rows.lines[row]),
                      [&](int64_t c, float keep) { to[c] *= static_cast<T>(keep); });
      }
    });
  });
  tape.record([table, &rows, scale, dropout, out, count, width] {
    if (!out.has_grad()) return;
    for_scalar_type(table.data(), [&](auto zero) {
      using T = decltype(zero);
      const T* dy = out.grad().const_data_ptr<T>();
      T* gradient = table.grad_buffer().mutable_data_ptr<T>();
      // One thread: two rows may hold the same token, and the order of their additions must be fixed.
      for (int64_t t = 0; t < count; ++t) {
        const auto row = static_cast<size_t>(t);
        const T* from = dy + t * width;
        T* to = gradient + rows.tokens[row] * width;
        if (!dropout.active()) {
          for (int64_t c = 0; c < width; ++c) to[c] += static_cast<T>(scale) * from[c];
          continue;
        }
        for_each_kept(dropout, width, static_cast<uint32_t>(rows.positions[row]),
                      static_cast<uint32_t>(rows.lines[row]),
                      [&](int64_t c, float keep) { to[c] += static_cast<T>(scale * keep) * from[c]; });
      }
    });
  });
  return out;
}

PackedRows drop_words(const PackedRows& rows, const Dropout& dropout, int32_t unknown) {
  PackedRows out = rows;
  if (!dropout.active()) return out;
  for (size_t t = 0; t < out.tokens.size(); ++t) {
    const uint32_t bits = dropout.stream.draw(0, static_cast<uint32_t>(rows.positions[t]),
                                              static_cast<uint32_t>(rows.lines[t]), dropout.update);
    if (bits < dropout.threshold) out.tokens[t] = unknown;
  }
  return out;
}

}  // namespace tearless::engine
