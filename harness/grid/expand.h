// Expands a grid into its combinations: one point of each axis, and a seed. They are small and are visited one at a
// time, so a grid may have millions. materialise() turns one into the full settings of its run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/grid/where.h"

namespace tearless::harness {

inline constexpr int64_t kMaxCombinations = 10'000'000;  // that are listed

/// One element of the product of axes and seeds: a point of each axis that stands beside those of the axes before it.
struct Combination {
  std::vector<uint32_t> index;  // axis → index into Axis::points
  int64_t seed = 0;
};

/// The filter of options such as `--only axis=label`, which restricts a grid to some points of some axes. Several
/// labels of one axis are alternatives; conditions on different axes must all hold. "seed=2" restricts the seeds.
class Only {
 public:
  Only() = default;  ///< admits every combination

  /// UserError for a text that is not axis=label, and for an axis, label or seed that the grid does not have. A label
  /// that no point has may be another spelling of its number.
  Only(const Grid& grid, const std::vector<std::string>& texts, const std::string& option = "--only");

  bool admits(const Grid& grid, const Combination& combination) const;
  /// For the labels of a run of the grid: axis → label.
  bool admits(const std::vector<std::pair<std::string, std::string>>& labels, int64_t seed) const;

 private:
  bool admits_seed(int64_t seed) const;

  Where where_;
  std::vector<int64_t> seeds_;  // empty: all
};

/// Whether a derivation, and that whose outputs it scores, is made of the runs of a combination.
bool derives(const Grid& grid, const Derivation& derivation, const Combination& combination);

/// `excluded` is the first exclusion that matches the combination, or null. `combination` is valid during the call
/// only.
using CombinationVisitor = std::function<void(const Combination& combination, const Exclusion* excluded)>;

/// Calls `visit` for each combination that is drawn or, where all were listed, excluded, in a fixed order: axes as in
/// Grid::axes, the last axis varies faster, seeds fastest.
void for_each_combination(const Grid& grid, const CombinationVisitor& visit);

/// As for_each_combination(), with one call for all seeds; combination.seed is the grid's first seed.
void for_each_cell(const Grid& grid, const CombinationVisitor& visit);

/// Whether it has at most kMaxCombinations points, without their seeds: so more seeds leave a sample as it is.
bool can_be_listed(const Grid& grid);

/// As for_each_cell() of a grid that can be listed, before a sample is drawn: those that are not drawn are visited,
/// too.
void for_each_point(const Grid& grid, const CombinationVisitor& visit);

/// "5 of 24 points, drawn at random with seed 3".
std::string drawn_text(const Sample& sample);

/// The combinations that are not excluded and that `only` admits, in the order of for_each_combination(). UserError for
/// more than 200 000 of them.
std::vector<Combination> runs_of(const Grid& grid, const Only& only = {});

/// The full configuration of one run, as it is sent to the training program.
struct RunSpec {
  nlohmann::json::object_t settings = {};           // flat dotted keys, including the seed's
  std::string folder = {};                          // relative paths start here, except those …
  std::map<std::string, std::string> folders = {};  // … whose key is in this map: key → folder
  bool smoke = false;                               // the same run cut down to a few updates
  // Of a run that derives from that run: the settings of each derivation, the last of which is the run's own.
  std::vector<nlohmann::json::object_t> derived = {};
};
/// The combination's trained run, or with `derivation` the run derived from it.
RunSpec materialise(const Grid& grid, const Combination& combination, const Derivation* derivation = nullptr);

/// A combination for messages, without its seed: "model.placement=pre, train.schedule.lr=0.001".
std::string describe_cell(const Grid& grid, const Combination& combination);

/// As describe_cell(), with ", seed 2" appended.
std::string describe_combination(const Grid& grid, const Combination& combination);

/// Where the setting is that is to blame for a refusal: the one that an axis varies, or leaves out, and that the
/// program's `sentence` names, else `key`, the setting that the program names. Null if nothing in the grid sets `key`.
/// Borrows from `grid`.
const std::string* refused_location(const Grid& grid, const Combination& combination, const std::string& key,
                                    const std::string& sentence);

}  // namespace tearless::harness
