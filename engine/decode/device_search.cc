#include "engine/decode/device_search.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "engine/ops/bucket_sizes.h"

namespace tearless::engine {
namespace {

/// Positions between two questions whether all is done.
constexpr int64_t kPositionsAtOnce = 8;
constexpr int64_t kShortestRoom = 64, kShortestSource = 32;

/// A host vector of plain structs as a tensor of bytes.
template <class T>
at::Tensor bytes_of(const std::vector<T>& values) {
  return at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size() * sizeof(T))}, at::kByte);
}
template <class T>
T* as(const at::Tensor& bytes) {
  return reinterpret_cast<T*>(bytes.mutable_data_ptr<uint8_t>());
}

}  // namespace

/// One bucket's walk over a position: what it reads and writes on the device, and how it is done again.
struct DeviceSearch::Position {
  // What the walk is told on the host: sizes, and names for what stands on the device.
  PackedRows rows;
  AttentionSpans self, cross;
  // The same on the device; bytes, so that one kind of tensor serves for all.
  at::Tensor tokens, positions, lines, self_spans, cross_spans, key_rows;
  at::Tensor cache_rows;  // [rows] int64
  at::Tensor columns, hypotheses, limits, done, types, penalties;
  at::Tensor best_columns, best_log_p;
  BeamStep step;
  Repeated walk;

  Position(const Bucket& bucket, const DecodeOptions& options, const KeptVocabulary& kept, const at::Tensor& like);
  /// The state before the first position.
  void reset(const Bucket& bucket, const DecodeOptions& options, const PackedRows& source);
};

DeviceSearch::Position::Position(const Bucket& bucket, const DecodeOptions& options, const KeptVocabulary& kept,
                                 const at::Tensor& like) {
  const int64_t count = bucket.sentences * options.beam;
  const auto types_count = static_cast<int64_t>(kept.types.size());
  const auto size = static_cast<size_t>(count);
  rows.tokens.resize(size);
  rows.positions.assign(size, static_cast<int32_t>(bucket.room - 1));  // the table of positions must reach so far
  rows.lines.resize(size);
  self.spans.resize(size);
  self.key_rows.resize(1);
  self.longest_query = 1;
  self.longest_key = bucket.room;
  cross.spans.resize(static_cast<size_t>(bucket.sentences));
  cross.longest_query = options.beam;
  cross.longest_key = bucket.longest_source;

  const auto bytes = [&](int64_t elements, size_t each) {
    return at::zeros({elements * static_cast<int64_t>(each)}, like.options().dtype(at::kByte));
  };
  tokens = bytes(count, sizeof(int32_t));
  positions = bytes(count, sizeof(int32_t));
  lines = bytes(count, sizeof(int32_t));
  self_spans = bytes(count, sizeof(AttentionSpan));
  cross_spans = bytes(bucket.sentences, sizeof(AttentionSpan));
  key_rows = at::zeros({count, bucket.room}, like.options().dtype(at::kInt));
  columns = at::zeros({count, bucket.room}, like.options().dtype(at::kInt));
  cache_rows = at::zeros({count}, like.options().dtype(at::kLong));
  hypotheses = bytes(count, sizeof(BeamHypothesis));
  limits = bytes(bucket.sentences, sizeof(int32_t));
  done = at::zeros({bucket.sentences}, like.options().dtype(at::kInt));
  types = bytes_of(kept.types).to(like.device(), /*non_blocking=*/false, /*copy=*/true);
  std::vector<double> divisors;  // as Beam has them: nothing is normalised at the first position
  for (int64_t length = 0; length <= bucket.room; ++length) {
    divisors.push_back(length <= 1 ? 1.0 : std::pow((5.0 + static_cast<double>(length)) / 6.0, options.alpha));
  }
  penalties = bytes_of(divisors).to(like.device(), /*non_blocking=*/false, /*copy=*/true);
  const int64_t candidates = std::min(options.beam + 1, types_count);
  best_columns = at::zeros({count, candidates}, like.options().dtype(at::kInt));
  best_log_p = at::zeros({count, candidates}, like.options().dtype(at::kFloat));

  step = {.sentences = bucket.sentences,
          .beam = options.beam,
          .candidates = candidates,
          .room = bucket.room,
          .eos = kept.index_of[kEos],
          .types = as<int32_t>(types),
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

void DeviceSearch::Position::reset(const Bucket& bucket, const DecodeOptions& options, const PackedRows& source) {
  const auto sentences = static_cast<size_t>(bucket.sentences), beam = static_cast<size_t>(options.beam);
  std::vector<BeamHypothesis> first(sentences * beam);
  std::vector<AttentionSpan> past(sentences * beam), seen_source(sentences);
  std::vector<int32_t> bos(sentences * beam, kBos), most(sentences, 1), is_done(sentences, 1);
  for (size_t r = 0; r < past.size(); ++r) {
    past[r] = {static_cast<int32_t>(r), 1, static_cast<int32_t>(static_cast<int64_t>(r) * bucket.room), 1, 0};
  }
  for (size_t s = 0; s < sentences; ++s) {
    const auto queries = static_cast<int32_t>(s * beam);
    // What only fills the bucket is done from the start; it sees some row of the source, so that its numbers are
    // finite.
    seen_source[s] = {queries, static_cast<int32_t>(beam), 0, 1, 0};
    if (static_cast<int64_t>(s) >= source.sentence_count()) continue;
    const int32_t begin = source.offsets[s], length = source.offsets[s + 1] - begin;
    seen_source[s].key_begin = begin;
    seen_source[s].key_count = length;
    most[s] = length + static_cast<int32_t>(options.max_extra);
    is_done[s] = 0;
    first[s * beam].state = BeamHypothesis::kOpen;
  }
  hypotheses.copy_(bytes_of(first));
  self_spans.copy_(bytes_of(past));
  cross_spans.copy_(bytes_of(seen_source));
  tokens.copy_(bytes_of(bos));
  limits.copy_(bytes_of(most));
  done.copy_(at::from_blob(is_done.data(), {bucket.sentences}, at::kInt));
  positions.zero_();
  at::arange_out(cache_rows, cache_rows.size(0));
  key_rows.zero_();
  key_rows.select(1, 0).copy_(cache_rows);
}

DeviceSearch::DeviceSearch(const Transformer& model, const DecodeOptions& options, Capture capture)
    : model_(model), options_(options), capture_(capture) {}

DeviceSearch::~DeviceSearch() = default;

void DeviceSearch::keep(const Embeddings::Tables& tables) {
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
    renew(kept.low(), now.low());
  }
}

void DeviceSearch::fill_cache(const Value& projected, int64_t rows) {
  const at::Tensor& memory = projected.data();
  const int64_t layers = model_.decoder_layers();
  const bool fits = cache_.memory && cache_.memory.data().size(0) >= memory.size(0) && cache_.past[0].size(0) >= rows;
  if (!fits) {
    positions_.clear();  // what was captured reads the old ones
    const auto capacity = [&](const at::Tensor* old, int64_t wanted) {
      return std::max(wanted, old ? old->size(0) : int64_t{0});
    };
    const int64_t source_rows = capacity(cache_.memory ? &cache_.memory.data() : nullptr, memory.size(0));
    const int64_t past_rows = capacity(cache_.past.empty() ? nullptr : &cache_.past[0], rows);
    cache_ = {};
    cache_.memory = Value(at::empty({source_rows, memory.size(1)}, memory.options()));
    for (int64_t l = 0; l < layers; ++l) {
      cache_.past.push_back(at::empty({past_rows, memory.size(1) / layers}, memory.options()));
    }
  }
  cache_.memory.data().slice(0, 0, memory.size(0)).copy_(memory);
}

DeviceSearch::Position& DeviceSearch::start(const Bucket& bucket, const PackedRows& source) {
  auto known = positions_.find(bucket);
  if (known == positions_.end()) {
    known = positions_.try_emplace(bucket, bucket, options_, model_.kept(), cache_.memory.data()).first;
  }
  known->second.reset(bucket, options_, source);
  return known->second;
}

void DeviceSearch::launch(Position& position) {
  Tape tape(Tape::Kind::kForward);
  tape.place(position.rows.tokens.data(), position.tokens.const_data_ptr());
  tape.place(position.rows.positions.data(), position.positions.const_data_ptr());
  tape.place(position.rows.lines.data(), position.lines.const_data_ptr());
  tape.place(position.self.spans.data(), position.self_spans.const_data_ptr());
  tape.place(position.self.key_rows.data(), position.key_rows.const_data_ptr());
  tape.place(position.cross.spans.data(), position.cross_spans.const_data_ptr());
  const Value logits = model_.advance({tape}, tables_, position.rows, position.self, position.cross, cache_,
                                      {.named = position.cache_rows});
  with_kernels(logits.data(), [&]<class T>(const Kernels<T>& kernels, void* stream) {
    kernels.best_tokens({.rows = logits.data().size(0),
                         .types = logits.data().size(1),
                         .count = position.step.candidates,
                         .logits = read<T>(logits.data()),
                         .tokens = write<int32_t>(position.best_columns),
                         .log_p = write<float>(position.best_log_p)},
                        stream);
  });
  search_kernels_for(logits.data()).beam_step(position.step, stream_for(logits.data()));
}

std::vector<std::vector<int32_t>> DeviceSearch::search(const Step& step, const Embeddings::Tables& tables,
                                                       const PackedRows& source, const Value& memory) {
  int64_t longest = 0;
  for (int64_t s = 0; s < source.sentence_count(); ++s) {
    longest =
        std::max<int64_t>(longest, source.offsets[static_cast<size_t>(s) + 1] - source.offsets[static_cast<size_t>(s)]);
  }
  const int64_t most = longest + options_.max_extra;
  const Bucket bucket{.sentences = bucket_size(source.sentence_count(), 4, 4),
                      .room = power_of_two(std::max(most, kShortestRoom)),
                      .longest_source = power_of_two(std::max(longest, kShortestSource))};
  keep(tables);
  fill_cache(model_.project(step, memory), bucket.sentences * options_.beam * most);
  Position& position = start(bucket, source);
  for (int64_t p = 0; p < most; ++p) {
    position.walk.run(capture_, [&] { launch(position); });
    if ((p + 1) % kPositionsAtOnce == 0 && position.done.cpu().ne(0).all().item<bool>()) break;
  }

  const at::Tensor hypotheses = position.hypotheses.cpu(), columns = position.columns.cpu();
  std::vector<std::vector<int32_t>> best;
  for (int64_t s = 0; s < source.sentence_count(); ++s) {
    const BeamHypothesis* of_sentence = as<BeamHypothesis>(hypotheses) + s * options_.beam;
    const BeamHypothesis* winner = nullptr;
    for (const BeamHypothesis* h = of_sentence; h != of_sentence + options_.beam; ++h) {
      if (h->state != BeamHypothesis::kAbsent && (!winner || h->score > winner->score)) winner = h;
    }
    assert(winner);
    const int32_t* first = read<int32_t>(columns) + (s * options_.beam + (winner - of_sentence)) * bucket.room;
    const int32_t length = winner->length - (winner->state == BeamHypothesis::kFinished ? 1 : 0);
    best.emplace_back(first, first + length);
  }
  return best;
}

}  // namespace tearless::engine
