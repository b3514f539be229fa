#include "engine/model/encoder.h"

#include <fmt/format.h>

namespace tearless::engine {
namespace {

std::string encoder_layer(int64_t layer, const char* sublayer) { return fmt::format("encoder.{}.{}", layer, sublayer); }

}  // namespace

void append_encoder_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options) {
  for (int64_t l = 1; l <= options.encoder_layers; ++l) {
    append_self_attention_specs(specs, options, encoder_layer(l, "self_attention"));
    append_norm_specs(specs, options, encoder_layer(l, "self_attention"));
    append_feed_forward_specs(specs, options, encoder_layer(l, "ffn"));
    append_norm_specs(specs, options, encoder_layer(l, "ffn"));
  }
  append_final_norm_specs(specs, options, "encoder");
}

Encoder::Encoder(const Parameters& p, const ModelOptions& options, uint32_t seed)
    : placement_(options.placement), final_norm_(make_final_norm(p, options, "encoder")) {
  for (int64_t l = 1; l <= options.encoder_layers; ++l) {
    const std::string attention = encoder_layer(l, "self_attention");
    const std::string ffn = encoder_layer(l, "ffn");
    layers_.push_back({make_seam(p, options, seed, attention), SelfAttention(p, options, seed, attention),
                       make_seam(p, options, seed, ffn), FeedForward(p, options, seed, ffn)});
  }
}

Value Encoder::forward(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& self) const {
  Residual stream(placement_, step, x, rows);
  for (const Layer& layer : layers_) {
    stream.leave(layer.attention_seam, layer.attention.forward(step, stream.enter(layer.attention_seam), self));
    stream.leave(layer.ffn_seam, layer.ffn.forward(step, stream.enter(layer.ffn_seam), rows));
  }
  return stream.finish(final_norm_);
}

}  // namespace tearless::engine
