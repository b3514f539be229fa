#include "harness/statistics/stats.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "harness/statistics/rounding.h"

namespace tearless::harness {
namespace {

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

/// t(0.975, n − 1) s; nullopt for fewer than two values.
std::optional<double> t_deviations(std::span<const double> values) {
  const std::optional<double> deviation = sample_deviation(values);
  if (!deviation) return std::nullopt;
  const boost::math::students_t t(static_cast<double>(values.size() - 1));
  return boost::math::quantile(t, 0.975) * *deviation;
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

std::optional<double> half_interval(std::span<const double> values) {
  const std::optional<double> deviations = t_deviations(values);
  return deviations ? std::optional(*deviations / std::sqrt(static_cast<double>(values.size()))) : std::nullopt;
}

std::optional<double> half_prediction_interval(std::span<const double> values, size_t runs) {
  const std::optional<double> deviations = t_deviations(values);
  if (!deviations) return std::nullopt;
  return *deviations * std::sqrt(1 / static_cast<double>(runs) + 1 / static_cast<double>(values.size()));
}

std::optional<double> median(std::span<const double> values) {
  const std::optional<double> lower = lower_median(values);
  if (!lower || values.size() % 2 == 1) return lower;
  std::vector<double> negative(values.begin(), values.end());
  for (double& value : negative) value = -value;
  return std::midpoint(*lower, -*lower_median(negative));
}

std::optional<double> lower_median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::optional<double> least(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return *std::ranges::min_element(values);
}

std::optional<double> greatest(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return *std::ranges::max_element(values);
}

}  // namespace tearless::harness
