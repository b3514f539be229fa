#include "engine/model/classifier.h"

#include "base/error.h"
#include "engine/model/declared_parameters.h"
#include "engine/ops/add_norm.h"
#include "engine/ops/embedding.h"
#include "engine/ops/linear.h"
#include "engine/ops/span_means.h"

namespace tearless::engine {

ClassifierOptions::ClassifierOptions() {
  d_model = 128;
  d_ff = 512;
  heads = 4;
  init = Init::kXavierUniform;
  dropout = {.residual = 0.2, .attention = 0.2, .relu = 0.2, .word = 0};
}

void describe(SettingsVisitor& v, ClassifierOptions& o) {
  v.integer({.key = "layers", .meaning = "layers of the encoder", .min = 1, .max = 200}, o.layers);
  describe_sublayers(v, "sublayers", "self_attention, ffn", o.sublayers, /*in_decoder=*/false);
  describe_layer_fields(v, o);
  describe_layer_tables(v, o, /*has_decoder=*/false);
  v.table_of("dropout", [&] {
    v.number({.key = "pooled",
              .meaning = "on the mean of a sentence's rows, which the output layer reads",
              .min = 0,
              .max = 0.99,
              .neutral = 0.0},
             o.pooled_dropout);
  });
}

void check_consistent(const ClassifierOptions& o) {
  check_consistent(static_cast<const LayerOptions&>(o));
  check_sublayers("model.sublayers", o.sublayers, /*in_decoder=*/false);
  const bool of_a_stack = o.norm.scope == NormScope::kEncoder || o.norm.scope == NormScope::kDecoder;
  if (of_a_stack && o.norm.scope_applies()) {
    // "encoder" would be "all" under another id.
    fail("model.norm.scope = \"{}\": the classifier has one stack, the encoder; use \"all\" or \"final_only\"",
         o.norm.scope == NormScope::kEncoder ? "encoder" : "decoder");
  }
}

std::vector<int64_t> ReadySentences::bucket() const {
  return {padded_rows(words), padded_spans(words), padded_length(spans)};
}

void ReadySentences::pad() {
  const std::vector<int64_t> sizes = bucket();
  const int64_t row_count = sizes[0], span_count = sizes[1], max_length = sizes[2];
  engine::pad(words, row_count);
  engine::pad(spans, span_count, row_count, row_count, max_length, max_length);
  engine::pad(pooled, span_count);
  engine::pad(labels, span_count);
}

std::vector<Batch::Part> ReadySentences::parts() const {
  return {words.tokens, words.by_token,   words.positions,     words.sentence_ids,
          spans.spans,  pooled.positions, pooled.sentence_ids, labels};
}

Classifier::Classifier(Parameters& parameters, const ClassifierOptions& options, int64_t vocab_size, int64_t classes,
                       uint32_t dropout_seed)
    : Classifier(LayerScope(parameters, options, dropout_seed), options, vocab_size, classes, dropout_seed) {}

Classifier::Classifier(const LayerScope& root, const ClassifierOptions& options, int64_t vocab_size, int64_t classes,
                       uint32_t dropout_seed)
    : options_(options),
      table_(declare_embedding(root, "embedding", vocab_size)),
      embedding_(root, "embedding", Stack::kEncoder),
      encoder_(root.in_stack(Stack::kEncoder), options.layers, options.sublayers),
      output_(root.linear("output", MatrixRole::kOutput, classes, options.d_model)),
      pooled_dropout_(root.dropout("pooled", options.pooled_dropout)),
      words_(dropout_seed, "drop.word") {}

ReadySentences Classifier::ready(const PackedRows& rows, std::vector<int32_t> labels,
                                 std::optional<uint32_t> update) const {
  const Dropout words = update ? Dropout::with(options_.dropout.word, words_, *update) : Dropout::off();
  ReadySentences ready;
  ready.words = drop_words(rows, words, kUnk);
  ready.labels = std::move(labels);
  ready.spans = AttentionSpans::self(ready.words, /*causal=*/false);
  std::vector<int32_t> sentences;
  for (size_t s = 0; s + 1 < rows.offsets.size(); ++s) {
    sentences.push_back(rows.sentence_ids[static_cast<size_t>(rows.offsets[s])]);
  }
  ready.pooled = rows_without_tokens(sentences, 1);
  return ready;
}

Value Classifier::logits(const ForwardContext& context, const ReadySentences& batch) const {
  const Value x = embedding_.forward(context, embedding_rows(context, options_, table_), batch.words);
  const Value rows = encoder_.forward(context, x, {batch.words, batch.spans});
  const Value pooled =
      drop_rows(context.tape, span_means(context.tape, rows, batch.spans), pooled_dropout_.at(context), batch.pooled);
  return linear(context.tape, pooled, output_.weight, output_.bias);
}

int64_t parameter_count(const ClassifierOptions& options, int64_t vocab_size, int64_t classes) {
  return declared<Classifier>(options, vocab_size, classes)->count();
}

DeclaredParameters declared_parameters(const ClassifierOptions& options) {
  return declared<Classifier>(options, /*vocab_size=*/kFirstPiece, /*classes=*/2);
}

int64_t saved_numbers(const ClassifierOptions& o, int64_t batch_tokens) {
  return batch_tokens * o.layers * saved_numbers(o, o.sublayers);
}

}  // namespace tearless::engine
