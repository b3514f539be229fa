#include "engine/model/embeddings.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "base/error.h"
#include "engine/ops/embedding.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
OutputVocabulary OutputVocabulary::from(const std::vector<uint8_t>& in_target, bool mask_target_vocabulary,
                                        bool loss_over_all, bool special_outputs) {
  OutputVocabulary output_vocabulary;
  output_vocabulary.loss_over_all = loss_over_all;
  output_vocabulary.column_of.resize(in_target.size(), -1);
  for (int32_t v = 0; v < static_cast<int32_t>(in_target.size()); ++v) {
    const bool keep =
        mask_target_vocabulary ? in_target[static_cast<size_t>(v)] != 0 : special_outputs || (v != kPad && v != kBos);
    if (!keep) continue;
    output_vocabulary.column_of[static_cast<size_t>(v)] = static_cast<int32_t>(output_vocabulary.tokens.size());
    output_vocabulary.tokens.push_back(v);
  }
  const int32_t unknown = output_vocabulary.column_of[kUnk];
  std::replace(output_vocabulary.column_of.begin(), output_vocabulary.column_of.end(), -1, unknown);
  return output_vocabulary;
}

namespace {

/// The vector [D] that both sides share; empty where the model has none.
Value declare_input_vector(const LayerScope& root, const ModelOptions& options) {
  if (!options.input_vector) return {};
  return root.declare("embedding.vector", {options.d_model}, initial_input_vector(options));
}

/// The vector [D] that is added to the rows of a side: that of its language, or the shared one; empty where the model
/// has none.
Value declare_vector(const LayerScope& root, const ModelOptions& options, const char* name, const Value& shared) {
  if (!options.language_embedding) return shared;
  return root.declare(name, {options.d_model}, normal_embedding(options.d_model));
}

int32_t start_token(const ModelOptions& options) {
  switch (options.decoder_start) {
    case DecoderStart::kBos:
      return kBos;
    case DecoderStart::kEos:
      return kEos;
    case DecoderStart::kZero:
      return options.starts_with_pad() ? kPad : kNoToken;
  }
  return kBos;
}

}  // namespace

int64_t OutputVocabulary::outside(std::span<const int32_t> labels) const {
  if (loss_over_all) return 0;
  return std::ranges::count_if(labels, [this](int32_t label) {
    return label != kUnk && column_of[static_cast<size_t>(label)] == column_of[kUnk];
  });
}

Embeddings::Embeddings(const LayerScope& root, const ModelOptions& options, OutputVocabulary output_vocabulary,
                       int64_t source_vocab_size)
    : tying_(options.tied_embeddings),
      decoder_start_(start_token(options)),
      options_(options),
      output_vocabulary_(std::move(output_vocabulary)),
      input_vector_(declare_input_vector(root, options)),
      source_input_(root, "embedding.source", Stack::kEncoder,
                    declare_vector(root, options, "embedding.source.language", input_vector_)),
      target_input_(root, "embedding.target", Stack::kDecoder,
                    declare_vector(root, options, "embedding.target.language", input_vector_),
                    options.input_vector && decoder_start_ == kNoToken ? AddedTo::kAllButFirst : AddedTo::kAllRows),
      output_rows_(
          at::tensor(at::ArrayRef<int32_t>(output_vocabulary_.tokens), at::kLong).to(root.parameters().device())) {
  const auto vocab_size = static_cast<int64_t>(output_vocabulary_.column_of.size());
  using InitialPad = ModelOptions::InitialPad;
  const PadRow of_output = decoder_start_ == kPad ? PadRow::kZero : PadRow::kOfInit;
  const PadRow pad = options.init_pad == InitialPad::kZero ? PadRow::kZero : of_output;
  const bool drawn = is_fairseq(options.init) && options.init_output_pad == InitialPad::kRandom;
  require(tying_ != Tying::kAll || source_vocab_size == vocab_size,
          "embeddings: one matrix for vocabularies of different sizes");
  const auto matrix = [&](const char* name) { return declare_embedding(root, name, vocab_size, pad); };
  const auto source_matrix = [&] { return declare_embedding(root, "embedding.source", source_vocab_size, pad); };
  switch (tying_) {
    case Tying::kAll:
      source_ = target_ = output_ = matrix("embedding.shared");
      break;
    case Tying::kTarget:
      source_ = source_matrix();
      target_ = output_ = matrix("embedding.target");
      break;
    case Tying::kNone:
      output_ = declare_embedding(root, "output.weight", vocab_size, drawn ? PadRow::kRandom : of_output);
      source_ = source_matrix();
      target_ = matrix("embedding.target");
      break;
  }
  if (options.output_bias)
    output_bias_ = root.parameters().declare(root.bias("output", MatrixRole::kOutput, vocab_size, options.d_model));
}

Embeddings::Tables Embeddings::prepare(const ForwardContext& context, bool whole_output) const {
  const auto rows_of = [&](const Value& matrix) { return embedding_rows(context, options_, matrix); };
  // A shared matrix is normalised once, so that the gradients of its uses are summed before they pass the norm.
  const Value target = rows_of(target_);
  const Value source = tying_ == Tying::kAll ? target : rows_of(source_);
  const Value output = tying_ == Tying::kNone ? rows_of(output_) : target;
  const auto kept_rows = [&](const Value& matrix) {
    if (!matrix || whole_output) return matrix;
    // A contiguous output vocabulary is a slice: it avoids a copy of the largest matrix of a small model.
    const int64_t first = output_vocabulary_.tokens.front(), end = output_vocabulary_.tokens.back() + int64_t{1};
    return end - first == static_cast<int64_t>(output_vocabulary_.tokens.size())
               ? slice_rows(context.tape, matrix, first, end)
               : gather_rows(context.tape, matrix, output_rows_);
  };
  return {source, target, kept_rows(output), kept_rows(output_bias_)};
}

Value Embeddings::embed_target(const ForwardContext& context, const Tables& tables, const PackedRows& rows) const {
  if (decoder_start_ == kPad) {  // a zero vector is not learned; recorded first, so that it runs after the embedding
    context.tape.record("decoder start", [table = tables.target] { table.grad_buffer().select(0, kPad).zero_(); });
  }
  return target_input_.forward(context, tables.target, rows);
}

Value Embeddings::logits(const ForwardContext& context, const Tables& tables, const Value& h) const {
  return linear(context.tape, h, tables.output, tables.output_bias, RowStride::kAligned);
}

}  // namespace tearless::engine
