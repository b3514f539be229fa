// The self-attention sublayer. Its rows see each other as the spans say: all rows of the sentence, or in the decoder
// those before (causal). The projections q, k, v and o have biases. It keeps keys and values.
#include "engine/model/sublayer.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

class SelfAttention final : public Sublayer {
 public:
  SelfAttention(const LayerScope& scope, SourceProjection&)
      : d_model_(scope.options().d_model),
        heads_(scope.options().heads),
        qkv_(scope.linear({"q", "k", "v"}, MatrixRole::kSelfQkv, d_model_, d_model_)),
        output_(scope.linear("o", MatrixRole::kAttentionOutput, d_model_, d_model_)),
        weight_dropout_(scope.dropout("weights", scope.options().dropout.attention)) {}

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override {
    const Value qkv = linear(context.tape, x, qkv_.weight, qkv_.bias);  // [T, 3 D]
    const auto [rows, keys] = inputs.slot.extend(context.tape, {qkv, d_model_});
    const Value heads = attention(context.tape, {qkv, 0}, {rows, keys}, {rows, keys + d_model_}, d_model_, heads_,
                                  inputs.self, weight_dropout_.at(context));
    return linear(context.tape, heads, output_.weight, output_.bias);
  }

  int64_t slot_width() const override { return 2 * d_model_; }

 private:
  int64_t d_model_, heads_;
  Linear qkv_;     // [3 D, D]: q, k and v are one matmul
  Linear output_;  // [D, D]
  DropoutSite weight_dropout_;
};

}  // namespace

std::unique_ptr<SublayerKind> self_attention_sublayer() {
  return std::make_unique<SublayerKind>(SublayerKind{
      .meaning = "among the rows of a sentence, in the decoder those before", .make = make_sublayer<SelfAttention>});
}

}  // namespace tearless::engine
