#include "engine/model/encoder.h"

#include <fmt/format.h>

namespace tearless::engine {
namespace {

std::string encoder_layer(int64_t layer, const char* sublayer) { return fmt::format("encoder.{}.{}", layer, sublayer); }

}  // namespace

void append_encoder_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options) {
  for (int64_t l = 1; l <= options.encoder_layers; ++l) {
    append_self_attention_specs(specs, options, encoder_layer(l, "self_attention"));
    append_norm_specs(specs, options, encoder_layer(l, "self_attention"), sublayer_site(options, false, false));
    append_feed_forward_specs(specs, options, encoder_layer(l, "ffn"));
    append_norm_specs(specs, options, encoder_layer(l, "ffn"),
                      sublayer_site(options, false, l == options.encoder_layers));
  }
  append_final_norm_specs(specs, options, "encoder");
}

Encoder::Encoder(const Parameters& p, const ModelOptions& options, uint32_t seed)
    : placement_(options.placement), final_norm_(make_final_norm(p, options, "encoder")) {
  for (int64_t l = 1; l <= options.encoder_layers; ++l) {
    const std::string attention = encoder_layer(l, "self_attention");
    const std::string ffn = encoder_layer(l, "ffn");
    layers_.push_back(
        {make_sublayer_connection(p, options, seed, attention, sublayer_site(options, false, false)),
         SelfAttention(p, options, seed, attention),
         make_sublayer_connection(p, options, seed, ffn, sublayer_site(options, false, l == options.encoder_layers)),
         FeedForward(p, options, seed, ffn)});
  }
}

Value Encoder::forward(const ForwardContext& context, const Value& x, const PackedRows& rows,
                       const AttentionSpans& self) const {
  Residual stream(placement_, context, x, rows);
  for (const Layer& layer : layers_) {
    stream.add(layer.attention_connection,
               layer.attention.forward(context, stream.input(layer.attention_connection), self));
    stream.add(layer.ffn_connection, layer.ffn.forward(context, stream.input(layer.ffn_connection), rows));
  }
  return stream.output(final_norm_);
}

}  // namespace tearless::engine
