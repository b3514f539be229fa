// Points of axes that change nothing: the runs of a plan that are one run under several labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/results/row.h"
#include "harness/views/views.h"

namespace tearless::harness {

/// Points of one axis that make the same runs, a setting that has no effect on the runs that have it, or a key of a
/// view.
struct NoEffect {
  std::string axis;  // or "KEY (FILE:LINE)", of a view behind "[table]", or, of [derived.NAME], "derived.NAME KEY"
  std::vector<std::string> labels;   // of the points, in the grid's order; empty for a setting
  int64_t rows = 0;                  // of the plan that have such a point
  int64_t runs = 0;                  // that these rows are
  std::vector<std::string> because;  // what switches it off, each once: train.schedule.kind = "invsqrt"
};

/// One entry for each axis with such points, then for each such setting of the runs that no such axis changes, and of
/// their derivations. What a base file sets and another file or the grid itself switches off is meant so, and not among
/// them. `rows` are those of a plan.
std::vector<NoEffect> without_effect(const Grid& grid, const std::vector<Row>& rows);

/// The keys of views that change nothing.
std::vector<NoEffect> without_effect(const std::vector<View>& views);

/// "train.schedule.lr (0.1, 0.2): 6 rows are 3 runs; train.schedule.kind = "invsqrt" switches it off".
std::string text_of(const NoEffect& one);

}  // namespace tearless::harness
