#include "engine/decode/search.h"

#include <ATen/ops/log_softmax.h>

#include "engine/data/batches.h"
#include "engine/decode/beam.h"
#include "engine/decode/cached_decoding.h"
#include "engine/decode/device_search.h"

namespace tearless::engine {
namespace {

/// One batch of sentences, advanced position by position until every beam is done.
class BatchSearch {
 public:
  BatchSearch(const Transformer& model, const ForwardContext& context, const Embeddings::Tables& tables,
              const PackedRows& source, const Value& encoder_output, const DecodeOptions& options)
      : output_vocabulary_(model.output_vocabulary()),
        start_(model.decoder_start()),
        source_(source),
        decoding_(model, context, tables, encoder_output, source.sentence_count()) {
    const int32_t eos = output_vocabulary_.column_of[kEos];
    for (size_t i = 0; i + 1 < source_.offsets.size(); ++i) {
      beams_.emplace_back(options, source_.offsets[i + 1] - source_.offsets[i] + options.max_extra, eos);
    }
  }

  /// The best output of each sentence, as columns of the logits.
  std::vector<std::vector<int32_t>> best() const {
    std::vector<std::vector<int32_t>> outputs;
    for (const Beam& beam : beams_) outputs.push_back(beam.best());
    return outputs;
  }

  /// One position of all open hypotheses, of which there must be some. Returns false when none is open any more.
  bool advance() {
    std::vector<int32_t> tokens;  // the last one of each hypothesis
    AttentionSpans cross;
    for (size_t i = 0; i < beams_.size(); ++i) {
      const auto open = static_cast<int32_t>(beams_[i].open());
      if (open == 0) continue;
      const int32_t begin = source_.offsets[i];
      cross.add({static_cast<int32_t>(tokens.size()), open, begin, source_.offsets[i + 1] - begin, 0});
      for (const Hypothesis& h : beams_[i].hypotheses()) {
        if (h.finished) continue;
        tokens.push_back(h.tokens.empty() ? start_ : output_vocabulary_.tokens[static_cast<size_t>(h.tokens.back())]);
      }
    }
    const Value logits = decoding_.advance(std::move(tokens), cross);
    const at::Tensor log_p = at::log_softmax(logits.data().to(at::kFloat), 1).cpu();  // [N, K]
    const int64_t vocab_size = log_p.size(1);
    const float* data = log_p.const_data_ptr<float>();

    std::vector<int64_t> parents;
    int64_t row = 0;
    for (Beam& beam : beams_) {
      const int64_t open = beam.open();
      if (open == 0) continue;
      std::vector<const float*> beam_rows;
      for (int64_t i = 0; i < open; ++i) beam_rows.push_back(data + (row + i) * vocab_size);
      for (const int64_t from : beam.advance(beam_rows, vocab_size)) parents.push_back(row + from);
      row += open;
    }
    if (parents.empty()) return false;
    decoding_.reorder(parents);
    return true;
  }

 private:
  const OutputVocabulary& output_vocabulary_;
  int32_t start_;
  const PackedRows& source_;
  std::vector<Beam> beams_;
  CachedDecoding decoding_;
};

}  // namespace

Translator::Translator(const Transformer& model, const DecodeOptions& options, Tape::Ops ops)
    : model_(model), options_(options), ops_(ops) {}

Translator::~Translator() = default;

bool Translator::captures(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& source,
                          const Value& encoder_output) const {
  const at::Tensor& like = encoder_output.data();
  const bool has_best_tokens = fast(context.tape, like, [](const auto& kernels) { return kernels.best_tokens; });
  if (!capture_for(like) || !search_kernels_for(like).beam_step || !has_best_tokens) return false;
  // Formulas cannot be captured. One position on the host shows whether the decoder has some.
  BatchSearch(model_, context, tables, source, encoder_output, options_).advance();
  return context.tape.fallback_ops() == 0;
}

std::vector<std::vector<int32_t>> Translator::translate(const ParallelTokens& set,
                                                        const std::function<void()>& between_batches) {
  Tape of_tables(Tape::Kind::kForward, ops_);
  const Embeddings::Tables tables = model_.prepare({of_tables});
  std::vector<std::vector<int32_t>> outputs(static_cast<size_t>(set.size()));
  for (const SentenceIds& sentences : decoding_batches(set, options_.batch_tokens)) {
    between_batches();
    Tape tape(Tape::Kind::kForward, ops_);
    const ForwardContext context{tape};
    const PackedRows source = pack(set, sentences).source;
    const Value encoder_output = model_.encode(context, tables, source);
    if (!captures_) captures_ = captures(context, tables, source, encoder_output);
    std::vector<std::vector<int32_t>> best;
    if (*captures_) {
      if (!on_device_) {
        on_device_ = std::make_unique<DeviceSearch>(model_, options_, capture_for(encoder_output.data()));
      }
      best = on_device_->search(context, tables, source, encoder_output);
    } else {
      BatchSearch search(model_, context, tables, source, encoder_output, options_);
      while (search.advance()) {
      }
      best = search.best();
    }
    for (size_t i = 0; i < sentences.size(); ++i) {
      std::vector<int32_t>& output = outputs[static_cast<size_t>(sentences[i])];
      for (const int32_t column : best[i])
        output.push_back(model_.output_vocabulary().tokens[static_cast<size_t>(column)]);
    }
  }
  return outputs;
}

}  // namespace tearless::engine
