#include "engine/ops/linear_of_embeddings.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "engine/ops/backend.h"
#include "engine/ops/dropout.h"
#include "engine/ops/embedding.h"
#include "engine/ops/images.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

/// Items in the order of their keys, 0 … keys - 1, equal keys in the order of the items.
struct ByKey {
  std::vector<int32_t> first;  // [keys + 1] the items of key k are items[first[k]] … items[first[k + 1] - 1]
  std::vector<int32_t> items;
};

ByKey by_key(const std::vector<int32_t>& keys, int64_t count) {
  ByKey order;
  order.first.resize(static_cast<size_t>(count) + 1);
  for (const int32_t key : keys) ++order.first[static_cast<size_t>(key) + 1];
  for (size_t key = 1; key < order.first.size(); ++key) order.first[key] += order.first[key - 1];
  std::vector<int32_t> next(order.first.begin(), order.first.end() - 1);
  order.items.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    order.items[static_cast<size_t>(next[static_cast<size_t>(keys[i])]++)] = static_cast<int32_t>(i);
  }
  return order;
}

/// The distinct pairs of a feature and a token.
struct Pairs {
  std::vector<int32_t> tokens;  // [P] of each pair, feature by feature
  std::vector<int64_t> first;   // [F + 1] the pairs of feature f are first[f] … first[f + 1] - 1
  std::vector<int32_t> of;      // [N · F] the pair of each place
};

Pairs pairs_of(const std::vector<int32_t>& tokens, int64_t features, int64_t types) {
  Pairs pairs;
  pairs.of.resize(tokens.size());
  std::vector<int32_t> pair_of_token(static_cast<size_t>(types), -1);  // of this feature, or of one before it
  const auto each = static_cast<size_t>(features);
  for (size_t f = 0; f < each; ++f) {
    const auto first = static_cast<int32_t>(pairs.tokens.size());
    pairs.first.push_back(first);
    for (size_t place = f; place < tokens.size(); place += each) {
      int32_t& pair = pair_of_token[static_cast<size_t>(tokens[place])];
      if (pair < first) {
        pair = static_cast<int32_t>(pairs.tokens.size());
        pairs.tokens.push_back(tokens[place]);
      }
      pairs.of[place] = pair;
    }
  }
  pairs.first.push_back(static_cast<int64_t>(pairs.tokens.size()));
  return pairs;
}

/// Calls f(pairs of feature, columns of that feature in the weight) for each feature that has pairs. Parallel over
/// features, which have about as many pairs for each thread: a matmul of one feature is too small to be divided.
template <class F>
void for_features(const Pairs& pairs, int64_t width, F&& f) {
  at::parallel_for(0, pairs.first.back(), /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    auto from = std::ranges::lower_bound(pairs.first, begin);  // the first feature whose pairs begin here or later
    for (; from != pairs.first.end() && *from < end; ++from) {
      const int64_t first = *from, last = *std::next(from);
      const int64_t column = (from - pairs.first.begin()) * width;
      if (last > first)
        f([=](const at::Tensor& x) { return x.slice(0, first, last); },
          [=](const at::Tensor& w) { return w.slice(1, column, column + width); });
    }
  });
}

/// The same by the embeddings side by side and one matmul.
Value side_by_side(Tape& tape, const Value& table, const PackedRows& tokens, int64_t features, const Value& weight,
                   const Value& bias, at::ScalarType type) {
  const int64_t width = table.data().size(1);
  const at::Tensor no_positions = at::zeros({1, width}, table.data().options().dtype(at::kFloat));
  const Value rows = embedding(tape, table, tokens, no_positions, /*scale=*/1, Dropout::off(), type);
  return linear(tape, reshape(tape, rows, features * width), weight, bias);
}

}  // namespace

Value linear_of_embeddings(Tape& tape, const Value& table, const PackedRows& tokens, int64_t features,
                           const Value& weight, const Value& bias, at::ScalarType type) {
  const int64_t width = table.data().size(1), outputs = weight.data().size(0);
  require(weight.data().size(1) == features * width && tokens.row_count() % features == 0,
          "linear of embeddings: shapes do not match");
  if (type != table.data().scalar_type() || !fast(tape, table.data(), [](const auto& kernels) {
        return kernels.sums_of_terms && kernels.sums_of_terms_backward && kernels.embedding_backward;
      })) {
    return side_by_side(tape, table, tokens, features, weight, bias, type);
  }
  const int64_t inputs = tokens.row_count() / features;
  const Pairs& pairs = tape.save(pairs_of(tokens.tokens, features, table.data().size(0)));
  const auto count = static_cast<int64_t>(pairs.tokens.size());
  const at::Tensor embedded = table.data().index_select(0, index_tensor(pairs.tokens, table.data()));  // [P, E]
  const at::Tensor of_pairs = at::empty({count, outputs}, table.data().options());
  for_features(pairs, width, [&](auto&& rows_of, auto&& columns_of) {
    at::Tensor to = rows_of(of_pairs);
    matmul(rows_of(embedded), columns_of(weight.data()).t(), to, /*add=*/false);
  });
  if (TapeProfile* profile = tape.profile()) {
    for (size_t f = 0; f + 1 < pairs.first.size(); ++f) {
      if (const int64_t of_feature = pairs.first[f + 1] - pairs.first[f]; of_feature > 0) {
        profile->matmuls.push_back({of_feature, width, outputs});
      }
    }
  }
  const Value out(at::empty({inputs, outputs}, table.data().options()));
  with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.sums_of_terms({.rows = inputs,
                           .each = features,
                           .width = outputs,
                           .terms = read<T>(of_pairs),
                           .term_of = pairs.of.data(),
                           .bias = bias ? read<Wide<T>>(bias.data()) : nullptr,
                           .out = write<T>(out.data())},
                          stream);
  });
  tape.record("linear of embeddings", [table, weight, bias, out, embedded, &pairs, count, width, outputs, features] {
    if (!out.has_grad()) return;
    if (bias) add_column_sums(out.grad(), bias.grad_buffer());
    const at::TensorOptions options = out.data().options();
    const ByKey places = by_key(pairs.of, count), by_token = by_key(pairs.tokens, table.data().size(0));
    const at::Tensor d_pairs = at::empty({count, outputs}, options), d_embedded = at::empty({count, width}, options);
    const at::Tensor d_weights = weight.grad_buffer();  // here, because a first call allocates it
    const std::vector<int32_t> no_counters(pairs.tokens.size());
    with_kernels(out.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
      kernels.sums_of_terms_backward({.terms = count,
                                      .each = features,
                                      .width = outputs,
                                      .places = places.items.data(),
                                      .first = places.first.data(),
                                      .d_out = read<T>(out.grad()),
                                      .d_terms = write<T>(d_pairs)},
                                     stream);
      for_features(pairs, width, [&](auto&& rows_of, auto&& columns_of) {
        at::Tensor d_weight = columns_of(d_weights), d_rows = rows_of(d_embedded);
        matmul(rows_of(d_pairs).t(), rows_of(embedded), d_weight, /*add=*/true);
        matmul(rows_of(d_pairs), columns_of(weight.data()), d_rows, /*add=*/false);
      });
      kernels.embedding_backward({.rows = count,
                                  .width = width,
                                  .d_out = read<T>(d_embedded),
                                  .tokens = pairs.tokens.data(),
                                  .by_token = by_token.items.data(),
                                  .scale = 1,
                                  .dropout = Dropout::off(),
                                  .counters = {no_counters.data(), no_counters.data()},
                                  .d_table = write<Wide<T>>(table.grad_buffer())},
                                 stream);
    });
  });
  return out;
}

}  // namespace tearless::engine
