#include "engine/model/token_embedding.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/model/padded_batch.h"
#include "engine/model/residual.h"
#include "engine/ops/add_norm.h"
#include "engine/ops/embedding.h"

namespace tearless::engine {
namespace {

/// FixNorm: w / max(‖w‖₂, 1e-12), a row norm without a gain (docs/spec/knobs.md §5).
NormOp unit_rows() {
  NormOp op;
  op.row = RowNorm{.denominator = RowNorm::Denominator::kLengthClamped, .eps = 1e-12};
  op.formula = [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) {
    return x / x.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
  };
  return op;
}

}  // namespace

Value declare_embedding(const LayerScope& scope, const char* name, int64_t vocab_size, PadRow pad) {
  Initial initial = initial_embedding(scope.options(), vocab_size);
  if (pad != PadRow::kOfInit) initial.zero_row = pad == PadRow::kZero ? kPad : -1;
  return scope.declare(name, {vocab_size, scope.options().d_model}, initial);
}

Value embedding_rows(const ForwardContext& context, const LayerOptions& options, const Value& matrix) {
  return options.fix_norm ? norm_rows(context.tape, matrix, unit_rows()) : matrix;
}

TokenEmbedding::TokenEmbedding(const LayerScope& scope, const char* name, Stack stack, Value vector, AddedTo added_to)
    : d_model_(scope.options().d_model),
      scale_(scope.options().embedding_scale.value_or(std::sqrt(static_cast<double>(d_model_)))),
      position_options_(scope.options().positions),
      row_type_(scope.parameters().row_type()),
      dropout_(scope.dropout(name, scope.options().dropout.of_embedding())),
      vector_(std::move(vector)),
      added_to_(added_to),
      input_norms_(make_input_norms(scope.in_stack(stack))) {}

at::Tensor TokenEmbedding::positions(int64_t count, const at::Device& device) const {
  const std::lock_guard lock(positions_->mutex);
  std::vector<at::Tensor>& tables = positions_->tables;
  if (tables.empty() || tables.back().size(0) < count) {
    const int64_t size = power_of_two(std::max<int64_t>(count, 128));
    tables.push_back(sinusoid_positions(size, d_model_, position_options_.form, position_options_.first).to(device));
  }
  return tables.back();
}

Value TokenEmbedding::forward(const ForwardContext& context, const Value& table, const PackedRows& rows) const {
  const int32_t last = *std::max_element(rows.positions.begin(), rows.positions.end());
  const at::Tensor places = positions(last + int64_t{1}, table.data().device());
  const Dropout dropout = dropout_.at(context);
  const bool is_last = input_norms_.empty();  // dropout is then part of the embedding's kernel
  Value x = embedding(context.tape, table, rows, places, scale_, is_last ? dropout : Dropout::off(), row_type_, vector_,
                      added_to_);
  for (const NormOp& norm : input_norms_) x = norm_rows(context.tape, x, norm);
  return is_last ? x : drop_rows(context.tape, x, dropout, rows);
}

}  // namespace tearless::engine
