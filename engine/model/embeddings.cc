#include "engine/model/embeddings.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "engine/model/initialisation.h"
#include "engine/ops/add_norm.h"
#include "engine/ops/bucket_sizes.h"
#include "engine/ops/embedding.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

/// FixNorm's unit rows: w / max(‖w‖₂, 1e-12), which is a row norm without a gain (knobs.md §5).
NormOp unit_rows() {
  NormOp op;
  op.row = RowNorm{.denominator = RowNorm::Denominator::kLengthClamped, .eps = 1e-12};
  op.formula = [](const at::Tensor& x, const at::Tensor&, const at::Tensor&) {
    return x / x.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
  };
  return op;
}

}  // namespace

KeptVocabulary KeptVocabulary::from(const std::vector<uint8_t>& target_kept, bool mask_target_vocabulary) {
  KeptVocabulary kept;
  kept.index_of.resize(target_kept.size(), -1);
  for (int32_t v = 0; v < static_cast<int32_t>(target_kept.size()); ++v) {
    const bool keep = mask_target_vocabulary ? target_kept[static_cast<size_t>(v)] != 0 : v != kPad && v != kBos;
    if (!keep) continue;
    kept.index_of[static_cast<size_t>(v)] = static_cast<int32_t>(kept.types.size());
    kept.types.push_back(v);
  }
  const int32_t unknown = kept.index_of[kUnk];
  std::replace(kept.index_of.begin(), kept.index_of.end(), -1, unknown);
  return kept;
}

void append_embedding_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, int64_t vocabulary) {
  const auto matrix = [&](const char* name) {
    specs.push_back({name, {vocabulary, options.d_model}, initial_embedding(options)});
  };
  switch (options.tied_embeddings) {
    case Tying::kAll:
      matrix("embedding.shared");
      break;
    case Tying::kNone:
      matrix("output.weight");
      [[fallthrough]];
    case Tying::kTarget:
      matrix("embedding.source");
      matrix("embedding.target");
      break;
  }
  if (options.output_bias) specs.push_back({"output.bias", {vocabulary}, {}});
}

Embeddings::Embeddings(const Parameters& p, const ModelOptions& options, KeptVocabulary kept, uint32_t seed)
    : options_(options),
      kept_(std::move(kept)),
      row_type_(p.row_type()),
      output_bias_(p.get("output.bias")),
      source_dropout_(options.dropout.residual, seed, "embedding.source"),
      target_dropout_(options.dropout.residual, seed, "embedding.target"),
      kept_index_(index_tensor(kept_.types, p.values())) {
  switch (options.tied_embeddings) {
    case Tying::kAll:
      source_ = target_ = output_ = p.get("embedding.shared");
      break;
    case Tying::kTarget:
      source_ = p.get("embedding.source");
      target_ = output_ = p.get("embedding.target");
      break;
    case Tying::kNone:
      source_ = p.get("embedding.source");
      target_ = p.get("embedding.target");
      output_ = p.get("output.weight");
      break;
  }
}

Embeddings::Tables Embeddings::prepare(const Step& step) const {
  const auto rows_of = [&](const Value& matrix) {
    return options_.fix_norm ? norm_rows(step.tape, matrix, unit_rows()) : matrix;
  };
  // A matrix that is used in several places is made unit once, so that its gradients meet before they pass the norm.
  const Value target = rows_of(target_);
  const Value source = options_.tied_embeddings == Tying::kAll ? target : rows_of(source_);
  const Value output = options_.tied_embeddings == Tying::kNone ? rows_of(output_) : target;
  const auto kept_rows = [&](const Value& matrix) {
    if (!matrix) return Value();
    // Types that stand together need no copy of the largest matrix of a small model.
    const int64_t first = kept_.types.front(), end = kept_.types.back() + int64_t{1};
    return end - first == static_cast<int64_t>(kept_.types.size()) ? slice_rows(step.tape, matrix, first, end)
                                                                   : gather_rows(step.tape, matrix, kept_index_);
  };
  return {source, target, kept_rows(output), kept_rows(output_bias_)};
}

Value Embeddings::embed(const Step& step, const Value& table, const PackedRows& rows,
                        const DropoutSite& dropout) const {
  const int64_t needed = *std::max_element(rows.positions.begin(), rows.positions.end()) + int64_t{1};
  if (positions_.empty() || positions_.back().size(0) < needed) {
    const int64_t size = power_of_two(std::max<int64_t>(needed, 128));
    positions_.push_back(sinusoid_positions(size, options_.d_model).to(table.data().device()));
  }
  return embedding(step.tape, table, rows, positions_.back(), std::sqrt(static_cast<double>(options_.d_model)),
                   dropout.at(step), row_type_);
}

Value Embeddings::embed_source(const Step& step, const Tables& tables, const PackedRows& rows) const {
  return embed(step, tables.source, rows, source_dropout_);
}

Value Embeddings::embed_target(const Step& step, const Tables& tables, const PackedRows& rows) const {
  return embed(step, tables.target, rows, target_dropout_);
}

Value Embeddings::logits(const Step& step, const Tables& tables, const Value& h) const {
  return linear(step.tape, h, tables.output, tables.output_bias);
}

}  // namespace tearless::engine
