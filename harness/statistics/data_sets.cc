#include "harness/statistics/data_sets.h"

#include <algorithm>

namespace tearless::harness {

std::optional<double> p_on_all(std::span<const double> p) {
  if (p.empty()) return std::nullopt;
  return *std::ranges::max_element(p);
}

}  // namespace tearless::harness
