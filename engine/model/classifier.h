// A classifier of sentences: the encoder, the mean of its rows, dropout, and a linear map to the classes
// (docs/spec/tasks.md §2).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/batch.h"
#include "engine/model/layer_stack.h"
#include "engine/model/padded_batch.h"
#include "engine/model/token_embedding.h"
#include "engine/ops/cross_entropy.h"

namespace tearless::engine {

/// [model] of the classifier. The defaults are the sizes of the AdaNorm paper.
struct ClassifierOptions : LayerOptions {
  int64_t layers = 4;                             // of the encoder
  std::string sublayers = "self_attention, ffn";  // of a layer
  double pooled_dropout = 0.2;                    // [model.dropout] pooled: on the mean of a sentence's rows

  ClassifierOptions();
};
void describe(SettingsVisitor& visitor, ClassifierOptions& options);
/// Throws UserError as for LayerOptions, by check_sublayers(), and for a norm scope of one stack, because there is only
/// one.
void check_consistent(const ClassifierOptions& options);

/// A batch as the forward pass takes it: word dropout has been applied.
struct ReadySentences final : Batch {
  PackedRows words;             // the rows of the sentences
  AttentionSpans spans;         // the rows of each sentence
  PackedRows pooled;            // one row a sentence: the dropout counters of their means
  std::vector<int32_t> labels;  // [N] classes; negative: padding

  int64_t rows() const override { return words.sentence_rows(); }
  int64_t predictions() const override { return predictions_of(labels); }
  /// {rows, spans, longest sentence}.
  std::vector<int64_t> bucket() const override;
  void pad() override;
  std::vector<Part> parts() const override;
};

class Classifier {
 public:
  /// Declares its parameters; call parameters.allocate() next. Borrows `options`.
  Classifier(Parameters& parameters, const ClassifierOptions& options, int64_t vocab_size, int64_t classes,
             uint32_t dropout_seed);

  /// Prepares sentences for that update of training. Without an update: for evaluation, no word dropout.
  ReadySentences ready(const PackedRows& rows, std::vector<int32_t> labels, std::optional<uint32_t> update) const;
  /// The logits of the classes [N, C]. `batch` must outlive the tape.
  Value logits(const ForwardContext& context, const ReadySentences& batch) const;
  /// The loss summed over the batch. On a recording tape, call tape.backward() next.
  CrossEntropySums loss(const ForwardContext& context, const ReadySentences& batch, double label_smoothing) const {
    return smoothed_cross_entropy(context, logits(context, batch), batch.labels, label_smoothing);
  }

 private:
  Classifier(const LayerScope& root, const ClassifierOptions& options, int64_t vocab_size, int64_t classes,
             uint32_t dropout_seed);

  const ClassifierOptions& options_;
  Value table_;  // [V, D]
  TokenEmbedding embedding_;
  LayerStack encoder_;
  Linear output_;  // [C, D]
  DropoutSite pooled_dropout_;
  RandomStream words_;
};

/// The number of parameters of the model. Allocates none.
int64_t parameter_count(const ClassifierOptions& options, int64_t vocab_size, int64_t classes);
/// The parameters with data of some size, on which neither their names nor which of them are a norm's length depend.
DeclaredParameters declared_parameters(const ClassifierOptions& options);
/// About how many numbers of a batch of `batch_tokens` rows training holds at a time.
int64_t saved_numbers(const ClassifierOptions& options, int64_t batch_tokens);

}  // namespace tearless::engine
