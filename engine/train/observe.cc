#include "engine/train/observe.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "engine/ops/adam.h"

namespace tearless::engine {
namespace {

/// The first `count` parts of a name, or all of them.
std::string first_parts(const std::string& name, int count) {
  size_t end = 0;
  for (int parts = 0; parts < count && end != std::string::npos; ++parts) end = name.find('.', end + (parts > 0));
  return name.substr(0, end);
}

}  // namespace

std::string parameter_group(const std::string& parameter) {
  std::string group = parameter;
  for (const char* last : {".weight", ".bias", ".gain"}) {
    if (group.ends_with(last)) group.resize(group.rfind('.'));
  }
  return first_parts(group, 3);
}

std::string layer_of(const std::string& name) {
  std::string layer = first_parts(name, 2);
  const size_t number = layer.find('.') + 1;
  const bool in_layer = number > 0 && number < layer.size() &&
                        std::all_of(layer.begin() + static_cast<std::ptrdiff_t>(number), layer.end(),
                                    [](unsigned char c) { return std::isdigit(c); });
  return in_layer ? layer : "";
}

ParameterGroups::ParameterGroups(const Parameters& parameters, std::string (*group_of)(const std::string&)) {
  int64_t begin = 0;
  for (const ParameterSpec& spec : parameters.specs()) {
    const int64_t end = begin + spec.size();
    std::string group = group_of(spec.name);
    if (!ranges_.empty() && ranges_.back().group == group && ranges_.back().end == begin) {
      ranges_.back().end = end;
    } else if (!group.empty()) {
      ranges_.push_back({std::move(group), begin, end});
    }
    begin = end;
  }
}

std::map<std::string, double> ParameterGroups::norms(const at::Tensor& buffer) const {
  std::map<std::string, double> norms;
  for (const Range& range : ranges_) {
    double& norm = norms[range.group];
    norm = std::hypot(norm, global_norm(buffer.slice(0, range.begin, range.end)));
  }
  return norms;
}

ObservedGroups::ObservedGroups(Parameters& parameters, double divisor)
    : parameters_(parameters),
      groups_(parameters, parameter_group),
      divisor_(divisor),
      gradient_norms_(groups_.norms(parameters.gradients())),
      before_(parameters.values().clone()) {}

void ObservedGroups::add_metrics(std::map<std::string, double>& metrics) const {
  for (const auto& [group, norm] : gradient_norms_) metrics["grad_norm." + group] = norm / divisor_;
  const auto weights = groups_.norms(before_);
  for (const auto& [group, norm] : groups_.norms(parameters_.values() - before_)) {
    if (weights.at(group) > 0) metrics["update_ratio." + group] = norm / weights.at(group);
  }
}

void SumVariances::see(Tape&, const std::string& sublayer, StreamPoint point, const Value& rows) {
  if (point != StreamPoint::kSum) return;
  ElementVariance variance;
  variance.add(rows.data());
  variances_[sublayer] = variance.value();
}

}  // namespace tearless::engine
