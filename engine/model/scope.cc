#include "engine/model/scope.h"

#include <string_view>

namespace tearless::engine {

Scope Scope::inside(const std::string& part) const {
  Scope scope = *this;
  scope.enter(part);
  return scope;
}

Value Scope::declare(const char* part, std::vector<int64_t> shape, const Initial& initial) const {
  return parameters_.declare({named(part), std::move(shape), initial});
}

Linear Scope::linear(int64_t out, int64_t in, const Initial& weight, const Initial& bias) const {
  const Value matrix = declare("weight", {out, in}, weight);
  return {matrix, declare("bias", {out}, bias)};
}

NormOp Scope::norm(const ChosenNorm& norm, int64_t width, double gain_deviation) const {
  const auto& [kind, denominator] = norm;
  Value gain, bias;
  if (const int64_t size = kind.gain_size(width); size > 0) {
    const double start = kind.initial_gain(width);
    Initial initial = {Initial::Kind::kConstant, start};
    if (gain_deviation > 0) initial = {.kind = Initial::Kind::kNormal, .scale = gain_deviation, .mean = start};
    gain = declare("norm.gain", {size}, initial);
  }
  if (kind.bias) bias = declare("norm.bias", {width}, {});
  return kind.make(std::move(gain), std::move(bias), denominator, width);
}

std::string learned_length(const ParameterSpec& spec) {
  constexpr std::string_view kSuffix = ".norm.gain";
  if (!spec.name.ends_with(kSuffix) || spec.size() != 1) return "";
  return "g." + spec.name.substr(0, spec.name.size() - kSuffix.size());
}

std::vector<std::pair<std::string, double>> learned_lengths(const Parameters& parameters) {
  std::vector<std::pair<std::string, double>> lengths;
  for (const ParameterSpec& spec : parameters.specs()) {
    const std::string name = learned_length(spec);
    if (!name.empty()) lengths.emplace_back(name, parameters.get(spec.name).data().item<double>());
  }
  return lengths;
}

}  // namespace tearless::engine
