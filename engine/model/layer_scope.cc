#include "engine/model/layer_scope.h"

#include <utility>
#include <vector>

namespace tearless::engine {

LayerScope LayerScope::in_stack(Stack stack) const {
  LayerScope scope = in_sublayer(stack == Stack::kEncoder ? "encoder" : "decoder");
  scope.stack_ = stack;
  return scope;
}

LayerScope LayerScope::in_layer(int64_t number) const {
  LayerScope scope = in_sublayer(std::to_string(number));
  scope.layer_ = number;
  return scope;
}

LayerScope LayerScope::in_sublayer(const std::string& name) const {
  LayerScope scope = *this;
  scope.enter(name);
  return scope;
}

ParameterSpec LayerScope::weight(const char* part, MatrixRole role, int64_t out, int64_t in) const {
  return {named(part) + ".weight", {out, in}, initial_matrix(options_, {stack_, layer_, role}, in, out)};
}

ParameterSpec LayerScope::bias(const char* part, MatrixRole role, int64_t out, int64_t in) const {
  return {named(part) + ".bias", {out}, initial_bias(options_, role, in)};
}

Linear LayerScope::linear(const char* part, MatrixRole role, int64_t out, int64_t in) const {
  return linear({part}, role, out, in);
}

Linear LayerScope::linear(std::initializer_list<const char*> parts, MatrixRole role, int64_t out, int64_t in) const {
  std::vector<ParameterSpec> weights, biases;
  for (const char* part : parts) {
    weights.push_back(weight(part, role, out, in));
    biases.push_back(bias(part, role, out, in));
  }
  const Value stacked = parameters().declare_joined(std::move(weights));
  return {stacked, parameters().declare_joined(std::move(biases))};
}

}  // namespace tearless::engine
