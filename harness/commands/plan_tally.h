// What `tearless plan` counts: the runs of a grid by state and by the points of its axes, each run once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/plan/estimate.h"
#include "harness/plan/grid_state.h"
#include "harness/plan/no_effect.h"

namespace tearless::harness {

/// The states that the plan counts, in the order of its columns.
enum Kind : size_t { kToRun, kRunning, kDone, kDiverged, kFailed, kWaiting, kRefused, kLeftOut, kKinds };
inline constexpr std::array<const char*, kKinds> kKindNames = {"to_run", "running",          "done",    "diverged",
                                                               "failed", "waiting_for_data", "refused", "left_out"};
using Counts = std::array<int64_t, kKinds>;

Kind kind_of(const Row& row);

/// Runs that are to be trained, and what they cost. Of a run that several rows have, once.
struct Work {
  std::vector<Run> runs;
  int64_t updates = 0;            // maximum number that they make
  int64_t of_unknown_length = 0;  // those of them whose maximum is not known
  Estimate estimate;
  std::optional<int64_t> disk_bytes;  // that they need, by disk_estimate()

  void add(const Run& run);
  void estimate_with(const Store* store, const Workspace& workspace);
};

/// The runs of one derivation.
struct DerivedTally {
  Counts counts{};
  std::vector<Run> to_run;
  Estimate estimate;  // of these
};

/// An axis, or the seeds: how many runs of each of its points are of which kind.
struct AxisTally {
  std::string name;
  std::vector<std::pair<std::string, Counts>> points;  // label → counts, in the grid's order
};

struct Tally {
  std::vector<AxisTally> axes;  // the seeds are the last
  Counts all{};
  std::map<const Exclusion*, int64_t> excluded;  // exclusion → number of its combinations
  std::vector<NoEffect> no_effect;
  std::set<std::string> warnings;              // Run::warnings, each once
  int64_t rows = 0;                            // trained runs as the grid lists them, one of each combination
  int64_t shared = 0;                          // those of them that have the same run as another one
  std::map<std::string, int64_t> waiting_for;  // missing file, one sentence → number of runs
  Work work;
  std::vector<DerivedTally> derived;  // of each derivation; not in the numbers above
  int64_t to_derive = 0;              // their runs in kToRun
};

Tally tally_of(const GridState& state, const Only& only, const Workspace& workspace);

}  // namespace tearless::harness
