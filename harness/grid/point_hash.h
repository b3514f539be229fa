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
  explicit PointHash(const Grid& grid);  ///< borrows it
  uint64_t operator()(PointIndex index) const;

  /// The `number`-th of an endless list of points: of each axis one of those that stand beside those of the axes
  /// before.
  std::vector<uint32_t> draw(uint64_t number) const;

 private:
  const Grid& grid_;
  uint64_t seed_ = 0;
  std::vector<std::vector<uint64_t>> points_;  // [axis][point]
};

}  // namespace tearless::harness
