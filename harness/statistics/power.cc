#include "harness/statistics/power.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "harness/statistics/stats.h"

namespace tearless::harness {

std::optional<double> pooled_deviation(std::span<const std::vector<double>> cells) {
  double squares = 0, degrees = 0;
  for (const std::vector<double>& values : cells) {
    const std::optional<double> deviation = sample_deviation(values);
    if (!deviation) continue;
    const auto own = static_cast<double>(values.size() - 1);
    squares += own * *deviation * *deviation;
    degrees += own;
  }
  if (degrees == 0) return std::nullopt;
  return std::sqrt(squares / degrees);
}

std::optional<double> detectable_difference(double deviation, size_t n, double power, double level) {
  if (n < 2) return std::nullopt;
  const auto seeds = static_cast<double>(n);
  const boost::math::students_t t(2 * seeds - 2);
  return (boost::math::quantile(t, 1 - level / 2) + boost::math::quantile(t, power)) * deviation * std::sqrt(2 / seeds);
}

}  // namespace tearless::harness
