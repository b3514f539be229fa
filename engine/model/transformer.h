// The encoder-decoder Transformer as a whole: a batch goes in, a loss or logits come out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/decoder.h"
#include "engine/model/embeddings.h"
#include "engine/model/encoder.h"
#include "engine/ops/cross_entropy.h"

namespace tearless::engine {

/// Every parameter of the model.
std::vector<ParameterSpec> transformer_specs(const ModelOptions& options, int64_t vocabulary);

/// A rough upper estimate for `check`: parameters with gradients and moments, and the activations of a batch of
/// `batch_tokens` rows a side.
int64_t estimated_memory_bytes(const ModelOptions& options, int64_t vocabulary, int64_t batch_tokens);

/// A batch as one walk through the model takes it: word dropout has acted, labels are columns of the logits, and it is
/// written down which rows see which.
struct ReadyBatch {
  PackedRows source = {}, target = {};
  std::vector<int32_t> labels = {};  // [target T]; negative: the row counts for nothing
  AttentionSpans source_spans = {}, target_spans = {}, cross_spans = {};

  int64_t tokens() const;  // labels that count
};

class Transformer {
 public:
  /// `parameters` must have been made from transformer_specs() and must outlive the model.
  Transformer(const Parameters& parameters, const ModelOptions& options, KeptVocabulary kept, uint32_t dropout_seed);

  /// The batch for that update of training, or for evaluation, where no word is dropped.
  ReadyBatch ready(const PackedBatch& batch, std::optional<uint32_t> update) const;
  /// Sums of the loss over the batch. On a recording tape, call tape.backward() next; the batch must live until then.
  LossSums loss(const Step& step, const ReadyBatch& batch, double label_smoothing) const;
  /// The same of a batch that is made ready for the step.
  LossSums loss(const Step& step, const PackedBatch& batch, double label_smoothing) const;

  Embeddings::Tables prepare(const Step& step) const { return embeddings_.prepare(step); }
  /// Source rows → memory [S, D].
  Value encode(const Step& step, const Embeddings::Tables& tables, const PackedRows& source) const;
  /// Whole targets: logits [T, K].
  Value logits(const Step& step, const Embeddings::Tables& tables, const PackedRows& target, const Value& memory,
               const PackedRows& source) const;

  DecoderState start(const Step& step, const Value& memory, int64_t hypotheses) const;
  /// One more token for each hypothesis: logits [N, K]. `rows`: one row a hypothesis, at state.position.
  Value advance(const Step& step, const Embeddings::Tables& tables, const PackedRows& rows, const AttentionSpans& cross,
                DecoderState& state) const;

  /// The encoder's output as search's cache holds it.
  Value project(const Step& step, const Value& memory) const { return decoder_.project(step, memory); }
  /// The same over a cache that the caller keeps.
  Value advance(const Step& step, const Embeddings::Tables& tables, const PackedRows& rows, const AttentionSpans& self,
                const AttentionSpans& cross, DecoderCache& cache, const CacheRows& written) const;
  int64_t decoder_layers() const { return decoder_.layer_count(); }

  const KeptVocabulary& kept() const { return embeddings_.kept(); }

 private:
  Embeddings embeddings_;
  Encoder encoder_;
  Decoder decoder_;
  RandomStream word_source_, word_target_;
  double word_dropout_;
};

/// Learned lengths of all norms with one scalar gain: ("g.encoder.1.ffn", 22.6), in the order of the model (training.md
/// §7.2).
std::vector<std::pair<std::string, double>> learned_lengths(const Parameters& parameters);

}  // namespace tearless::engine
