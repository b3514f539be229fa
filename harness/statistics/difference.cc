#include "harness/statistics/difference.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "harness/statistics/rounding.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

double without_rounding(double value, double rounding) { return std::abs(value) <= rounding ? 0 : value; }

double square(double x) { return x * x; }

/// Pearson's.
std::optional<double> correlation_of(std::span<const double> a, std::span<const double> b) {
  if (*sample_deviation(a) == 0 || *sample_deviation(b) == 0) return std::nullopt;
  const double mean_a = *mean(a), mean_b = *mean(b);
  long double products = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    products += (a[i] - mean_a) * (b[i] - mean_b);
    squares_a += square(a[i] - mean_a);
    squares_b += square(b[i] - mean_b);
  }
  return std::clamp(static_cast<double>(products / std::sqrt(squares_a * squares_b)), -1.0, 1.0);
}

}  // namespace

Interval MeanDifference::interval(double confidence) const {
  if (standard_error == 0) return {mean, mean};
  const boost::math::students_t t(degrees);
  const double half = boost::math::quantile(t, 0.5 + confidence / 2) * standard_error;
  return {mean - half, mean + half};
}

double MeanDifference::p() const {
  if (standard_error == 0) return mean == 0 ? 1 : 0;
  const boost::math::students_t t(degrees);
  return 2 * boost::math::cdf(boost::math::complement(t, std::abs(mean) / standard_error));
}

std::optional<MeanDifference> paired_difference(std::span<const SeedValue> a, std::span<const SeedValue> b) {
  const SeedPairs pairs = pairs_of(a, b);
  const size_t n = pairs.size();
  if (n < 2) return std::nullopt;
  const std::vector<double> differences = pairs.differences();
  const double deviation = without_rounding(*sample_deviation(differences), pairs.rounding());
  return MeanDifference{.mean = without_rounding(*mean(differences), pairs.rounding()),
                        .standard_error = deviation / std::sqrt(static_cast<double>(n)),
                        .degrees = static_cast<double>(n - 1),
                        .correlation = correlation_of(pairs.first, pairs.second),
                        .magnitude = pairs.rounding() / kRounding};
}

std::optional<MeanDifference> welch_difference(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const auto degrees_a = static_cast<double>(a.size() - 1), degrees_b = static_cast<double>(b.size() - 1);
  const double error_a = square(*sample_deviation(a)) / static_cast<double>(a.size());
  const double error_b = square(*sample_deviation(b)) / static_cast<double>(b.size());
  const double error = error_a + error_b;  // squared
  const double magnitude = std::max(greatest_magnitude(a), greatest_magnitude(b));
  return MeanDifference{.mean = without_rounding(*mean(a) - *mean(b), kRounding * magnitude),
                        .standard_error = std::sqrt(error),
                        .degrees = error == 0
                                       ? degrees_a + degrees_b  // Welch and Satterthwaite have 0/0
                                       : square(error) / (square(error_a) / degrees_a + square(error_b) / degrees_b),
                        .magnitude = magnitude};
}

std::optional<MeanDifference> difference_of(std::span<const SeedValue> a, std::span<const SeedValue> b,
                                            bool is_paired) {
  return is_paired ? paired_difference(a, b) : welch_difference(numbers_of(a), numbers_of(b));
}

bool lies_within(const MeanDifference& difference, double delta, double confidence) {
  const auto [lower, upper] = difference.interval(confidence);
  return !is_less(lower, -delta, difference.magnitude) && !is_less(delta, upper, difference.magnitude);
}

bool lies_outside(const MeanDifference& difference, double delta, double confidence) {
  const auto [lower, upper] = difference.interval(confidence);
  return is_less(delta, lower, difference.magnitude) || is_less(upper, -delta, difference.magnitude);
}

bool is_not_worse(const MeanDifference& difference, double delta, double confidence) {
  return !is_less(difference.interval(confidence).first, -delta, difference.magnitude);
}

}  // namespace tearless::harness
