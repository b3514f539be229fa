#include "engine/train/observe.h"

#include <ATen/TensorOperators.h>

#include <cmath>

namespace tearless::engine {
namespace {

/// Σ x² of each group of a buffer that is laid out as the parameters are.
std::map<std::string, double> squares_by_group(const Parameters& parameters, const at::Tensor& buffer) {
  std::map<std::string, double> squares;
  int64_t begin = 0;
  for (const ParameterSpec& spec : parameters.specs()) {
    const at::Tensor part = buffer.slice(0, begin, begin + spec.size()).to(at::kDouble);
    squares[parameter_group(spec.name)] += part.dot(part).item<double>();
    begin += spec.size();
  }
  return squares;
}

}  // namespace

std::string parameter_group(const std::string& parameter) {
  std::string group = parameter;
  for (const char* last : {".weight", ".bias", ".gain"}) {
    if (group.ends_with(last)) group.resize(group.rfind('.'));
  }
  size_t end = 0;
  for (int parts = 0; parts < 3 && end != std::string::npos; ++parts) end = group.find('.', end + (parts > 0));
  return group.substr(0, end);
}

ObservedGroups::ObservedGroups(Parameters& parameters, double divisor)
    : parameters_(parameters),
      gradient_squares_(squares_by_group(parameters, parameters.gradients() / divisor)),
      before_(parameters.values().clone()) {}

void ObservedGroups::add_metrics(std::map<std::string, double>& metrics) const {
  for (const auto& [group, squares] : gradient_squares_) metrics["grad_norm." + group] = std::sqrt(squares);
  const auto weights = squares_by_group(parameters_, before_);
  for (const auto& [group, squares] : squares_by_group(parameters_, parameters_.values() - before_)) {
    if (weights.at(group) > 0) metrics["update_ratio." + group] = std::sqrt(squares / weights.at(group));
  }
}

}  // namespace tearless::engine
