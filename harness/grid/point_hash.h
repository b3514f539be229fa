// The hash by which a sample is drawn. Internal to harness/grid.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/grid/conditions.h"
#include "harness/grid/grid.h"

namespace tearless::harness {

/// Hashes a grid's points: of the sample's seed and the names and labels of the point's axes, whatever the order of the
/// axes. A point keeps its hash when others are added to the grid.
class PointHash {
 public:
  explicit PointHash(const Grid& grid);
  uint64_t operator()(PointIndex index) const;

 private:
  uint64_t seed_ = 0;
  std::vector<std::vector<uint64_t>> points_;  // [axis][point]
};

}  // namespace tearless::harness
