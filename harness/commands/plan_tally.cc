#include "harness/commands/plan_tally.h"

#include <algorithm>

#include "base/files.h"
#include "harness/plan/calibration.h"

namespace tearless::harness {
namespace {

/// Counts each run once: in all, and at each point.
class Counter {
 public:
  Counter(const Grid& grid, Tally& tally) : tally_(tally) {
    for (const Axis& axis : grid.axes) {
      AxisTally& own = tally.axes.emplace_back(AxisTally{.name = axis.name, .points = {}});
      for (const AxisPoint& point : axis.points) own.points.emplace_back(point.label, Counts{});
    }
    AxisTally& seeds = tally.axes.emplace_back(AxisTally{.name = "seed", .points = {}});
    for (const int64_t seed : grid.seeds) seeds.points.emplace_back(std::to_string(seed), Counts{});
    seen_.resize(tally.axes.size());
  }

  /// False if the run has been counted before. What is refused has no run.
  bool add(const Row& row, Kind kind) {
    const bool is_new = !row.refusal.empty() || all_seen_.insert(row.run.id).second;
    tally_.all[kind] += is_new;
    for (size_t axis = 0; axis < tally_.axes.size(); ++axis) {
      const bool is_seeds = axis + 1 == tally_.axes.size();
      const std::string label =
          is_seeds ? std::to_string(row.run.seed) : label_on(row.run.coordinates, tally_.axes[axis].name);
      const bool is_new_here = !row.refusal.empty() || seen_[axis].emplace(label, row.run.id).second;
      if (Counts* counts = counts_at(axis, label)) (*counts)[kind] += is_new_here;
    }
    return is_new;
  }

 private:
  Counts* counts_at(size_t axis, const std::string& label) {
    auto& points = tally_.axes[axis].points;
    const auto point = std::ranges::find(points, label, &std::pair<std::string, Counts>::first);
    return point == points.end() ? nullptr : &point->second;
  }

  Tally& tally_;
  std::set<std::string> all_seen_;
  std::vector<std::set<std::pair<std::string, std::string>>> seen_;  // axis → label and run
};

void count_excluded(const Grid& grid, const Only& only, Tally& tally) {
  for_each_combination(grid, [&](const Combination& combination, const Exclusion* excluded) {
    if (!excluded || !only.admits(grid, combination)) return;
    ++tally.excluded[excluded];
    ++tally.all[kLeftOut];
    for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
      ++tally.axes[axis].points[combination.index[axis]].second[kLeftOut];
    }
    const auto seed = std::ranges::find(grid.seeds, combination.seed) - grid.seeds.begin();
    ++tally.axes.back().points[static_cast<size_t>(seed)].second[kLeftOut];
  });
}

}  // namespace

Kind kind_of(const Row& row) {
  const std::optional<RunState>& state = row.result.state;
  if (!row.refusal.empty()) return kRefused;
  if (row.result.is_due) return kToRun;
  if (state == RunState::kRunning) return kRunning;
  if (state == RunState::kDone) return kDone;
  if (state == RunState::kDiverged) return kDiverged;
  if (state == RunState::kFailed) return kFailed;
  if (state == RunState::kWaitingData) return kWaiting;
  return kToRun;
}

void Work::add(const Run& run) {
  updates += run.updates;
  of_unknown_length += run.updates == 0;
  runs.push_back(run);
}

void Work::estimate_with(const Store* store, const Workspace& workspace) {
  if (runs.empty()) return;
  const std::vector<Timing> ended = store ? store->timings() : std::vector<Timing>();
  estimate = estimate_of(runs, ended, calibrations_in(workspace));
  disk_bytes = disk_estimate(runs, ended, [&](const std::string& id) { return bytes_in(workspace.run(id).root()); });
}

Tally tally_of(const GridState& state, const Only& only, const Workspace& workspace) {
  const Grid& grid = state.grid;
  const Store* store = state.results.store.get();
  Tally tally;
  tally.derived.resize(grid.derivations.size());
  Counter counter(grid, tally);
  std::set<std::string> derived_seen;
  for (const Row& row : state.results.rows) {
    const Kind kind = kind_of(row);
    if (!row.is_trained()) {
      DerivedTally& own =
          tally.derived[static_cast<size_t>(&grid.derivation(row.derivation) - grid.derivations.data())];
      if (row.refusal.empty() && !derived_seen.insert(row.run.id).second) continue;
      ++own.counts[kind];
      if (kind == kToRun) own.to_run.push_back(row.run);
      continue;
    }
    ++tally.rows;
    tally.warnings.insert(row.run.warnings.begin(), row.run.warnings.end());
    if (!counter.add(row, kind)) {
      ++tally.shared;
      continue;
    }
    if (kind == kWaiting) ++tally.waiting_for[row.run.waiting_for];
    if (kind == kToRun) tally.work.add(row.run);
  }
  for (DerivedTally& own : tally.derived) {
    tally.to_derive += own.counts[kToRun];
    if (!own.to_run.empty()) own.estimate = estimate_of(own.to_run, store ? store->timings() : std::vector<Timing>());
  }
  tally.work.estimate_with(store, workspace);
  tally.no_effect = without_effect(grid, state.results.rows);
  std::ranges::move(without_effect(state.views), std::back_inserter(tally.no_effect));
  count_excluded(grid, only, tally);
  return tally;
}

}  // namespace tearless::harness
