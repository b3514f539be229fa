// The cross-attention sublayer of the decoder: each row attends to the encoder output. The projections q, k, v and o
// have biases.
#include "engine/model/sublayer.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

class CrossAttention final : public Sublayer {
 public:
  /// Adds its keys and values to `source`.
  CrossAttention(const LayerScope& scope, SourceProjection& source)
      : d_model_(scope.options().d_model),
        heads_(scope.options().heads),
        query_(scope.linear("q", MatrixRole::kCrossQkv, d_model_, d_model_)),
        output_(scope.linear("o", MatrixRole::kAttentionOutput, d_model_, d_model_)),
        keys_(source.add(scope, {"k", "v"})),
        weight_dropout_(scope.dropout("weights", scope.options().dropout.attention)) {}

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override {
    const EncoderOutput& source = *inputs.encoder_output;
    const Value q = linear(context.tape, x, query_.weight, query_.bias);
    const Value heads = attention(context.tape, {q, 0}, {source.projected, keys_}, {source.projected, keys_ + d_model_},
                                  d_model_, heads_, source.spans, weight_dropout_.at(context));
    return linear(context.tape, heads, output_.weight, output_.bias);
  }

 private:
  int64_t d_model_, heads_;
  Linear query_, output_;  // [D, D]
  int64_t keys_;           // column of the projected encoder output; the values follow
  DropoutSite weight_dropout_;
};

}  // namespace

std::unique_ptr<SublayerKind> cross_attention_sublayer() {
  return std::make_unique<SublayerKind>(SublayerKind{.meaning = "from the decoder to the encoder output",
                                                     .reads_encoder_output = true,
                                                     .make = make_sublayer<CrossAttention>});
}

}  // namespace tearless::engine
