#include "harness/grid/point_hash.h"

#include <string>

#include "base/hash.h"

namespace tearless::harness {
namespace {

uint64_t hash_of(const std::string& text) { return std::stoull(sha256(text).substr(0, 16), nullptr, 16); }

/// The finaliser of SplitMix64: every bit of the result depends on every bit of x.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

PointHash::PointHash(const Grid& grid) {
  if (!grid.sample) return;
  seed_ = hash_of("seed " + std::to_string(grid.sample->seed));
  for (const Axis& axis : grid.axes) {
    std::vector<uint64_t>& own = points_.emplace_back();
    for (const AxisPoint& point : axis.points) own.push_back(hash_of(axis.name + "\n" + point.label));
  }
}

uint64_t PointHash::operator()(PointIndex index) const {
  uint64_t sum = seed_;
  for (size_t axis = 0; axis < index.size(); ++axis) sum += points_[axis][index[axis]];
  return mixed(sum);
}

}  // namespace tearless::harness
