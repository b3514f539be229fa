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

OutputVocabulary OutputVocabulary::from(const std::vector<uint8_t>& in_target, bool mask_target_vocabulary) {
  OutputVocabulary output_vocabulary;
  output_vocabulary.column_of.resize(in_target.size(), -1);
  for (int32_t v = 0; v < static_cast<int32_t>(in_target.size()); ++v) {
    const bool keep = mask_target_vocabulary ? in_target[static_cast<size_t>(v)] != 0 : v != kPad && v != kBos;
    if (!keep) continue;
    output_vocabulary.column_of[static_cast<size_t>(v)] = static_cast<int32_t>(output_vocabulary.tokens.size());
    output_vocabulary.tokens.push_back(v);
  }
  const int32_t unknown = output_vocabulary.column_of[kUnk];
  std::replace(output_vocabulary.column_of.begin(), output_vocabulary.column_of.end(), -1, unknown);
  return output_vocabulary;
}

void append_embedding_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, int64_t vocab_size) {
  const auto matrix = [&](const char* name) {
    specs.push_back({name, {vocab_size, options.d_model}, initial_embedding(options)});
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
  if (options.output_bias) specs.push_back({"output.bias", {vocab_size}, {}});
}

Embeddings::Embeddings(const Parameters& p, const ModelOptions& options, OutputVocabulary output_vocabulary,
                       uint32_t seed)
    : options_(options),
      output_vocabulary_(std::move(output_vocabulary)),
      row_type_(p.row_type()),
      output_bias_(p.get("output.bias")),
      source_dropout_(options.dropout.residual, seed, "embedding.source"),
      target_dropout_(options.dropout.residual, seed, "embedding.target"),
      output_rows_(index_tensor(output_vocabulary_.tokens, p.values())) {
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

Embeddings::Tables Embeddings::prepare(const ForwardContext& context) const {
  const auto rows_of = [&](const Value& matrix) {
    return options_.fix_norm ? norm_rows(context.tape, matrix, unit_rows()) : matrix;
  };
  // A shared matrix is normalised once, so that the gradients of its uses are summed before they pass the norm.
  const Value target = rows_of(target_);
  const Value source = options_.tied_embeddings == Tying::kAll ? target : rows_of(source_);
  const Value output = options_.tied_embeddings == Tying::kNone ? rows_of(output_) : target;
  const auto kept_rows = [&](const Value& matrix) {
    if (!matrix) return Value();
    // A contiguous output vocabulary is a slice: it avoids a copy of the largest matrix of a small model.
    const int64_t first = output_vocabulary_.tokens.front(), end = output_vocabulary_.tokens.back() + int64_t{1};
    return end - first == static_cast<int64_t>(output_vocabulary_.tokens.size())
               ? slice_rows(context.tape, matrix, first, end)
               : gather_rows(context.tape, matrix, output_rows_);
  };
  return {source, target, kept_rows(output), kept_rows(output_bias_)};
}

Value Embeddings::embed(const ForwardContext& context, const Value& table, const PackedRows& rows,
                        const DropoutSite& dropout) const {
  const int64_t needed = *std::max_element(rows.positions.begin(), rows.positions.end()) + int64_t{1};
  if (positions_.empty() || positions_.back().size(0) < needed) {
    const int64_t size = power_of_two(std::max<int64_t>(needed, 128));
    positions_.push_back(sinusoid_positions(size, options_.d_model).to(table.data().device()));
  }
  return embedding(context.tape, table, rows, positions_.back(), std::sqrt(static_cast<double>(options_.d_model)),
                   dropout.at(context), row_type_);
}

Value Embeddings::embed_source(const ForwardContext& context, const Tables& tables, const PackedRows& rows) const {
  return embed(context, tables.source, rows, source_dropout_);
}

Value Embeddings::embed_target(const ForwardContext& context, const Tables& tables, const PackedRows& rows) const {
  return embed(context, tables.target, rows, target_dropout_);
}

Value Embeddings::logits(const ForwardContext& context, const Tables& tables, const Value& h) const {
  return linear(context.tape, h, tables.output, tables.output_bias);
}

}  // namespace tearless::engine
