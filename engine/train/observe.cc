#include "engine/train/observe.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "base/words.h"
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

std::string observed_group(const ObserveOptions& observe, const std::string& parameter) {
  std::string group = observe.group_by == ObserveOptions::GroupBy::kLayer ? layer_of(parameter) : "";
  if (group.empty()) group = parameter_group(parameter);
  if (observe.only.empty()) return group;
  const std::vector<std::string> only = list_items(observe.only);
  return std::ranges::find(only, group) == only.end() ? "" : group;
}

void check_observed_groups(const ObserveOptions& observe, const Parameters& model) {
  const bool chosen = !observe.only.empty() || observe.group_by != ObserveOptions::GroupBy::kSublayer;
  if (!chosen) return;
  if (!observe.of_groups()) {
    fail(
        "observe.{} chooses groups of parameters, but nothing of them is logged; set observe.groups or "
        "observe.window_means, or remove it",
        observe.only.empty() ? "group_by" : "only");
  }
  if (observe.only.empty()) return;
  ObserveOptions any = observe;
  any.only.clear();
  std::vector<std::string> known;
  for (const ParameterSpec& spec : model.specs()) {
    std::string group = observed_group(any, spec.name);
    if (std::ranges::find(known, group) == known.end()) known.push_back(std::move(group));
  }
  for (const std::string& group : list_items(observe.only)) {
    if (std::ranges::find(known, group) != known.end()) continue;
    fail("observe.only = \"{}\": the model has no group \"{}\"{}; write them as \"a, b\", each one of: {}",
         observe.only, group, did_you_mean(group, known), some_of(known, 20));
  }
}

ParameterGroups::ParameterGroups(const Parameters& parameters,
                                 const std::function<std::string(const std::string&)>& group_of) {
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

// hypot() as it is called since glibc 2.35 gives the same bits; by its older name the program also starts on 2.34.
#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
#endif

std::map<std::string, double> ParameterGroups::norms(const at::Tensor& buffer) const {
  std::map<std::string, double> norms;
  for (const Range& range : ranges_) {
    double& norm = norms[range.group];
    norm = std::hypot(norm, global_norm(buffer.slice(0, range.begin, range.end)));
  }
  return norms;
}

void ObservedStep::add_metrics(std::map<std::string, double>& metrics) const {
  const auto weights = groups_.norms(before_);
  for (const auto& [group, norm] : groups_.norms(parameters_.values() - before_)) {
    metrics["step_norm." + group] = norm;
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
