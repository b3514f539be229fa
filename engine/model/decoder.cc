#include "engine/model/decoder.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/dropout.h"

namespace tearless::engine {
namespace {

std::string decoder_layer(int64_t layer, const char* sublayer) { return fmt::format("decoder.{}.{}", layer, sublayer); }

std::vector<std::string> cross_attention_names(const ModelOptions& options) {
  std::vector<std::string> names;
  for (int64_t l = 1; l <= options.decoder_layers; ++l) names.push_back(decoder_layer(l, "cross_attention"));
  return names;
}

/// Positions that the cache has room for at first.
constexpr int64_t kFirstPositions = 16;

void make_room(at::Tensor& past, int64_t filled, int64_t wanted) {
  if (wanted <= past.size(0)) return;
  at::Tensor larger = at::empty({std::max(wanted, 2 * past.size(0)), past.size(1)}, past.options());
  larger.slice(0, 0, filled).copy_(past.slice(0, 0, filled));
  past = larger;
}

}  // namespace

void append_decoder_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options) {
  for (int64_t l = 1; l <= options.decoder_layers; ++l) {
    append_self_attention_specs(specs, options, decoder_layer(l, "self_attention"));
    append_norm_specs(specs, options, decoder_layer(l, "self_attention"));
    append_cross_attention_specs(specs, options, decoder_layer(l, "cross_attention"));
    append_norm_specs(specs, options, decoder_layer(l, "cross_attention"));
    append_feed_forward_specs(specs, options, decoder_layer(l, "ffn"));
    append_norm_specs(specs, options, decoder_layer(l, "ffn"));
  }
  append_memory_specs(specs, options, cross_attention_names(options));
  append_final_norm_specs(specs, options, "decoder");
}

void DecoderState::reorder(const std::vector<int64_t>& parents) {
  std::vector<std::vector<int32_t>> next;
  for (const int64_t parent : parents) next.push_back(ancestors[static_cast<size_t>(parent)]);
  ancestors = std::move(next);
}

Decoder::Decoder(const Parameters& p, const ModelOptions& options, uint32_t seed)
    : placement_(options.placement),
      d_model_(options.d_model),
      memory_(p, cross_attention_names(options)),
      final_norm_(make_final_norm(p, options, "decoder")) {
  for (int64_t l = 1; l <= options.decoder_layers; ++l) {
    const std::string self = decoder_layer(l, "self_attention");
    const std::string cross = decoder_layer(l, "cross_attention");
    const std::string ffn = decoder_layer(l, "ffn");
    layers_.push_back({make_seam(p, options, seed, self), SelfAttention(p, options, seed, self),
                       make_seam(p, options, seed, cross), CrossAttention(p, options, seed, cross, l - 1),
                       make_seam(p, options, seed, ffn), FeedForward(p, options, seed, ffn)});
  }
}

Value Decoder::forward(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                       const Value& memory, const AttentionSpans& cross) const {
  // Under pre-norm only the query stream is normed below: the memory has passed the encoder's final norm.
  const Value projected = memory_.forward(step, memory);
  Residual stream(placement_, step, x, rows);
  for (const Layer& layer : layers_) {
    stream.leave(layer.self_seam, layer.self_attention.forward(step, stream.enter(layer.self_seam), self));
    stream.leave(layer.cross_seam,
                 layer.cross_attention.forward(step, stream.enter(layer.cross_seam), projected, cross));
    stream.leave(layer.ffn_seam, layer.ffn.forward(step, stream.enter(layer.ffn_seam), rows));
  }
  return stream.finish(final_norm_);
}

DecoderState Decoder::start(const Step& step, const Value& memory, int64_t hypotheses) const {
  DecoderState state;
  state.cache.memory = project(step, memory);
  for (size_t l = 0; l < layers_.size(); ++l) {
    state.cache.past.push_back(at::empty({hypotheses * kFirstPositions, 2 * d_model_}, memory.data().options()));
  }
  state.ancestors.resize(static_cast<size_t>(hypotheses));
  return state;
}

Value Decoder::advance(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& cross,
                       DecoderState& state) const {
  const int64_t hypotheses = x.data().size(0);
  for (at::Tensor& past : state.cache.past) make_room(past, state.rows, state.rows + hypotheses);
  AttentionSpans self;
  for (int64_t h = 0; h < hypotheses; ++h) {
    std::vector<int32_t>& ancestors = state.ancestors[static_cast<size_t>(h)];
    ancestors.push_back(static_cast<int32_t>(state.rows + h));
    self.add({static_cast<int32_t>(h), 1, static_cast<int32_t>(self.key_rows.size()),
              static_cast<int32_t>(ancestors.size()), 0});
    self.key_rows.insert(self.key_rows.end(), ancestors.begin(), ancestors.end());
  }

  const Value out = advance(step, x, rows, self, cross, state.cache, {.first = state.rows});
  state.rows += hypotheses;
  ++state.position;
  return out;
}

Value Decoder::advance(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& self,
                       const AttentionSpans& cross, DecoderCache& cache, const CacheRows& written) const {
  Residual stream(placement_, step, x, rows);
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    stream.leave(layer.self_seam, layer.self_attention.forward_cached(step, stream.enter(layer.self_seam), self,
                                                                      cache.past[l], written));
    stream.leave(layer.cross_seam,
                 layer.cross_attention.forward(step, stream.enter(layer.cross_seam), cache.memory, cross));
    stream.leave(layer.ffn_seam, layer.ffn.forward(step, stream.enter(layer.ffn_seam), rows));
  }
  return stream.finish(final_norm_);
}

}  // namespace tearless::engine
