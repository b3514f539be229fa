#include "harness/devices/memory_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/devices/memory_size.h"

namespace tearless::harness {
namespace {

int64_t scaled(int64_t bytes, double factor) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * factor));
}

std::string with_margin(int64_t bytes, const char* source, double margin) {
  return fmt::format("{} {}, with a margin of {:.0f} %", memory_text(bytes), source, 100 * (margin - 1));
}

}  // namespace

void MemoryNeeds::learn_peak(const std::string& shape, int64_t bytes) {
  Known& known = shapes_[shape];
  known.peak = std::max(known.peak.value_or(0), bytes);
  known.used = std::max(known.used, bytes);
}

void MemoryNeeds::learn_use(const std::string& shape, int64_t bytes) {
  Known& known = shapes_[shape];
  known.used = std::max(known.used, bytes);
}

void MemoryNeeds::ran_out(const std::string& shape, int64_t reserved, bool shared) {
  if (!shared) return;
  Known& known = shapes_[shape];
  known.raised = std::max(known.raised, scaled(reserved, kGrowth));
}

MemoryNeeds::Answer MemoryNeeds::of(const std::string& shape) const {
  const auto found = shapes_.find(shape);
  if (found == shapes_.end()) return {.bytes = std::nullopt, .why = "not known"};
  const Known& known = found->second;

  Answer answer{.bytes = std::nullopt, .why = "not known"};
  const auto measured = scaled(known.used, kPeakMargin);
  const auto estimated = scaled(known.estimate.value_or(0), kEstimateMargin);
  if (known.declared && known.used <= *known.declared) {
    answer = {.bytes = known.declared, .why = fmt::format("{} declared", memory_text(*known.declared))};
  } else if (known.peak || known.declared || (known.estimate && measured > estimated)) {
    answer = {.bytes = measured, .why = with_margin(known.used, "measured", kPeakMargin)};
    if (known.declared) answer.why += fmt::format(", more than the {} declared", memory_text(*known.declared));
  } else if (known.estimate) {
    answer = {.bytes = estimated, .why = with_margin(*known.estimate, "estimated", kEstimateMargin)};
  }
  if (known.raised > answer.bytes.value_or(0)) {
    answer = {
        .bytes = known.raised,
        .why = fmt::format("{}, because a run with less ran out of memory beside others", memory_text(known.raised))};
  }
  return answer;
}

}  // namespace tearless::harness
