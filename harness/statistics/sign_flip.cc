#include "harness/statistics/sign_flip.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tearless::harness {
namespace {

/// Σ ±dᵢ with a minus where the bit is 1.
double sum_with_signs(std::span<const double> differences, uint64_t minus) {
  double sum = 0;
  for (const double difference : differences) {
    sum += minus & 1 ? -difference : difference;
    minus >>= 1;
  }
  return sum;
}

}  // namespace

std::optional<double> sign_flip_p(std::span<const SeedValue> a, std::span<const SeedValue> b,
                                  const Sampling& sampling) {
  const SeedPairs pairs = pairs_of(a, b);
  const size_t n = pairs.size();
  if (n == 0) return std::nullopt;
  const std::vector<double> differences = pairs.differences();
  const double rounding = static_cast<double>(n) * pairs.rounding();
  const double limit = std::abs(std::accumulate(differences.begin(), differences.end(), 0.0)) - rounding;
  int64_t count = 0;
  if (n <= kMaxExactSignFlips) {
    // The sign of the last is not flipped: to flip all signs changes no magnitude.
    const uint64_t choices = uint64_t{1} << (n - 1);
    for (uint64_t minus = 0; minus < choices; ++minus) count += std::abs(sum_with_signs(differences, minus)) >= limit;
    return static_cast<double>(count) / static_cast<double>(choices);
  }
  Random random(sampling.seed);
  for (int64_t i = 0; i < sampling.samples; ++i) {
    double sum = 0;
    for (size_t first = 0; first < n; first += 64)
      sum += sum_with_signs(std::span(differences).subspan(first, std::min<size_t>(64, n - first)), random.bits());
    count += std::abs(sum) >= limit;
  }
  return static_cast<double>(count + 1) / static_cast<double>(sampling.samples + 1);
}

double least_sign_flip_p(size_t n, const Sampling& sampling) {
  if (n == 0) return 1;
  return n <= kMaxExactSignFlips ? std::ldexp(1.0, 1 - static_cast<int>(n))
                                 : 1 / static_cast<double>(sampling.samples + 1);
}

}  // namespace tearless::harness
