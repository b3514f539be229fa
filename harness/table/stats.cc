#include "harness/table/stats.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tearless::harness {
namespace {

constexpr long double kRounding = 1e-14L;  // relative to the greatest value: a sum of a few hundred has less

double greatest_magnitude(std::span<const double> values) {
  double greatest = 0;
  for (const double value : values) greatest = std::max(greatest, std::abs(value));
  return greatest;
}

// Neumaier's sum: `lost` is what the additions lost, so that values that cancel leave the others exact.
long double centre_of(std::span<const double> values) {
  long double sum = 0, lost = 0;
  for (const double value : values) {
    const long double next = sum + value;
    lost += std::abs(sum) >= std::abs(value) ? (sum - next) + value : (value - next) + sum;
    sum = next;
  }
  return (sum + lost) / static_cast<long double>(values.size());
}

}  // namespace

std::optional<double> mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const long double centre = centre_of(values);
  return std::abs(centre) <= kRounding * greatest_magnitude(values) ? 0 : static_cast<double>(centre);
}

std::optional<double> sample_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const long double range = static_cast<long double>(*greatest) - *least;
  if (range <= kRounding * greatest_magnitude(values)) return 0;
  const long double centre = centre_of(values);
  long double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return static_cast<double>(std::sqrt(squares / static_cast<long double>(values.size() - 1)));
}

std::optional<double> lower_median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace tearless::harness
