#include "engine/model/relative_self_attention.h"

#include <utility>

#include "base/error.h"
#include "engine/ops/linear.h"
#include "engine/ops/relative_attention.h"

namespace tearless::engine {

RelativeSelfAttention::RelativeSelfAttention(const LayerScope& scope, SharedQueries shared)
    : d_model_(scope.options().d_model),
      heads_(scope.options().heads),
      shared_(std::move(shared)),
      weight_dropout_(scope.dropout("weights", scope.options().dropout.attention)) {
  const auto matrix = [&](const char* part, MatrixRole role) { return scope.weight(part, role, d_model_, d_model_); };
  Parameters& parameters = scope.parameters();
  query_ = parameters.declare(matrix("q", MatrixRole::kSelfQkv));
  key_value_ = parameters.declare_joined({matrix("k", MatrixRole::kSelfQkv), matrix("v", MatrixRole::kSelfQkv)});
  distance_ = parameters.declare(matrix("r", MatrixRole::kSelfQkv));
  output_ = parameters.declare(matrix("o", MatrixRole::kAttentionOutput));
}

Value RelativeSelfAttention::forward(const ForwardContext& context, const Value& x,
                                     const SublayerInputs& inputs) const {
  const Slot& slot = inputs.slot;
  require(inputs.distances && slot.rows().defined(), "relative attention: without distances or a state");
  Tape& tape = context.tape;
  const Value queries = linear(tape, x, query_, {});
  const bool keeps_keys = slot.rows().size(1) == constant_slot_width();
  const Value keys = keeps_keys ? slot.extend(tape, {linear(tape, x, key_value_, {}), 0}).rows
                                : slot.extend_linear(tape, x, key_value_);         // [capacity, 2 D]
  const Value distances = linear(tape, inputs.distances->vectors, distance_, {});  // [P, D]
  const Value heads =
      relative_attention(tape, {queries, 0}, {keys, 0}, {keys, d_model_}, distances, shared_.u, shared_.w, d_model_,
                         heads_, inputs.self, inputs.distances->window, weight_dropout_.at(context));
  return linear(tape, heads, output_, {});
}

}  // namespace tearless::engine
