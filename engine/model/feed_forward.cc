#include "engine/model/feed_forward.h"

#include "engine/model/initialisation.h"
#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/linear.h"

namespace tearless::engine {

void append_feed_forward_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                               const std::string& name) {
  const int64_t d = options.d_model;
  const int64_t f = options.d_ff;
  specs.push_back({name + ".w1.weight", {f, d}, initial_matrix(options, MatrixRole::kFeedForward, d, f)});
  specs.push_back({name + ".w1.bias", {f}, {}});
  specs.push_back({name + ".w2.weight", {d, f}, initial_matrix(options, MatrixRole::kFeedForward, f, d)});
  specs.push_back({name + ".w2.bias", {d}, {}});
}

FeedForward::FeedForward(const Parameters& p, const ModelOptions& options, uint32_t dropout_seed,
                         const std::string& name)
    : w1_(p.get(name + ".w1.weight")),
      b1_(p.get(name + ".w1.bias")),
      w2_(p.get(name + ".w2.weight")),
      b2_(p.get(name + ".w2.bias")),
      dropout_(options.dropout.relu, dropout_seed, name + ".relu") {}

Value FeedForward::forward(const ForwardContext& context, const Value& x, const PackedRows& rows) const {
  const Value inner = linear(context.tape, x, w1_, Value());  // [T, F]
  return linear(context.tape, bias_relu_dropout(context.tape, inner, b1_, dropout_.at(context), rows), w2_, b2_);
}

}  // namespace tearless::engine
