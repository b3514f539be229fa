#include "engine/decode/search.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/data/batches.h"
#include "engine/decode/cached_decoding.h"
#include "engine/decode/device_search.h"
#include "engine/ops/backend.h"
#include "engine/ops/logit_summaries.h"
#include "engine/ops/packed_weights.h"

namespace tearless::engine {
namespace {

/// One batch of sentences, advanced position by position until every beam is done.
class BatchSearch {
 public:
  BatchSearch(const Transformer& model, const ForwardContext& context, const Embeddings::Tables& tables,
              const PackedRows& source, const Value& encoder_output, const DecodeOptions& options)
      : output_vocabulary_(model.output_vocabulary()),
        start_(model.decoder_start()),
        ends_together_(options.stop == SearchStop::kBatch),
        tape_(context.tape),
        source_(source),
        decoding_(model, context, tables, encoder_output, source.sentence_count(), expected_rows(source, options)) {
    const int32_t eos = output_vocabulary_.column_of[kEos];
    for (size_t i = 0; i + 1 < source_.offsets.size(); ++i) {
      const int64_t limit = options.limit(source_.offsets[i + 1] - source_.offsets[i]);
      largest_limit_ = std::max(largest_limit_, limit);
      beams_.push_back(make_beam(options, limit, eos));
    }
  }

  /// The best outputs of each sentence, as columns of the logits.
  std::vector<std::vector<SearchOutput>> best() const {
    std::vector<std::vector<SearchOutput>> outputs;
    for (const auto& beam : beams_) outputs.push_back(beam->best());
    return outputs;
  }

  /// One position of all open hypotheses, of which there must be some. Returns false when none is open any more.
  bool advance() {
    std::vector<int32_t> tokens;  // the last one of each hypothesis
    AttentionSpans cross;
    for (size_t i = 0; i < beams_.size(); ++i) {
      const auto open = static_cast<int32_t>(beams_[i]->open());
      if (open == 0) continue;
      const int32_t begin = source_.offsets[i];
      cross.add({static_cast<int32_t>(tokens.size()), open, begin, source_.offsets[i + 1] - begin, 0});
      for (const Hypothesis& h : beams_[i]->hypotheses()) {
        if (h.finished) continue;
        tokens.push_back(h.tokens.empty() ? start_ : output_vocabulary_.tokens[static_cast<size_t>(h.tokens.back())]);
      }
    }
    const Value logits = decoding_.advance(std::move(tokens), cross);
    const at::Tensor rows = logits.data().to(at::kFloat).contiguous();  // [N, K]
    const LogitSummary summary = summary_of(tape_, rows);
    const at::Tensor on_host = rows.cpu(), log_sums = summary.log_sums.cpu(), maxima = summary.maxima.cpu();
    const int64_t vocab_size = rows.size(1);
    const auto blocks = static_cast<size_t>(maxima.size(1));

    std::vector<int64_t> parents;
    int64_t row = 0;
    for (const auto& beam : beams_) {
      const int64_t open = beam->open();
      if (open == 0) continue;
      std::vector<LogitRow> beam_rows;
      for (int64_t i = row; i < row + open; ++i)
        beam_rows.push_back({read<float>(on_host) + i * vocab_size,
                             read<float>(log_sums)[i],
                             {read<float>(maxima) + i * maxima.size(1), blocks}});
      for (const int64_t from : beam->advance(beam_rows, vocab_size)) parents.push_back(row + from);
      row += open;
    }
    ++length_;
    if (parents.empty() || (ends_together_ && may_end())) return false;
    decoding_.reorder(parents);
    return true;
  }

 private:
  /// Of the cache, if outputs are as long as their sources.
  static int64_t expected_rows(const PackedRows& source, const DecodeOptions& options) {
    return options.beam * static_cast<int64_t>(source.tokens.size());
  }
  /// Of a batch that ends together.
  bool may_end() const {
    return length_ >= largest_limit_ ||
           std::ranges::all_of(beams_, [](const std::unique_ptr<Beam>& beam) { return beam->may_end(); });
  }

  const OutputVocabulary& output_vocabulary_;
  int32_t start_;
  bool ends_together_;
  const Tape& tape_;
  int64_t largest_limit_ = 0, length_ = 0;  // in tokens
  const PackedRows& source_;
  std::vector<std::unique_ptr<Beam>> beams_;
  CachedDecoding decoding_;
};

/// Calls translate(i) for each of `count` batches, on that many threads, each with a batch of its own: the matmuls of
/// one position are too small to be divided. The first batches have the most sentences: what they took in memory
/// is enough for the others. Before each of them calls before(), on one thread at a time. After an exception no other
/// batch begins.
template <class F>
void for_each_batch(size_t count, int64_t threads, const std::function<void()>& before, F&& translate) {
  size_t begun = 0;
  std::mutex mutex;  // of `begun`
  const auto next = [&]() -> std::optional<size_t> {
    const std::lock_guard lock(mutex);
    if (begun == count) return std::nullopt;
    const size_t batch = std::exchange(begun, count);  // all, if before() throws
    before();
    begun = batch + 1;
    return batch;
  };
  at::parallel_for(0, std::min<int64_t>(threads, static_cast<int64_t>(count)), 1, [&](int64_t, int64_t) {
    try {
      while (const std::optional<size_t> batch = next()) translate(*batch);
    } catch (...) {
      const std::lock_guard lock(mutex);
      begun = count;
      throw;
    }
  });
}

/// The batches of the host's search: smaller ones where there would be fewer than threads.
std::vector<SentenceIds> batches_for(const ParallelTokens& set, int64_t tokens, int64_t threads) {
  std::vector<SentenceIds> batches = decoding_batches(set, tokens);
  while (std::ssize(batches) < std::min<int64_t>(threads, set.size())) batches = decoding_batches(set, tokens /= 2);
  return batches;
}

}  // namespace

Translator::Translator(const Transformer& model, const DecodeOptions& options, Tape::Ops ops)
    : model_(model), options_(options), ops_(ops) {}

Translator::~Translator() = default;

bool Translator::captures(const ForwardContext& context, const Embeddings::Tables& tables, const PackedRows& source,
                          const Value& encoder_output) const {
  if (!options_.kind().has_device_step || options_.n_best > 1) return false;
  const at::Tensor& like = encoder_output.data();
  const bool has_best_tokens = fast(context.tape, like, [](const auto& kernels) { return kernels.best_tokens; });
  if (!search_kernels_for(like).beam_step || !has_best_tokens) return false;
  // Formulas cannot be captured. One position on the host shows whether the decoder has some.
  BatchSearch(model_, context, tables, source, encoder_output, options_).advance();
  return context.tape.fallback_ops() == 0;
}

std::vector<std::vector<int32_t>> Translator::translate(const ParallelTokens& set,
                                                        const std::function<void()>& between_batches) {
  std::vector<std::vector<int32_t>> best;
  for (std::vector<SearchOutput>& outputs : search(set, between_batches)) {
    best.push_back(std::move(outputs.front().tokens));
  }
  return best;
}

std::vector<std::vector<SearchOutput>> Translator::search(const ParallelTokens& set,
                                                          const std::function<void()>& between_batches) {
  Tape of_tables(Tape::Kind::kForward, ops_);
  const Embeddings::Tables tables = model_.prepare({of_tables});
  PackedWeights packed_weights;
  std::vector<std::vector<SearchOutput>> outputs(static_cast<size_t>(set.size()));
  const bool ends_together = options_.stop == SearchStop::kBatch;
  const at::Tensor& like = tables.target.data();
  const bool may_capture = capture_for(like);
  const auto translate_batch = [&](const SentenceIds& sentences) {
    Tape tape(Tape::Kind::kForward, ops_);
    tape.set_packed_weights(&packed_weights);
    const ForwardContext context{tape};
    const PackedRows source = pack(set, sentences).source;
    const Value encoder_output = model_.encode(context, tables, source);
    std::vector<std::vector<SearchOutput>> best;
    if (may_capture && !captures_) captures_ = captures(context, tables, source, encoder_output);
    if (captures_.value_or(false)) {
      if (!on_device_) {
        on_device_ = std::make_unique<DeviceSearch>(model_, options_, capture_for(encoder_output.data()));
      }
      for (SearchOutput& output : on_device_->search(context, tables, source, encoder_output)) {
        best.push_back({std::move(output)});
      }
    } else {
      BatchSearch search(model_, context, tables, source, encoder_output, options_);
      while (search.advance()) {
      }
      best = search.best();
    }
    for (size_t i = 0; i < sentences.size(); ++i) {
      for (SearchOutput& output : best[i]) {
        for (int32_t& token : output.tokens) token = model_.output_vocabulary().tokens[static_cast<size_t>(token)];
        if (options_.kind().ends_at_pad)
          output.tokens.erase(std::ranges::find(output.tokens, kPad), output.tokens.end());
      }
      outputs[static_cast<size_t>(sentences[i])] = std::move(best[i]);
    }
  };
  const int64_t threads = like.device().is_cpu() && !may_capture ? at::get_num_threads() : 1;
  const std::vector<SentenceIds> batches = ends_together
                                               ? decoding_batches(set, options_.batch_tokens, /*in_file_order=*/true)
                                               : batches_for(set, options_.batch_tokens, threads);
  for_each_batch(batches.size(), threads, between_batches, [&](size_t i) { translate_batch(batches[i]); });
  return outputs;
}

}  // namespace tearless::engine
