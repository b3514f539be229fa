#include "harness/statistics/power.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numbers>

#include "harness/statistics/paths.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

/// Φ.
double normal_cdf(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

/// The probability that a standard normal d with d ± critical · √(χ² / degrees) is between −to_lower and to_upper: the
/// integral over x = √(χ² / degrees) of P(critical x − to_lower < d < to_upper − critical x).
double probability_between(double to_lower, double to_upper, double critical, double degrees) {
  const double log_constant =
      degrees / 2 * std::log(degrees) - (degrees / 2 - 1) * std::numbers::ln2 - boost::math::lgamma(degrees / 2);
  const auto integrand = [&](double x) {
    const double density = std::exp(log_constant + (degrees - 1) * std::log(x) - degrees * x * x / 2);
    return density * (normal_cdf(to_upper - critical * x) - normal_cdf(critical * x - to_lower));
  };
  constexpr double kTail = 10;  // standard deviations of x, about 1 / √(2 degrees)
  const double reach = kTail / std::sqrt(2 * degrees);
  const double low = std::max(0.0, 1 - reach), high = std::min(1 + reach, (to_lower + to_upper) / (2 * critical));
  constexpr unsigned kDepth = 10;
  return high <= low
             ? 0
             : boost::math::quadrature::gauss_kronrod<double, 31>::integrate(integrand, low, high, kDepth, 1e-9);
}

constexpr size_t kPathsAtLooks = 50'000;

}  // namespace

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

Interval deviation_interval(double deviation, double degrees, double confidence) {
  const boost::math::chi_squared chi2(degrees);
  const double tail = (1 - confidence) / 2;
  return {deviation * std::sqrt(degrees / boost::math::quantile(boost::math::complement(chi2, tail))),
          deviation * std::sqrt(degrees / boost::math::quantile(chi2, tail))};
}

double power_of(const PlannedTest& test, size_t n) {
  const auto values = static_cast<double>(n);
  const auto critical = [&](double degrees) {
    return boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), test.level));
  };
  if (test.design == Design::kPaired) {
    const double scale = std::sqrt(values);
    return probability_between(test.to_lower * scale, test.to_upper * scale, critical(values - 1), values - 1);
  }
  // Of two equal deviations the sum of the sample variances has 2n − 2 degrees of freedom; independent of it, the share
  // sin² α of one of them has the beta distribution, and Welch's degrees of freedom depend on that alone.
  const double scale = std::sqrt(values / 2);
  const auto weight = [&](double angle) { return std::pow(std::sin(2 * angle), values - 2); };
  const auto weighted = [&](double angle) {
    const double share = std::pow(std::sin(angle), 2), other = 1 - share;
    const double degrees = (values - 1) / (share * share + other * other);
    return weight(angle) *
           probability_between(test.to_lower * scale, test.to_upper * scale, critical(degrees), 2 * values - 2);
  };
  using Quadrature = boost::math::quadrature::gauss<double, 30>;
  constexpr double kHalf = std::numbers::pi / 4;  // the two shares may be exchanged
  return Quadrature::integrate(weighted, 0.0, kHalf) / Quadrature::integrate(weight, 0.0, kHalf);
}

std::optional<size_t> least_seeds(const PlannedTest& test, double power) {
  size_t low = 1, high = kMaxSeeds;  // too few, enough
  if (power_of(test, high) < power) return std::nullopt;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (power_of(test, middle) < power ? low : high) = middle;
  }
  return high;
}

PowerAtLooks power_at_looks(const PlannedTest& test, std::span<const size_t> looks) {
  Normals normals(/*seed=*/1);
  const bool one_cell = test.design == Design::kPaired;
  std::vector<size_t> decided(looks.size());  // of the paths
  std::vector<double> threshold;              // below it t² does not decide, whatever the degrees of freedom
  for (const size_t n : looks) {
    const FastStudentsT t((one_cell ? 1 : 2) * static_cast<double>(n - 1));
    threshold.push_back(std::pow(boost::math::quantile(boost::math::complement(t, test.level)), 2));
  }
  size_t held = 0;
  for (size_t path = 0; path < kPathsAtLooks; ++path) {
    const MomentsAtLooks a = draw_cell(looks, normals);
    const MomentsAtLooks b = one_cell ? MomentsAtLooks() : draw_cell(looks, normals);
    for (size_t look = 0; look < looks.size(); ++look) {
      const WelchPath seen = welch_path(a[look], b[look], one_cell ? 0 : 1, looks[look]);
      const double inside = std::min(seen.difference + test.to_lower, test.to_upper - seen.difference);
      if (inside * inside < threshold[look] * seen.error) continue;
      if (!one_cell && seen.tail(std::abs(inside)) > test.level) continue;
      held += inside > 0;
      ++decided[look];
      break;
    }
  }
  PowerAtLooks found{.power = static_cast<double>(held) / kPathsAtLooks, .seeds = static_cast<double>(looks.back())};
  size_t so_far = 0;
  for (size_t look = 0; look < looks.size(); ++look) {
    so_far += decided[look];
    found.decided.push_back(static_cast<double>(so_far) / kPathsAtLooks);
    found.seeds -= static_cast<double>(decided[look]) / kPathsAtLooks * static_cast<double>(looks.back() - looks[look]);
  }
  return found;
}

}  // namespace tearless::harness
