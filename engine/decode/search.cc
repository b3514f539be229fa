#include "engine/decode/search.h"

#include <ATen/ops/log_softmax.h>

#include "engine/data/batches.h"
#include "engine/decode/beam.h"
#include "engine/decode/device_search.h"

namespace tearless::engine {
namespace {

/// One batch of sentences, advanced position by position until every beam is done.
class BatchSearch {
 public:
  BatchSearch(const Transformer& model, const ForwardContext& context, const Embeddings::Tables& tables,
              const PackedRows& source, const Value& encoder_output, const DecodeOptions& options)
      : model_(model), context_(context), tables_(tables), source_(source) {
    const int32_t eos = model.output_vocabulary().column_of[kEos];
    for (size_t i = 0; i + 1 < source_.offsets.size(); ++i) {
      beams_.emplace_back(options, source_.offsets[i + 1] - source_.offsets[i] + options.max_extra, eos);
    }
    state_ = model.decoder().start(context, encoder_output, static_cast<int64_t>(beams_.size()));
  }

  void run() {
    while (advance()) {
    }
  }

  /// The best output of each sentence, as columns of the logits.
  std::vector<std::vector<int32_t>> best() const {
    std::vector<std::vector<int32_t>> outputs;
    for (const Beam& beam : beams_) outputs.push_back(beam.best());
    return outputs;
  }

 private:
  /// One position of all open hypotheses, of which there must be some. Returns false when none is open any more.
  bool advance() {
    PackedRows rows;  // one row per hypothesis: its last token
    AttentionSpans cross;
    for (size_t i = 0; i < beams_.size(); ++i) {
      const auto open = static_cast<int32_t>(beams_[i].open());
      if (open == 0) continue;
      const int32_t begin = source_.offsets[i];
      cross.add({static_cast<int32_t>(rows.tokens.size()), open, begin, source_.offsets[i + 1] - begin, 0});
      for (const Hypothesis& h : beams_[i].hypotheses()) {
        if (!h.finished)
          rows.tokens.push_back(
              h.tokens.empty() ? kBos : model_.output_vocabulary().tokens[static_cast<size_t>(h.tokens.back())]);
      }
    }
    rows.positions.assign(rows.tokens.size(), static_cast<int32_t>(state_.position));
    rows.sentence_ids.assign(rows.tokens.size(), 0);

    const Value logits = model_.advance(context_, tables_, rows, cross, state_);
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
    state_.reorder(parents);
    return true;
  }

  const Transformer& model_;
  const ForwardContext& context_;
  const Embeddings::Tables& tables_;
  const PackedRows& source_;
  std::vector<Beam> beams_;
  DecoderState state_;
};

}  // namespace

Translator::Translator(const Transformer& model, const DecodeOptions& options, Tape::Ops ops)
    : model_(model), options_(options), ops_(ops) {}

Translator::~Translator() = default;

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
    const at::Tensor& like = encoder_output.data();
    const CaptureGraph capture = capture_for(like);
    const bool has_search =
        search_kernels_for(like).beam_step && fast(tape, like, [](const auto& kernels) { return kernels.best_tokens; });
    std::vector<std::vector<int32_t>> best;
    // Operations that run by formula in the encoder would in the decoder too, and formulas cannot be captured.
    if (capture && has_search && tape.fallback_ops() == 0) {
      if (!on_device_) on_device_ = std::make_unique<DeviceSearch>(model_, options_, capture);
      best = on_device_->search(context, tables, source, encoder_output);
    } else {
      BatchSearch search(model_, context, tables, source, encoder_output, options_);
      search.run();
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
