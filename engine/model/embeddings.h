// Word embeddings and the output layer: the three places that tying makes one, with FixNorm and the target-vocabulary
// mask.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/options.h"
#include "engine/model/parameters.h"
#include "engine/model/step.h"

namespace tearless::engine {

/// Which types the output layer keeps (knobs.md §12), and where each stands in its logits.
struct KeptVocabulary {
  std::vector<int32_t> types;     // [K] kept types in increasing order
  std::vector<int32_t> index_of;  // [V] place among the kept; a type that is not kept counts as UNK

  /// target_kept [V]: 1 for types seen on the target side. Without the mask all but PAD and BOS are kept.
  static KeptVocabulary from(const std::vector<uint8_t>& target_kept, bool mask_target_vocabulary);
};

void append_embedding_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, int64_t vocabulary);

class Embeddings {
 public:
  Embeddings(const Parameters& parameters, const ModelOptions& options, KeptVocabulary kept, uint32_t dropout_seed);

  /// The matrices as one step sees them: FixNorm makes unit rows anew at every step, gradients flow through it.
  struct Tables {
    Value source, target;  // [V, D]
    Value output;          // [K, D]
    Value output_bias;     // [K] or empty
  };
  Tables prepare(const Step& step) const;

  /// √d · E[token] + position, dropout on the sum → [T, D]. Word dropout has already acted on `rows`, which must
  /// outlive the tape.
  Value embed_source(const Step& step, const Tables& tables, const PackedRows& rows) const;
  Value embed_target(const Step& step, const Tables& tables, const PackedRows& rows) const;
  /// h [T, D] → logits [T, K].
  Value logits(const Step& step, const Tables& tables, const Value& h) const;

  const KeptVocabulary& kept() const { return kept_; }

 private:
  Value embed(const Step& step, const Value& table, const PackedRows& rows, const DropoutSite& dropout) const;

  ModelOptions options_;
  KeptVocabulary kept_;
  at::ScalarType row_type_;
  Value source_, target_, output_, output_bias_;
  DropoutSite source_dropout_, target_dropout_;
  at::Tensor kept_index_;  // [K] int64
  /// [P, D], the last long enough for every sentence so far; P is a power of two. Shorter ones are kept for captured
  /// steps, which go on reading them.
  mutable std::vector<at::Tensor> positions_;
};

}  // namespace tearless::engine
