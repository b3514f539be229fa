// Word embeddings of both sides and the output layer; tying lets them share one matrix. FixNorm and the
// target-vocabulary mask are applied here.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/forward_context.h"
#include "engine/model/options.h"
#include "engine/model/parameters.h"

namespace tearless::engine {

/// The output vocabulary: the tokens that the output layer can predict (docs/spec/knobs.md §12).
struct OutputVocabulary {
  std::vector<int32_t> tokens;     // [K] the token of each column of the logits, in increasing order
  std::vector<int32_t> column_of;  // [V] the column of each token; that of UNK for tokens outside

  /// With the mask: the tokens v with in_target[v] = 1 (in_target is [V]). Without: all tokens but PAD and BOS.
  static OutputVocabulary from(const std::vector<uint8_t>& in_target, bool mask_target_vocabulary);
};

/// Appends the embedding matrices [V, D] that the tying requires, and the output bias. `vocabulary`: V.
void append_embedding_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, int64_t vocab_size);

class Embeddings {
 public:
  Embeddings(const Parameters& parameters, const ModelOptions& options, OutputVocabulary output_vocabulary,
             uint32_t dropout_seed);

  /// The matrices of one forward pass. With FixNorm their rows are normalised here; gradients flow through it.
  struct Tables {
    Value source, target;  // [V, D]
    Value output;          // [K, D]
    Value output_bias;     // [K] or empty
  };
  Tables prepare(const ForwardContext& context) const;

  /// drop(√d · E[token] + position) → [T, D]. Word dropout has already been applied to `rows`, which must outlive the
  /// tape.
  Value embed_source(const ForwardContext& context, const Tables& tables, const PackedRows& rows) const;
  Value embed_target(const ForwardContext& context, const Tables& tables, const PackedRows& rows) const;
  /// h [T, D] → logits [T, K].
  Value logits(const ForwardContext& context, const Tables& tables, const Value& h) const;

  const OutputVocabulary& output_vocabulary() const { return output_vocabulary_; }

 private:
  Value embed(const ForwardContext& context, const Value& table, const PackedRows& rows,
              const DropoutSite& dropout) const;

  ModelOptions options_;
  OutputVocabulary output_vocabulary_;
  at::ScalarType row_type_;
  Value source_, target_, output_, output_bias_;
  DropoutSite source_dropout_, target_dropout_;
  at::Tensor output_rows_;  // [K] int64
  /// Sinusoids [P, D], P a power of two; the last table is long enough for every sentence so far. Shorter ones are
  /// retained because captured updates and decode steps still read them.
  mutable std::vector<at::Tensor> positions_;
};

}  // namespace tearless::engine
