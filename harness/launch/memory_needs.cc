#include "harness/launch/memory_needs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/memory_size.h"

namespace tearless::harness {
namespace {

std::string with_margin(int64_t bytes, const char* source, double margin) {
  return fmt::format("{} {}, with a margin of {:.0f} %", memory_text(bytes), source, 100 * (margin - 1));
}

}  // namespace

void MemoryNeeds::learn_peak(const std::string& resource_class, int64_t bytes) {
  Known& known = classes_[resource_class];
  known.peak = std::max(known.peak.value_or(0), bytes);
  known.used = std::max(known.used, bytes);
}

void MemoryNeeds::learn_use(const std::string& resource_class, int64_t bytes) {
  Known& known = classes_[resource_class];
  known.used = std::max(known.used, bytes);
}

void MemoryNeeds::ran_out(const std::string& resource_class, int64_t reserved, bool shared) {
  if (!shared) return;
  Known& known = classes_[resource_class];
  known.raised = std::max(known.raised, scaled(reserved, kGrowth));
}

std::optional<int64_t> MemoryNeeds::peak_of(const std::string& resource_class) const {
  const auto found = classes_.find(resource_class);
  return found == classes_.end() ? std::nullopt : found->second.peak;
}

MemoryNeeds::Answer MemoryNeeds::of(const std::string& resource_class, const Said& said) const {
  const auto found = classes_.find(resource_class);
  const Known known = found == classes_.end() ? Known{} : found->second;

  Answer answer{.bytes = std::nullopt, .why = "not known"};
  const auto measured = scaled(known.used, kPeakMargin);
  const auto estimated = scaled(said.estimate.value_or(0), kEstimateMargin);
  if (said.declared && known.used <= *said.declared) {
    answer = {.bytes = said.declared, .why = fmt::format("{} declared", memory_text(*said.declared))};
  } else if (known.peak || said.declared || (said.estimate && measured > estimated)) {
    answer = {.bytes = measured, .why = with_margin(known.used, "measured", kPeakMargin)};
    if (said.declared) answer.why += fmt::format(", more than the {} declared", memory_text(*said.declared));
  } else if (said.estimate) {
    answer = {.bytes = estimated, .why = with_margin(*said.estimate, "estimated", kEstimateMargin)};
  }
  if (known.raised > answer.bytes.value_or(0)) {
    answer = {
        .bytes = known.raised,
        .why = fmt::format("{}, because a run with less ran out of memory beside others", memory_text(known.raised))};
  }
  return answer;
}

}  // namespace tearless::harness
