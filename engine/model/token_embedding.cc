#include "engine/model/token_embedding.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/model/padded_batch.h"
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
  Initial initial = initial_embedding(scope.options());
  if (pad != PadRow::kOfInit) initial.zero_row = pad == PadRow::kZero ? kPad : -1;
  return scope.declare(name, {vocab_size, scope.options().d_model}, initial);
}

Value embedding_rows(const ForwardContext& context, const LayerOptions& options, const Value& matrix) {
  return options.fix_norm ? norm_rows(context.tape, matrix, unit_rows()) : matrix;
}

TokenEmbedding::TokenEmbedding(const LayerScope& scope, const char* name, Value language)
    : d_model_(scope.options().d_model),
      scale_(scope.options().embedding_scale.value_or(std::sqrt(static_cast<double>(d_model_)))),
      position_options_(scope.options().positions),
      row_type_(scope.parameters().row_type()),
      dropout_(scope.dropout(name, scope.options().dropout.of_embedding())),
      language_(std::move(language)) {}

Value TokenEmbedding::forward(const ForwardContext& context, const Value& table, const PackedRows& rows) const {
  const int64_t needed = *std::max_element(rows.positions.begin(), rows.positions.end()) + int64_t{1};
  if (positions_.empty() || positions_.back().size(0) < needed) {
    const int64_t size = power_of_two(std::max<int64_t>(needed, 128));
    positions_.push_back(
        sinusoid_positions(size, d_model_, position_options_.form, position_options_.first).to(table.data().device()));
  }
  return embedding(context.tape, table, rows, positions_.back(), scale_, dropout_.at(context), row_type_, language_);
}

}  // namespace tearless::engine
