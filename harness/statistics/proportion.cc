#include "harness/statistics/proportion.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/hypergeometric.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

namespace tearless::harness {

std::optional<Interval> wilson_interval(size_t count, size_t n, double confidence) {
  if (n == 0) return std::nullopt;
  const auto runs = static_cast<double>(n);
  const double share = static_cast<double>(count) / runs;
  const double z = boost::math::quantile(boost::math::normal(), 0.5 + confidence / 2);
  const double centre = share + z * z / (2 * runs);
  const double half = z * std::sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs));
  const double scale = 1 + z * z / runs;
  return Interval{count == 0 ? 0 : (centre - half) / scale, count == n ? 1 : (centre + half) / scale};
}

double more_than_half_p(size_t count, size_t n) {
  if (count == 0) return 1;
  const boost::math::binomial tosses(static_cast<double>(n), 0.5);
  return boost::math::cdf(boost::math::complement(tosses, static_cast<double>(count - 1)));
}

double equal_shares_p(size_t count_a, size_t n_a, size_t count_b, size_t n_b) {
  constexpr double kAsProbable = 1 + 1e-7;  // as R and SciPy, for rounding errors
  const auto all = static_cast<unsigned>(count_a + count_b), of_a = static_cast<unsigned>(n_a);
  const boost::math::hypergeometric tables(all, of_a, static_cast<unsigned>(n_a + n_b));
  const double own = boost::math::pdf(tables, static_cast<unsigned>(count_a));
  const auto least = static_cast<unsigned>(count_a + count_b > n_b ? count_a + count_b - n_b : 0);
  double p = 0;
  for (unsigned count = least; count <= std::min(all, of_a); ++count) {
    const double probability = boost::math::pdf(tables, count);
    if (probability <= own * kAsProbable) p += probability;
  }
  return std::min(p, 1.0);
}

}  // namespace tearless::harness
