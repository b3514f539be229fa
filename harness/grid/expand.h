// From a grid to its runs: the cross product as points (an index an axis and a seed over the shared base, so that a
// million cost nothing), and one point as the full settings of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/grid/grid.h"

namespace tearless::harness {

/// One point of the expansion.
struct GridPoint {
  std::vector<uint32_t> index;  // into the points of each axis
  int64_t seed = 0;
};

/// Restricts a grid to some points of some axes (`--only axis=label`, several labels of one axis are alternatives).
class Only {
 public:
  Only() = default;  ///< everything
  /// UserError for a text that is not axis=label, an unknown axis or label, or an unknown seed ("seed=2" restricts the
  /// seeds).
  Only(const Grid& grid, const std::vector<std::string>& texts);

  bool admits(const GridPoint& point) const;

 private:
  std::map<size_t, std::vector<bool>> points_;  // axis → which of its points
  std::vector<int64_t> seeds_;                  // empty: all
};

/// Every point in a fixed order: axes as written, the last one fastest, seeds fastest of all. `excluded` is the first
/// exclusion that holds, or null. The point is only lent for the call.
using PointVisitor = std::function<void(const GridPoint& point, const Exclusion* excluded)>;
void for_each_point(const Grid& grid, const PointVisitor& visit);

/// The same with one call for all seeds of a cell; its seed is the grid's first.
void for_each_cell(const Grid& grid, const PointVisitor& visit);

/// The points that are not excluded, in that order. UserError where they are more than can be planned together.
std::vector<GridPoint> runs_of(const Grid& grid, const Only& only = {});

/// All that the training program is told of one run.
struct RunSpec {
  std::map<std::string, nlohmann::json> settings;  // flat dotted keys, the seed among them
  std::map<std::string, std::string> folders;      // key → folder that a relative path in it starts from
  std::map<std::string, std::string> coordinates;  // axis name → label
  int64_t seed = 0;
};
RunSpec materialise(const Grid& grid, const GridPoint& point);

/// "model.placement=pre, train.schedule.lr=0.001": a point in words, without and with its seed (", seed 2").
std::string describe_cell(const Grid& grid, const GridPoint& point);
std::string describe_point(const Grid& grid, const GridPoint& point);

/// The setting that a point has for a key, with the place that wrote it; null where nothing sets it (or only the seed
/// does).
const Setting* setting_at(const Grid& grid, const GridPoint& point, const std::string& key);

}  // namespace tearless::harness
