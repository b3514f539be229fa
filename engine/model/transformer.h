// The encoder-decoder Transformer. Training and perplexity turn a batch into a loss; search encodes source rows and
// then computes logits position by position.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/batch.h"
#include "engine/model/embeddings.h"
#include "engine/model/layer_stack.h"
#include "engine/model/padded_batch.h"
#include "engine/ops/cross_entropy.h"

namespace tearless::engine {

/// The number of parameters of the model. Allocates none. `source_vocab_size`: of the source side; unset: vocab_size.
int64_t parameter_count(const ModelOptions& options, int64_t vocab_size,
                        std::optional<int64_t> source_vocab_size = std::nullopt);
/// The parameters with data of some size, on which neither their names nor which of them are a norm's length depend.
DeclaredParameters declared_parameters(const ModelOptions& options);

/// About how many numbers of a batch of `batch_tokens` rows per side training holds at a time.
int64_t saved_numbers(const ModelOptions& options, int64_t vocab_size, int64_t batch_tokens);

/// A batch as the forward pass takes it: word dropout has been applied, labels are columns of the logits, and the
/// attention spans are filled in.
struct ReadyBatch final : Batch {
  PackedRows source, target;
  std::vector<int32_t> labels;     // [target T] columns of the logits; negative: the row is left out of the loss
  std::vector<float> row_weights;  // [target T] of rows in the mean of the losses, from weigh_by_sentence(); empty: 1
  int64_t divisor = 0;             // of their weighted sum; without row_weights not read
  AttentionSpans source_spans, target_spans, cross_spans;

  int64_t rows() const override { return source.sentence_rows() + target.sentence_rows(); }
  int64_t predictions() const override { return predictions_of(labels); }
  int64_t loss_divisor() const override { return row_weights.empty() ? predictions() : divisor; }
  /// An update is then to minimise the mean over sentences of the mean loss of each sentence's labels.
  void weigh_by_sentence();
  /// {source rows, target rows, spans, longest source, longest target}.
  std::vector<int64_t> bucket() const override;
  void pad() override;
  std::vector<Part> parts() const override;
};

/// What search keeps between positions.
struct DecodeCache {
  Value source;  // [S, W] LayerStack::project() of the encoder output
  StackState target;
};

class Transformer {
 public:
  /// Declares its parameters; call parameters.allocate() next. The model is usable while `parameters` lives.
  /// `source_vocab_size`: of the source side; unset: the same tokens as the target's.
  Transformer(Parameters& parameters, const ModelOptions& options, OutputVocabulary output_vocabulary,
              uint32_t dropout_seed, std::optional<int64_t> source_vocab_size = std::nullopt);

  /// Prepares a batch for that update of training: targets start with decoder_start() in place of BOS. Without an
  /// update: for evaluation, no word dropout.
  ReadyBatch ready(const PackedBatch& batch, std::optional<uint32_t> update) const;
  /// The loss summed over the batch. On a recording tape, call tape.backward() next; `batch` must live until then.
  CrossEntropySums loss(const ForwardContext& context, const ReadyBatch& batch, const LabelSmoothing& smoothing) const;
  /// As above; calls ready() first, for context.update if the tape records, else for evaluation.
  CrossEntropySums loss(const ForwardContext& context, const PackedBatch& batch, const LabelSmoothing& smoothing) const;

  /// The embedding matrices of one forward pass, or of all forward passes of an evaluation.
  Embeddings::Tables prepare(const ForwardContext& context) const { return embeddings_.prepare(context); }
  /// Source rows → encoder output [S, D].
  Value encode(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& source) const;
  /// The logits [T, K] of whole targets.
  Value logits(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& target,
               const Value& encoder_output, const PackedRows& source) const;

  /// Makes the parts of a DecodeCache.
  const LayerStack& decoder() const { return decoder_; }
  /// One decode step: logits [N, K]. `rows`: the newest token of each hypothesis; `self`: the rows of the cache that
  /// each sees, which include the one that it writes in this step; `cross`: the source rows that it sees.
  Value decode_step(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& rows,
                    const AttentionSpans& self, const AttentionSpans& cross, const DecodeCache& cache) const;

  const OutputVocabulary& output_vocabulary() const { return embeddings_.output_vocabulary(); }
  /// Embeddings::decoder_start(): the token that decoding starts with.
  int32_t decoder_start() const { return embeddings_.decoder_start(); }

 private:
  Transformer(const LayerScope& root, const ModelOptions& options, OutputVocabulary output_vocabulary,
              uint32_t dropout_seed, int64_t source_vocab_size);

  /// The logits of whole targets, with all spans given.
  Value logits(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& target,
               const AttentionSpans& self, const Value& encoder_output, const AttentionSpans& cross) const;

  Embeddings embeddings_;
  LayerStack encoder_, decoder_;
  RandomStream word_source_, word_target_;
  double word_dropout_;
};

}  // namespace tearless::engine
