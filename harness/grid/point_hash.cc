#include "harness/grid/point_hash.h"

#include <optional>
#include <string>
#include <utility>

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

PointHash::PointHash(const Grid& grid) : grid_(grid) {
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

std::vector<uint32_t> PointHash::draw(uint64_t number) const {
  const uint64_t own = mixed(seed_ + number);
  std::vector<uint32_t> index;
  for (const std::vector<uint64_t>& points : points_) {
    const size_t axis = index.size();
    std::optional<std::pair<uint64_t, uint32_t>> lowest;
    for (uint32_t point = 0; point < points.size(); ++point) {
      if (!stands(grid_, index, axis, point)) continue;
      const std::pair candidate(mixed(own + points[point]), point);
      if (!lowest || candidate < *lowest) lowest = candidate;
    }
    index.push_back(lowest->second);
  }
  return index;
}

}  // namespace tearless::harness
