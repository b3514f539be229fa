#include "engine/model/feed_forward.h"

#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/linear.h"

namespace tearless::engine {

FeedForward::FeedForward(const LayerScope& scope)
    : inner_(scope.linear("w1", MatrixRole::kFeedForward, scope.options().d_ff, scope.options().d_model)),
      outer_(scope.linear("w2", MatrixRole::kFeedForward, scope.options().d_model, scope.options().d_ff)),
      dropout_(scope.dropout("relu", scope.options().dropout.relu)) {}

Value FeedForward::forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const {
  const Value inner = linear(context.tape, x, inner_.weight, Value());  // [T, F]
  const Value active = bias_relu_dropout(context.tape, inner, inner_.bias, dropout_.at(context), inputs.rows);
  return linear(context.tape, active, outer_.weight, outer_.bias);
}

}  // namespace tearless::engine
