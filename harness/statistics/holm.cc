#include "harness/statistics/holm.h"

#include <algorithm>
#include <numeric>

namespace tearless::harness {

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double so_far = 0;
  size_t left = p.size();  // tests whose p is not smaller
  for (const size_t i : order) {
    so_far = std::max(so_far, std::min(1.0, static_cast<double>(left) * p[i]));
    adjusted[i] = so_far;
    --left;
  }
  return adjusted;
}

}  // namespace tearless::harness
