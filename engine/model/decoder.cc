#include "engine/model/decoder.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "engine/model/feed_forward.h"
#include "engine/model/self_attention.h"

namespace tearless::engine {
namespace {

/// Initial capacity of the cache, in positions.
constexpr int64_t kFirstPositions = 16;

void make_room(at::Tensor& kept, int64_t filled, int64_t wanted) {
  if (!kept.defined() || wanted <= kept.size(0)) return;
  at::Tensor larger = at::empty({std::max(wanted, 2 * kept.size(0)), kept.size(1)}, kept.options());
  larger.slice(0, 0, filled).copy_(kept.slice(0, 0, filled));
  kept = larger;
}

}  // namespace

int64_t DecodeCache::capacity() const {
  for (const at::Tensor& kept : rows) {
    if (kept.defined()) return kept.size(0);
  }
  return 0;
}

void DecoderState::reorder(const std::vector<int64_t>& parents) {
  std::vector<std::vector<int32_t>> next;
  for (const int64_t parent : parents) next.push_back(ancestors[static_cast<size_t>(parent)]);
  ancestors = std::move(next);
}

Decoder::Decoder(const LayerScope& root, int64_t layers)
    : layers_(root.in_stack(Stack::kDecoder), layers,
              {{"self_attention", [](const LayerScope& scope) { return std::make_unique<SelfAttention>(scope); }},
               {"cross_attention",
                [this](const LayerScope& scope) { return std::make_unique<CrossAttention>(scope, source_); }},
               {"ffn", [](const LayerScope& scope) { return std::make_unique<FeedForward>(scope); }}},
              [this, &root] { source_.declare(root.parameters()); }) {}

Value Decoder::forward(const ForwardContext& context, const Value& x, const PackedRows& rows,
                       const AttentionSpans& self, const Value& encoder_output, const AttentionSpans& cross) const {
  // Only the query stream is normed by the layers. Under `pre` the encoder output has passed the encoder's final norm.
  const EncoderOutput source{project(context, encoder_output), cross};
  return layers_.forward(context, x, {rows, self, &source});
}

DecoderState Decoder::start(const ForwardContext& context, const Value& encoder_output, int64_t hypotheses) const {
  DecoderState state;
  state.cache.source = project(context, encoder_output);
  state.cache.rows = make_caches(hypotheses * kFirstPositions, encoder_output.data().options());
  state.ancestors.resize(static_cast<size_t>(hypotheses));
  return state;
}

Value Decoder::advance(const ForwardContext& context, const Value& x, const PackedRows& rows,
                       const AttentionSpans& cross, DecoderState& state) const {
  const int64_t hypotheses = x.data().size(0);
  for (at::Tensor& kept : state.cache.rows) make_room(kept, state.rows, state.rows + hypotheses);
  AttentionSpans self;
  for (int64_t h = 0; h < hypotheses; ++h) {
    std::vector<int32_t>& ancestors = state.ancestors[static_cast<size_t>(h)];
    ancestors.push_back(static_cast<int32_t>(state.rows + h));
    self.add({static_cast<int32_t>(h), 1, static_cast<int32_t>(self.key_rows.size()),
              static_cast<int32_t>(ancestors.size()), 0});
    self.key_rows.insert(self.key_rows.end(), ancestors.begin(), ancestors.end());
  }

  const Value out = decode_step(context, x, rows, self, cross, state.cache, {.first = state.rows});
  state.rows += hypotheses;
  ++state.position;
  return out;
}

Value Decoder::decode_step(const ForwardContext& context, const Value& x, const PackedRows& rows,
                           const AttentionSpans& self, const AttentionSpans& cross, DecodeCache& cache,
                           const CacheRows& written) const {
  const EncoderOutput source{cache.source, cross};
  return layers_.step(context, x, {rows, self, &source}, written, cache.rows);
}

}  // namespace tearless::engine
