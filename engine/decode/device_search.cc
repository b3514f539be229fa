#include "engine/decode/device_search.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>

#include "engine/model/padded_batch.h"

namespace tearless::engine {
namespace {

/// Positions between two polls whether all sentences are done.
constexpr int64_t kPositionsAtOnce = 8;
constexpr int64_t kMinMaxLength = 64, kMinSource = 32;

/// A host vector of plain structs as a tensor of bytes. Borrows the vector.
template <class T>
at::Tensor bytes_of(const std::vector<T>& values) {
  return at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size() * sizeof(T))}, at::kByte);
}
template <class T>
T* as(const at::Tensor& bytes) {
  return reinterpret_cast<T*>(bytes.mutable_data_ptr<uint8_t>());
}

}  // namespace

/// A decode step of one bucket: its inputs and outputs on the device, and the captured graph.
struct DeviceSearch::DecodeStep {
  // The host's view of the inputs: sizes, and addresses that are mapped to the device copies below.
  PackedRows rows;
  AttentionSpans self, cross;
  // The inputs in device memory, as bytes.
  at::Tensor tokens, positions, sentence_ids, self_spans, cross_spans, key_rows;
  at::Tensor cache_rows;  // [rows] int64
  at::Tensor columns, hypotheses, limits, done, token_of_column, penalties;
  at::Tensor best_columns, best_log_p;
  BeamStep beam_step;
  CapturedGraph graph;

  DecodeStep(const Bucket& bucket, const DecodeOptions& options, const OutputVocabulary& output_vocabulary,
             const at::Tensor& like);
  /// Sets the inputs of position 0, of which `start` is the token.
  void reset(const Bucket& bucket, const DecodeOptions& options, const PackedRows& source, int32_t start);
};

DeviceSearch::DecodeStep::DecodeStep(const Bucket& bucket, const DecodeOptions& options,
                                     const OutputVocabulary& output_vocabulary, const at::Tensor& like) {
  const int64_t count = bucket.sentences * options.beam;
  const auto vocab_size = static_cast<int64_t>(output_vocabulary.tokens.size());
  const auto size = static_cast<size_t>(count);
  rows.tokens.resize(size);
  rows.positions.assign(size, static_cast<int32_t>(bucket.max_length - 1));  // for the position table
  rows.sentence_ids.resize(size);
  self.spans.resize(size);
  self.key_rows.resize(1);
  self.max_query_length = 1;
  self.max_key_length = bucket.max_length;
  cross.spans.resize(static_cast<size_t>(bucket.sentences));
  cross.max_query_length = options.beam;
  cross.max_key_length = bucket.max_source_length;

  const auto bytes = [&](int64_t elements, size_t each) {
    return at::zeros({elements * static_cast<int64_t>(each)}, like.options().dtype(at::kByte));
  };
  tokens = bytes(count, sizeof(int32_t));
  positions = bytes(count, sizeof(int32_t));
  sentence_ids = bytes(count, sizeof(int32_t));
  self_spans = bytes(count, sizeof(AttentionSpan));
  cross_spans = bytes(bucket.sentences, sizeof(AttentionSpan));
  key_rows = at::zeros({count, bucket.max_length}, like.options().dtype(at::kInt));
  columns = at::zeros({count, bucket.max_length}, like.options().dtype(at::kInt));
  cache_rows = at::zeros({count}, like.options().dtype(at::kLong));
  hypotheses = bytes(count, sizeof(BeamHypothesis));
  limits = bytes(bucket.sentences, sizeof(int32_t));
  done = at::zeros({bucket.sentences}, like.options().dtype(at::kInt));
  token_of_column = bytes_of(output_vocabulary.tokens).to(like.device(), /*non_blocking=*/false, /*copy=*/true);
  std::vector<double> divisors;  // as in Beam: no penalty at position 0
  for (int64_t length = 0; length <= bucket.max_length; ++length) {
    divisors.push_back(length <= 1 ? 1.0 : length_penalty(options, length));
  }
  penalties = bytes_of(divisors).to(like.device(), /*non_blocking=*/false, /*copy=*/true);
  const int64_t candidates = std::min(options.beam + 1, vocab_size);
  best_columns = at::zeros({count, candidates}, like.options().dtype(at::kInt));
  best_log_p = at::zeros({count, candidates}, like.options().dtype(at::kFloat));

  beam_step = {.sentences = bucket.sentences,
               .beam = options.beam,
               .candidates = candidates,
               .max_length = bucket.max_length,
               .eos = output_vocabulary.column_of[kEos],
               .token_of_column = as<int32_t>(token_of_column),
               .penalties = as<double>(penalties),
               .limits = as<int32_t>(limits),
               .best_columns = write<int32_t>(best_columns),
               .best_log_p = write<float>(best_log_p),
               .hypotheses = as<BeamHypothesis>(hypotheses),
               .columns = write<int32_t>(columns),
               .key_rows = write<int32_t>(key_rows),
               .tokens = as<int32_t>(tokens),
               .positions = as<int32_t>(positions),
               .spans = as<AttentionSpan>(self_spans),
               .cache_rows = write<int64_t>(cache_rows),
               .done = write<int32_t>(done)};
}

void DeviceSearch::DecodeStep::reset(const Bucket& bucket, const DecodeOptions& options, const PackedRows& source,
                                     int32_t start) {
  const auto sentences = static_cast<size_t>(bucket.sentences), beam = static_cast<size_t>(options.beam);
  std::vector<BeamHypothesis> first(sentences * beam);
  std::vector<AttentionSpan> seen_cache(sentences * beam), seen_source(sentences);
  std::vector<int32_t> starts(sentences * beam, start), most(sentences, 1), is_done(sentences, 1);
  for (size_t r = 0; r < seen_cache.size(); ++r) {
    seen_cache[r] = {static_cast<int32_t>(r), 1, static_cast<int32_t>(static_cast<int64_t>(r) * bucket.max_length), 1,
                     0};
  }
  for (size_t s = 0; s < sentences; ++s) {
    const auto queries = static_cast<int32_t>(s * beam);
    // Sentences that pad the bucket are done from the start. They see one source row, so that their numbers are finite.
    seen_source[s] = {queries, static_cast<int32_t>(beam), 0, 1, 0};
    if (static_cast<int64_t>(s) >= source.sentence_count()) continue;
    const int32_t begin = source.offsets[s], length = source.offsets[s + 1] - begin;
    seen_source[s].key_begin = begin;
    seen_source[s].key_count = length;
    most[s] = static_cast<int32_t>(options.limit(length));
    is_done[s] = 0;
    first[s * beam].state = BeamHypothesis::kOpen;
  }
  hypotheses.copy_(bytes_of(first));
  self_spans.copy_(bytes_of(seen_cache));
  cross_spans.copy_(bytes_of(seen_source));
  tokens.copy_(bytes_of(starts));
  limits.copy_(bytes_of(most));
  done.copy_(at::from_blob(is_done.data(), {bucket.sentences}, at::kInt));
  positions.zero_();
  at::arange_out(cache_rows, cache_rows.size(0));
  key_rows.zero_();
  key_rows.select(1, 0).copy_(cache_rows);
}

DeviceSearch::DeviceSearch(const Transformer& model, const DecodeOptions& options, CaptureGraph capture)
    : model_(model), options_(options), capture_(capture) {}

DeviceSearch::~DeviceSearch() = default;

void DeviceSearch::set_tables(const Embeddings::Tables& tables) {
  if (!tables_.target) {
    tables_ = tables;
    return;
  }
  const auto renew = [](const at::Tensor& kept, const at::Tensor& now) {
    if (now.defined() && now.const_data_ptr() != kept.const_data_ptr()) kept.copy_(now);
  };
  for (const auto& [kept, now] : {std::pair{tables_.source, tables.source},
                                  {tables_.target, tables.target},
                                  {tables_.output, tables.output},
                                  {tables_.output_bias, tables.output_bias}}) {
    if (!now) continue;
    renew(kept.data(), now.data());
    renew(kept.bf16_copy(), now.bf16_copy());
  }
}

void DeviceSearch::fill_cache(const Value& projected, int64_t rows) {
  const at::Tensor& source = projected.data();
  const int64_t source_rows = cache_.source ? cache_.source.data().size(0) : 0;
  if (source_rows < source.size(0) || cache_.target.capacity < rows) {
    steps_.clear();  // captured steps read the old cache
    const int64_t capacity = cache_.target.capacity;
    cache_ = {};  // frees the old one first
    cache_.source = Value(at::empty({std::max(source_rows, source.size(0)), source.size(1)}, source.options()));
    cache_.target = model_.decoder().make_state(std::max(capacity, rows), source.options());
  }
  cache_.source.data().slice(0, 0, source.size(0)).copy_(source);
}

DeviceSearch::DecodeStep& DeviceSearch::start(const Bucket& bucket, const PackedRows& source) {
  auto known = steps_.find(bucket);
  if (known == steps_.end()) {
    known = steps_.try_emplace(bucket, bucket, options_, model_.output_vocabulary(), cache_.source.data()).first;
  }
  known->second.reset(bucket, options_, source, model_.decoder_start());
  return known->second;
}

void DeviceSearch::launch(DecodeStep& step) {
  Tape tape(Tape::Kind::kForward);
  tape.set_device_copy(step.rows.tokens.data(), step.tokens.const_data_ptr());
  tape.set_device_copy(step.rows.positions.data(), step.positions.const_data_ptr());
  tape.set_device_copy(step.rows.sentence_ids.data(), step.sentence_ids.const_data_ptr());
  tape.set_device_copy(step.self.spans.data(), step.self_spans.const_data_ptr());
  tape.set_device_copy(step.self.key_rows.data(), step.key_rows.const_data_ptr());
  tape.set_device_copy(step.cross.spans.data(), step.cross_spans.const_data_ptr());
  cache_.target.written = {.indices = step.cache_rows};
  const Value logits = model_.decode_step({tape}, tables_, step.rows, step.self, step.cross, cache_);
  with_kernels(logits.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.best_tokens({.rows = logits.data().size(0),
                         .vocab_size = logits.data().size(1),
                         .stride = logits.data().stride(0),
                         .count = step.beam_step.candidates,
                         .logits = read<T>(logits.data()),
                         .tokens = write<int32_t>(step.best_columns),
                         .log_p = write<float>(step.best_log_p)},
                        stream);
  });
  search_kernels_for(logits.data()).beam_step(step.beam_step, stream_for(logits.data()));
}

std::vector<SearchOutput> DeviceSearch::search(const ForwardContext& context, const Embeddings::Tables& tables,
                                               const PackedRows& source, const Value& encoder_output) {
  int64_t max_source_length = 0;
  for (int64_t s = 0; s < source.sentence_count(); ++s) {
    max_source_length = std::max<int64_t>(
        max_source_length, source.offsets[static_cast<size_t>(s) + 1] - source.offsets[static_cast<size_t>(s)]);
  }
  const int64_t most = options_.limit(max_source_length);
  const Bucket bucket{.sentences = bucket_size(source.sentence_count(), 4, 4),
                      .max_length = power_of_two(std::max(most, kMinMaxLength)),
                      .max_source_length = power_of_two(std::max(max_source_length, kMinSource))};
  set_tables(tables);
  fill_cache(model_.decoder().project(context, encoder_output), bucket.sentences * options_.beam * most);
  DecodeStep& step = start(bucket, source);
  for (int64_t p = 0; p < most; ++p) {
    step.graph.run(capture_, [&] { launch(step); });
    if ((p + 1) % kPositionsAtOnce == 0 && step.done.cpu().ne(0).all().item<bool>()) break;
  }

  const at::Tensor hypotheses = step.hypotheses.cpu(), columns = step.columns.cpu();
  std::vector<SearchOutput> best;
  for (int64_t s = 0; s < source.sentence_count(); ++s) {
    const BeamHypothesis* of_sentence = as<BeamHypothesis>(hypotheses) + s * options_.beam;
    const BeamHypothesis* winner = nullptr;
    for (const BeamHypothesis* h = of_sentence; h != of_sentence + options_.beam; ++h) {
      if (h->state != BeamHypothesis::kAbsent && (!winner || h->score > winner->score)) winner = h;
    }
    assert(winner);
    const int32_t* first = read<int32_t>(columns) + (s * options_.beam + (winner - of_sentence)) * bucket.max_length;
    const int32_t length = winner->length - (winner->state == BeamHypothesis::kFinished ? 1 : 0);
    best.push_back({{first, first + length}, winner->score});
  }
  return best;
}

}  // namespace tearless::engine
