#include "engine/model/scope.h"

namespace tearless::engine {

Scope Scope::inside(const std::string& part) const {
  Scope scope = *this;
  scope.name_ = named(part);
  return scope;
}

Scope Scope::in_stack(Stack stack) const {
  Scope scope = inside(stack == Stack::kEncoder ? "encoder" : "decoder");
  scope.stack_ = stack;
  return scope;
}

Scope Scope::in_layer(int64_t number) const {
  Scope scope = inside(std::to_string(number));
  scope.layer_ = number;
  return scope;
}

Scope Scope::in_sublayer(const std::string& name) const { return inside(name); }

Value Scope::declare(const char* part, std::vector<int64_t> shape, const Initial& initial) const {
  return parameters_.declare({named(part), std::move(shape), initial});
}

ParameterSpec Scope::weight(const char* part, MatrixRole role, int64_t out, int64_t in) const {
  return {named(part) + ".weight", {out, in}, initial_matrix(options_, {stack_, layer_, role}, in, out)};
}

ParameterSpec Scope::bias(const char* part, int64_t out) const { return {named(part) + ".bias", {out}, {}}; }

Linear Scope::linear(const char* part, MatrixRole role, int64_t out, int64_t in) const {
  return linear({part}, role, out, in);
}

Linear Scope::linear(std::initializer_list<const char*> parts, MatrixRole role, int64_t out, int64_t in) const {
  std::vector<ParameterSpec> weights, biases;
  for (const char* part : parts) {
    weights.push_back(weight(part, role, out, in));
    biases.push_back(bias(part, out));
  }
  const Value stacked = parameters_.declare_joined(std::move(weights));
  return {stacked, parameters_.declare_joined(std::move(biases))};
}

}  // namespace tearless::engine
