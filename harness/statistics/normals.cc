#include "harness/statistics/normals.h"

#include <boost/math/distributions/normal.hpp>
#include <cstddef>
#include <vector>

namespace tearless::harness {
namespace {

std::vector<float> equally_probable() {
  constexpr size_t kSlices = 1 << 16;
  std::vector<float> deviates(kSlices);
  for (size_t i = 0; i < kSlices / 2; ++i) {
    const double probability = (static_cast<double>(i) + 0.5) / kSlices;
    deviates[i] = static_cast<float>(boost::math::quantile(boost::math::normal(), probability));
    deviates[kSlices - 1 - i] = -deviates[i];
  }
  return deviates;
}

}  // namespace

void Normals::fill(std::span<float> deviates) {
  static const std::vector<float> table = equally_probable();
  uint64_t bits = 0;
  for (size_t i = 0; i < deviates.size(); ++i) {
    bits = i % 4 == 0 ? random_.bits() : bits >> 16;
    deviates[i] = table[bits & 0xffff];
  }
}

}  // namespace tearless::harness
