// When numbers count as equal. Scores and their sums have rounding errors, and no count or verdict may depend on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace tearless::harness {

/// Relative to the greatest of the numbers that were added: a sum of a few hundred has a smaller error.
inline constexpr double kRounding = 1e-14;

inline double greatest_magnitude(std::span<const double> values) {
  double greatest = 0;
  for (const double value : values) greatest = std::max(greatest, std::abs(value));
  return greatest;
}

}  // namespace tearless::harness
