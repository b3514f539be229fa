// The feed-forward sublayer: W₂ · drop(ReLU(W₁ x + b₁)) + b₂ (docs/spec/knobs.md §4.1).
#include "engine/model/sublayer.h"
#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

class FeedForward final : public Sublayer {
 public:
  FeedForward(const LayerScope& scope, SourceProjection&)
      : inner_(scope.linear("w1", MatrixRole::kFeedForward, scope.options().d_ff, scope.options().d_model)),
        outer_(scope.linear("w2", MatrixRole::kFeedForward, scope.options().d_model, scope.options().d_ff)),
        dropout_(scope.dropout("relu", scope.options().dropout.relu)) {}

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override {
    const Value inner = linear(context.tape, x, inner_.weight, Value());  // [T, F]
    const Value active = bias_relu_dropout(context.tape, inner, inner_.bias, dropout_.at(context), inputs.rows);
    return linear(context.tape, active, outer_.weight, outer_.bias);
  }

 private:
  Linear inner_;  // [F, D]
  Linear outer_;  // [D, F]
  DropoutSite dropout_;
};

}  // namespace

std::unique_ptr<SublayerKind> ffn_sublayer() {
  return std::make_unique<SublayerKind>(
      SublayerKind{.meaning = "two linear maps with a ReLU between them", .make = make_sublayer<FeedForward>});
}

}  // namespace tearless::engine
