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

/// Whether `a` is below `b`, and not by the rounding errors of numbers up to `magnitude` alone. A number exactly at a
/// documented limit is inside: 50.00 − 49.9 is no more than 0.1, though not in binary fractions.
inline bool is_less(double a, double b, double magnitude = 0) {
  return a < b - kRounding * std::max({std::abs(a), std::abs(b), magnitude});
}

}  // namespace tearless::harness
