#include "engine/model/cross_attention.h"

#include "engine/ops/linear.h"

namespace tearless::engine {

int64_t SourceProjection::add(const LayerScope& scope, std::initializer_list<const char*> parts) {
  const int64_t d = scope.options().d_model;
  const int64_t first = columns_;
  for (const char* part : parts) {
    weights_.push_back(scope.weight(part, MatrixRole::kCrossQkv, d, d));
    biases_.push_back(scope.bias(part, d, d));
    columns_ += d;
  }
  return first;
}

void SourceProjection::declare(Parameters& parameters) {
  const Value weight = parameters.declare_joined(std::move(weights_));
  maps_ = {weight, parameters.declare_joined(std::move(biases_))};
}

Value SourceProjection::forward(const ForwardContext& context, const Value& encoder_output) const {
  return linear(context.tape, encoder_output, maps_.weight, maps_.bias);
}

CrossAttention::CrossAttention(const LayerScope& scope, SourceProjection& source)
    : d_model_(scope.options().d_model),
      heads_(scope.options().heads),
      query_(scope.linear("q", MatrixRole::kCrossQkv, d_model_, d_model_)),
      output_(scope.linear("o", MatrixRole::kAttentionOutput, d_model_, d_model_)),
      keys_(source.add(scope, {"k", "v"})),
      weight_dropout_(scope.dropout("weights", scope.options().dropout.attention)) {}

Value CrossAttention::forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const {
  const EncoderOutput& source = *inputs.encoder_output;
  const Value q = linear(context.tape, x, query_.weight, query_.bias);
  const Value heads = attention(context.tape, {q, 0}, {source.projected, keys_}, {source.projected, keys_ + d_model_},
                                d_model_, heads_, source.spans, weight_dropout_.at(context));
  return linear(context.tape, heads, output_.weight, output_.bias);
}

}  // namespace tearless::engine
