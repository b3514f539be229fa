// Counts a grid's combinations and draws its sample.
#include <algorithm>
#include <optional>
#include <queue>
#include <set>

#include "base/error.h"
#include "harness/grid/conditions.h"
#include "harness/grid/expand.h"
#include "harness/grid/point_hash.h"
#include "harness/grid/sections.h"

namespace tearless::harness {
namespace {

constexpr int64_t kMaxDrawn = 1'000'000;  // of a grid that is not listed; more than can be planned
constexpr uint64_t kMaxInVain = 100'000;  // draws without a point that is new and not excluded

/// Without seeds; nullopt if conditions leave out some.
std::optional<double> product_of(const Grid& grid) {
  double combinations = 1;
  for (const Axis& axis : grid.axes) {
    if (axis.is_conditional) return std::nullopt;
    combinations *= static_cast<double>(axis.points.size());
  }
  return combinations;
}

[[noreturn]] void refuse_size(const Grid& grid) {
  const std::optional<double> product = product_of(grid);
  fail(
      "{}: the grid has {} combinations; {} is the most: remove values from its axes, split it, or draw some of them: "
      "sample = {{ count = 20, seed = 1 }}",
      grid.file.string(),
      product ? fmt::format("{:.3g}", *product * static_cast<double>(grid.seeds.size()))
              : fmt::format("more than {}", kMaxCombinations),
      kMaxCombinations);
}

/// A setting that cannot be computed here is no match: another exclusion may leave the combination out.
bool matches(const Grid& grid, const Combination& cell, const Exclusion& exclusion) {
  try {
    return all_hold(grid, cell.index, exclusion.when);
  } catch (const UserError&) {
    return false;
  }
}

/// Marks the exclusions that match this combination; those that are marked are not looked at again.
void mark_matching(const Grid& grid, const Combination& cell, std::vector<const Exclusion*>& unmatched) {
  std::erase_if(unmatched, [&](const Exclusion* one) { return matches(grid, cell, *one); });
}

/// Which points of each axis some combination has.
class SeenPoints {
 public:
  explicit SeenPoints(const Grid& grid) : grid_(grid) {
    for (const Axis& axis : grid.axes) seen_.emplace_back(axis.points.size());
  }

  void add(const Combination& cell) {
    for (size_t axis = 0; axis < seen_.size(); ++axis) {
      if (grid_.axes[axis].is_conditional) seen_[axis][cell.index[axis]] = true;
    }
  }

  void refuse_unseen() const {
    for (size_t axis = 0; axis < seen_.size(); ++axis) {
      const Axis& own = grid_.axes[axis];
      for (size_t point = 0; own.is_conditional && point < own.points.size(); ++point) {
        if (seen_[axis][point] || point == own.absent) continue;
        fail("{}: {} = {} is in no run: its conditions never hold together", own.points[point].location, own.name,
             own.points[point].label);
      }
    }
  }

 private:
  const Grid& grid_;
  std::vector<std::vector<bool>> seen_;
};

void count_and_draw_from_list(Grid& grid) {
  std::vector<const Exclusion*> unmatched;
  for (const Exclusion& one : grid.excludes) unmatched.push_back(&one);
  const PointHash hash(grid);
  std::priority_queue<uint64_t> lowest;  // of the points that are not excluded; the highest on top
  int64_t left = 0;
  SeenPoints seen(grid);
  for_each_point(grid, [&](const Combination& cell, const Exclusion* excluded) {
    seen.add(cell);
    ++grid.cells;
    if (!grid.sample && grid.size() > kMaxCombinations) refuse_size(grid);
    mark_matching(grid, cell, unmatched);
    if (excluded) return;
    ++left;
    if (!grid.sample) return;
    lowest.push(hash(cell.index));
    if (std::ssize(lowest) > grid.sample->count) lowest.pop();
  });
  seen.refuse_unseen();
  if (!unmatched.empty()) fail("{}: this exclusion matches no run", unmatched.front()->location);
  if (left == 0) fail("{}: the grid is empty: its exclusions leave out every run", grid.file.string());
  if (!grid.sample) return;
  grid.sample->of = left;
  grid.sample->highest = lowest.top();
}

void draw_axis_by_axis(Grid& grid) {
  Sample& sample = *grid.sample;
  if (sample.count > kMaxDrawn)
    fail("{}: a sample of more than {} combinations has at most {} points", grid.file.string(), kMaxCombinations,
         kMaxDrawn);
  const PointHash hash(grid);
  std::set<std::vector<uint32_t>> drawn;
  uint64_t in_vain = 0;
  for (uint64_t number = 0; std::ssize(drawn) < sample.count; ++number) {
    if (in_vain == kMaxInVain) {
      fail("{}: of {} points that were drawn the exclusions leave {}; remove the values that they leave out",
           grid.file.string(), number, drawn.size());
    }
    std::vector<uint32_t> index = hash.draw(number);
    const auto excludes = [&](const Exclusion& one) { return all_hold(grid, index, one.when); };
    const bool is_new = std::ranges::none_of(grid.excludes, excludes) && drawn.insert(std::move(index)).second;
    in_vain = is_new ? 0 : in_vain + 1;
  }
  sample.drawn.assign(drawn.begin(), drawn.end());
  constexpr double kMaxExact = 9007199254740992;  // 2^53
  const std::optional<double> product = grid.excludes.empty() ? product_of(grid) : std::nullopt;
  sample.of = grid.cells = product && *product <= kMaxExact ? static_cast<int64_t>(*product) : 0;
}

}  // namespace

void load_sample(const toml::table* table, const std::string& file, Grid& grid) {
  if (!table) return;
  TableReader reader(*table, "sample", file);
  const toml::node *count = reader.any("count"), *seed = reader.any("seed");
  reader.refuse_leftovers();
  if (!count || !count->is_integer() || count->as_integer()->get() < 1) {
    fail(
        "{}: sample needs count = how many of the grid's points are drawn, at least 1, as in sample = {{ count = 20, "
        "seed = 1 }}",
        reader.location("count"));
  }
  if (seed && !seed->is_integer()) fail("{}: sample: seed must be a whole number", reader.location("seed"));
  grid.sample = Sample{.count = count->as_integer()->get(), .seed = seed ? seed->as_integer()->get() : 1};
}

void count_and_draw(Grid& grid) {
  if (grid.sample && !can_be_listed(grid)) return draw_axis_by_axis(grid);
  const double all = product_of(grid).value_or(0) * static_cast<double>(grid.seeds.size());
  if (!grid.sample && all > static_cast<double>(kMaxCombinations)) refuse_size(grid);
  count_and_draw_from_list(grid);
}

}  // namespace tearless::harness
