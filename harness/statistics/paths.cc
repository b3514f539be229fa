#include "harness/statistics/paths.h"

#include <cmath>

namespace tearless::harness {

MomentsAtLooks draw_cell(std::span<const size_t> looks, Normals& normals) {
  MomentsAtLooks moments;
  std::array<float, kMaxLookSeeds> values;
  normals.fill(std::span(values).first(looks.back()));
  double sum = 0, squares = 0;
  size_t seen = 0;
  for (size_t look = 0; look < looks.size(); ++look) {
    for (; seen < looks[look]; ++seen) {
      const double value = values[seen];
      sum += value;
      squares += value * value;
    }
    const auto n = static_cast<double>(seen);
    moments[look] = {sum / n, (squares - sum * sum / n) / (n - 1)};
  }
  return moments;
}

WelchPath welch_path(const Moments& a, const Moments& b, double ratio, size_t n) {
  const auto values = static_cast<double>(n);
  const double of_a = a.variance / values, of_b = ratio * ratio * b.variance / values, error = of_a + of_b;
  return {a.mean - ratio * b.mean, error, (values - 1) * error * error / (of_a * of_a + of_b * of_b)};
}

double WelchPath::tail(double numerator) const {
  if (error <= 0) return 0;
  return boost::math::cdf(boost::math::complement(FastStudentsT(degrees), numerator / std::sqrt(error)));
}

}  // namespace tearless::harness
