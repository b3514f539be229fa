#include "harness/statistics/data_sets.h"

#include <algorithm>

#include "harness/statistics/holm.h"

namespace tearless::harness {

std::optional<double> p_on_all(std::span<const double> p) {
  if (p.empty()) return std::nullopt;
  return *std::ranges::max_element(p);
}

size_t rejected_by_holm(std::span<const double> p, double level) {
  return static_cast<size_t>(std::ranges::count_if(holm(p), [level](double adjusted) { return adjusted <= level; }));
}

}  // namespace tearless::harness
