#include "harness/statistics/proportion.h"

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

}  // namespace tearless::harness
