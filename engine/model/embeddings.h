// Word embeddings of both sides and the output layer of the encoder-decoder; tying lets them share one matrix. The
// target-vocabulary mask is applied here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/token_embedding.h"

namespace tearless::engine {

/// The output vocabulary: the tokens that the output layer can predict (docs/spec/knobs.md §12).
struct OutputVocabulary {
  std::vector<int32_t> tokens;     // [K] the token of each column of the logits, in increasing order
  std::vector<int32_t> column_of;  // [V] the column of each token; that of UNK for tokens outside
  /// The loss is over all V tokens, PAD and BOS included (LabelSmoothing::over_whole_vocabulary()): column v is token
  /// v. The search has the columns above: without special outputs it cannot choose PAD or BOS, and its probabilities
  /// are without theirs.
  bool loss_over_all = false;

  /// With the mask: the tokens v with in_target[v] = 1 (in_target is [V]). Without: all tokens but PAD and BOS, and
  /// with special outputs all.
  static OutputVocabulary from(const std::vector<uint8_t>& in_target, bool mask_target_vocabulary,
                               bool loss_over_all = false, bool special_outputs = false);

  /// The column of the loss's logits that this label has.
  int32_t column_of_label(int32_t label) const { return loss_over_all ? label : column_of[static_cast<size_t>(label)]; }
  /// How many of these labels are outside, other than UNK itself: they count as UNK.
  int64_t outside(std::span<const int32_t> labels) const;
};

class Embeddings {
 public:
  /// Declares the matrices that the tying requires, and the output bias. V: the size of output_vocabulary.column_of,
  /// and of the source `source_vocab_size`. REQUIRES: with Tying::kAll they are equal (std::logic_error).
  Embeddings(const LayerScope& root, const ModelOptions& options, OutputVocabulary output_vocabulary,
             int64_t source_vocab_size);

  /// The matrices of one forward pass. With FixNorm their rows are normalised here; gradients flow through it.
  struct Tables {
    Value source, target;  // [V, D], each side with its V
    Value output;          // [K, D], or [V, D]
    Value output_bias;     // [K], [V] or empty
  };
  Tables prepare(const ForwardContext& context) const { return prepare(context, /*whole_output=*/false); }
  /// Those of a forward pass that ends in the loss.
  Tables prepare_for_loss(const ForwardContext& context) const {
    return prepare(context, output_vocabulary_.loss_over_all);
  }

  /// TokenEmbedding::forward().
  Value embed_source(const ForwardContext& context, const Tables& tables, const PackedRows& rows) const {
    return source_input_.forward(context, tables.source, rows);
  }
  Value embed_target(const ForwardContext& context, const Tables& tables, const PackedRows& rows) const;
  /// h [T, D] → logits [T, K].
  Value logits(const ForwardContext& context, const Tables& tables, const Value& h) const;

  const OutputVocabulary& output_vocabulary() const { return output_vocabulary_; }
  /// The token of every target's first row: BOS, EOS, PAD, whose embedding is then a zero vector, or kNoToken.
  int32_t decoder_start() const { return decoder_start_; }

 private:
  Tables prepare(const ForwardContext& context, bool whole_output) const;

  Tying tying_;
  int32_t decoder_start_;
  LayerOptions options_;
  OutputVocabulary output_vocabulary_;
  Value source_, target_, output_, output_bias_;
  Value input_vector_;
  TokenEmbedding source_input_, target_input_;
  at::Tensor output_rows_;  // [K] int64
};

}  // namespace tearless::engine
