#include "engine/model/self_attention.h"

#include "engine/ops/linear.h"

namespace tearless::engine {

SelfAttention::SelfAttention(const LayerScope& scope)
    : d_model_(scope.options().d_model),
      heads_(scope.options().heads),
      qkv_(scope.linear({"q", "k", "v"}, MatrixRole::kSelfQkv, d_model_, d_model_)),
      output_(scope.linear("o", MatrixRole::kAttentionOutput, d_model_, d_model_)),
      weight_dropout_(scope.dropout("weights", scope.options().dropout.attention)) {}

Value SelfAttention::forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const {
  const Value qkv = linear(context.tape, x, qkv_.weight, qkv_.bias);  // [T, 3 D]
  const Value heads = attention(context.tape, {qkv, 0}, {qkv, d_model_}, {qkv, 2 * d_model_}, d_model_, heads_,
                                inputs.self, weight_dropout_.at(context));
  return linear(context.tape, heads, output_.weight, output_.bias);
}

Value SelfAttention::step(const ForwardContext& context, const Value& x, const SublayerInputs& inputs,
                          const CacheRows& written, at::Tensor& cache) const {
  const Value qkv = linear(context.tape, x, qkv_.weight, qkv_.bias);  // [N, 3 D]
  const at::Tensor keys_and_values = qkv.data().slice(1, d_model_, 3 * d_model_);
  if (written.indices.defined()) {
    cache.index_copy_(0, written.indices, keys_and_values);
  } else {
    cache.slice(0, written.first, written.first + x.data().size(0)).copy_(keys_and_values);
  }
  const Value cached(cache);
  const Value heads =
      attention(context.tape, {qkv, 0}, {cached, 0}, {cached, d_model_}, d_model_, heads_, inputs.self, Dropout::off());
  return linear(context.tape, heads, output_.weight, output_.bias);
}

}  // namespace tearless::engine
