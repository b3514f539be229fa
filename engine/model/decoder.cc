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

/// Initial capacity of the self-attention cache, in positions.
constexpr int64_t kFirstPositions = 16;

void make_room(at::Tensor& self_kv, int64_t filled, int64_t wanted) {
  if (wanted <= self_kv.size(0)) return;
  at::Tensor larger = at::empty({std::max(wanted, 2 * self_kv.size(0)), self_kv.size(1)}, self_kv.options());
  larger.slice(0, 0, filled).copy_(self_kv.slice(0, 0, filled));
  self_kv = larger;
}

}  // namespace

void append_decoder_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options) {
  for (int64_t l = 1; l <= options.decoder_layers; ++l) {
    append_self_attention_specs(specs, options, decoder_layer(l, "self_attention"));
    append_norm_specs(specs, options, decoder_layer(l, "self_attention"), sublayer_site(options, true, false));
    append_cross_attention_specs(specs, options, decoder_layer(l, "cross_attention"));
    append_norm_specs(specs, options, decoder_layer(l, "cross_attention"), sublayer_site(options, true, false));
    append_feed_forward_specs(specs, options, decoder_layer(l, "ffn"));
    append_norm_specs(specs, options, decoder_layer(l, "ffn"),
                      sublayer_site(options, true, l == options.decoder_layers));
  }
  append_cross_kv_specs(specs, options, cross_attention_names(options));
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
      cross_kv_projection_(p, cross_attention_names(options)),
      final_norm_(make_final_norm(p, options, "decoder")) {
  for (int64_t l = 1; l <= options.decoder_layers; ++l) {
    const std::string self = decoder_layer(l, "self_attention");
    const std::string cross = decoder_layer(l, "cross_attention");
    const std::string ffn = decoder_layer(l, "ffn");
    layers_.push_back(
        {make_sublayer_connection(p, options, seed, self, sublayer_site(options, true, false)),
         SelfAttention(p, options, seed, self),
         make_sublayer_connection(p, options, seed, cross, sublayer_site(options, true, false)),
         CrossAttention(p, options, seed, cross, l - 1),
         make_sublayer_connection(p, options, seed, ffn, sublayer_site(options, true, l == options.decoder_layers)),
         FeedForward(p, options, seed, ffn)});
  }
}

Value Decoder::forward(const ForwardContext& context, const Value& x, const PackedRows& rows,
                       const AttentionSpans& self, const Value& encoder_output, const AttentionSpans& cross) const {
  // Only the query stream is normed below. Under `pre` the encoder output has passed the encoder's final norm.
  const Value projected = cross_kv_projection_.forward(context, encoder_output);
  Residual stream(placement_, context, x, rows);
  for (const Layer& layer : layers_) {
    stream.add(layer.self_connection, layer.self_attention.forward(context, stream.input(layer.self_connection), self));
    stream.add(layer.cross_connection,
               layer.cross_attention.forward(context, stream.input(layer.cross_connection), projected, cross));
    stream.add(layer.ffn_connection, layer.ffn.forward(context, stream.input(layer.ffn_connection), rows));
  }
  return stream.output(final_norm_);
}

DecoderState Decoder::start(const ForwardContext& context, const Value& encoder_output, int64_t hypotheses) const {
  DecoderState state;
  state.cache.cross_kv = project(context, encoder_output);
  for (size_t l = 0; l < layers_.size(); ++l) {
    state.cache.self_kv.push_back(
        at::empty({hypotheses * kFirstPositions, 2 * d_model_}, encoder_output.data().options()));
  }
  state.ancestors.resize(static_cast<size_t>(hypotheses));
  return state;
}

Value Decoder::advance(const ForwardContext& context, const Value& x, const PackedRows& rows,
                       const AttentionSpans& cross, DecoderState& state) const {
  const int64_t hypotheses = x.data().size(0);
  for (at::Tensor& self_kv : state.cache.self_kv) make_room(self_kv, state.rows, state.rows + hypotheses);
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
                           const AttentionSpans& self, const AttentionSpans& cross, KvCache& cache,
                           const CacheRows& written) const {
  Residual stream(placement_, context, x, rows);
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    stream.add(layer.self_connection, layer.self_attention.forward_cached(context, stream.input(layer.self_connection),
                                                                          self, cache.self_kv[l], written));
    stream.add(layer.cross_connection,
               layer.cross_attention.forward(context, stream.input(layer.cross_connection), cache.cross_kv, cross));
    stream.add(layer.ffn_connection, layer.ffn.forward(context, stream.input(layer.ffn_connection), rows));
  }
  return stream.output(final_norm_);
}

}  // namespace tearless::engine
