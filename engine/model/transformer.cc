#include "engine/model/transformer.h"

#include <algorithm>

#include "engine/model/declared_parameters.h"
#include "engine/ops/embedding.h"

namespace tearless::engine {

namespace {

DeclaredParameters declared(const ModelOptions& options, int64_t vocab_size, int64_t source_vocab_size) {
  return declared_once(options, {vocab_size, source_vocab_size}, [&](Parameters& parameters) {
    const std::vector<uint8_t> any_vocabulary(static_cast<size_t>(vocab_size), 1);
    const Transformer model(parameters, options, OutputVocabulary::from(any_vocabulary, false), /*dropout_seed=*/0,
                            source_vocab_size);
  });
}

}  // namespace

int64_t parameter_count(const ModelOptions& options, int64_t vocab_size, std::optional<int64_t> source_vocab_size) {
  return declared(options, vocab_size, source_vocab_size.value_or(vocab_size))->count();
}

DeclaredParameters declared_parameters(const ModelOptions& options) {
  return declared(options, kFirstPiece, kFirstPiece);
}

int64_t saved_numbers(const ModelOptions& o, int64_t vocab_size, int64_t batch_tokens) {
  // Backward makes a gradient for each saved row in turn.
  const int64_t row = o.encoder_layers * saved_numbers(o, o.encoder_sublayers) +
                      o.decoder_layers * saved_numbers(o, o.decoder_sublayers);
  const int64_t logits = 2 * vocab_size;
  return batch_tokens * (row + logits);
}

std::vector<int64_t> ReadyBatch::bucket() const {
  return {padded_rows(source), padded_rows(target), padded_spans(source), padded_length(source_spans),
          padded_length(target_spans)};
}

void ReadyBatch::pad() {
  const std::vector<int64_t> sizes = bucket();
  const int64_t source_rows = sizes[0], target_rows = sizes[1], spans = sizes[2];
  const int64_t max_source_length = sizes[3], max_target_length = sizes[4];
  engine::pad(source, source_rows);
  engine::pad(target, target_rows);
  engine::pad(labels, target_rows);
  if (!row_weights.empty()) row_weights.resize(static_cast<size_t>(target_rows), 0.0f);
  engine::pad(source_spans, spans, source_rows, source_rows, max_source_length, max_source_length);
  engine::pad(target_spans, spans, target_rows, target_rows, max_target_length, max_target_length);
  engine::pad(cross_spans, spans, target_rows, source_rows, max_target_length, max_source_length);
}

void ReadyBatch::weigh_by_sentence() {
  row_weights.clear();
  for (size_t i = 0; i + 1 < target.offsets.size(); ++i) {
    const int32_t length = target.offsets[i + 1] - target.offsets[i];
    row_weights.insert(row_weights.end(), static_cast<size_t>(length), 1.0f / static_cast<float>(length));
  }
  divisor = target.sentence_count();
}

std::vector<Batch::Part> ReadyBatch::parts() const {
  std::vector<Batch::Part> all = {source.tokens, source.by_token,    source.positions,   source.sentence_ids,
                                  target.tokens, target.by_token,    target.positions,   target.sentence_ids,
                                  labels,        source_spans.spans, target_spans.spans, cross_spans.spans};
  if (!row_weights.empty()) all.emplace_back(row_weights);
  return all;
}

Transformer::Transformer(Parameters& parameters, const ModelOptions& options, OutputVocabulary output_vocabulary,
                         uint32_t dropout_seed, std::optional<int64_t> source_vocab_size)
    : Transformer(LayerScope(parameters, options, dropout_seed), options, output_vocabulary, dropout_seed,
                  source_vocab_size.value_or(static_cast<int64_t>(output_vocabulary.column_of.size()))) {}

Transformer::Transformer(const LayerScope& root, const ModelOptions& options, OutputVocabulary output_vocabulary,
                         uint32_t dropout_seed, int64_t source_vocab_size)
    : embeddings_(root, options, std::move(output_vocabulary), source_vocab_size),
      encoder_(root.in_stack(Stack::kEncoder), options.encoder_layers, options.encoder_sublayers),
      decoder_(root.in_stack(Stack::kDecoder), options.decoder_layers, options.decoder_sublayers),
      word_source_(dropout_seed, "drop.word.source"),
      word_target_(dropout_seed, "drop.word.target"),
      word_dropout_(options.dropout.word) {}

ReadyBatch Transformer::ready(const PackedBatch& batch, std::optional<uint32_t> update) const {
  const auto words = [&](const RandomStream& stream) {
    return update ? Dropout::with(word_dropout_, stream, *update) : Dropout::off();
  };
  ReadyBatch ready;
  ready.source = drop_words(batch.source, words(word_source_), kUnk);
  PackedRows target = batch.target;
  for (int64_t s = 0; s < target.sentence_count(); ++s) {
    target.tokens[static_cast<size_t>(target.offsets[static_cast<size_t>(s)])] = decoder_start();
  }
  ready.target = drop_words(std::move(target), words(word_target_), kUnk);
  ready.labels.reserve(batch.labels.size());
  for (const int32_t label : batch.labels) ready.labels.push_back(output_vocabulary().column_of_label(label));
  ready.source_spans = AttentionSpans::self(ready.source, /*causal=*/false);
  ready.target_spans = AttentionSpans::self(ready.target, /*causal=*/true);
  ready.cross_spans = AttentionSpans::cross(ready.target, ready.source);
  return ready;
}

CrossEntropySums Transformer::loss(const ForwardContext& context, const ReadyBatch& batch,
                                   const LabelSmoothing& smoothing) const {
  const Embeddings::Tables tables = embeddings_.prepare_for_loss(context);
  const Value encoder_output = encoder_.forward(context, embeddings_.embed_source(context, tables, batch.source),
                                                {batch.source, batch.source_spans});
  const Value of_targets = logits(context, tables, batch.target, batch.target_spans, encoder_output, batch.cross_spans);
  const RowWeights weights{batch.row_weights, batch.divisor};
  return smoothed_cross_entropy(context, of_targets, batch.labels, smoothing,
                                batch.row_weights.empty() ? nullptr : &weights);
}

CrossEntropySums Transformer::loss(const ForwardContext& context, const PackedBatch& batch,
                                   const LabelSmoothing& smoothing) const {
  return loss(context,
              context.tape.save(ready(batch, context.tape.recording() ? std::optional(context.update) : std::nullopt)),
              smoothing);
}

Value Transformer::encode(const ForwardContext& context, const Embeddings::Tables& tables,
                          const PackedRows& source) const {
  const AttentionSpans& spans = context.tape.save(AttentionSpans::self(source, /*causal=*/false));
  return encoder_.forward(context, embeddings_.embed_source(context, tables, source), {source, spans});
}

Value Transformer::logits(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& target,
                          const Value& encoder_output, const PackedRows& source) const {
  return logits(context, tables, target, context.tape.save(AttentionSpans::self(target, /*causal=*/true)),
                encoder_output, context.tape.save(AttentionSpans::cross(target, source)));
}

Value Transformer::logits(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& target,
                          const AttentionSpans& self, const Value& encoder_output, const AttentionSpans& cross) const {
  const Value x = embeddings_.embed_target(context, tables, target);
  const EncoderOutput source{decoder_.project(context, encoder_output), cross};
  return embeddings_.logits(context, tables, decoder_.forward(context, x, {target, self, &source}));
}

Value Transformer::decode_step(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& rows,
                               const AttentionSpans& self, const AttentionSpans& cross,
                               const DecodeCache& cache) const {
  const Value x = embeddings_.embed_target(context, tables, rows);
  const EncoderOutput source{cache.source, cross};
  return embeddings_.logits(context, tables, decoder_.forward(context, x, {rows, self, &source}, &cache.target));
}

}  // namespace tearless::engine
