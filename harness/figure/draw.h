// From curves of runs to a figure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/figure/figure.h"
#include "harness/results/result_set.h"
#include "harness/views/views.h"

namespace tearless::harness {

/// A run of a line.
struct DrawnRun {
  Curve curve = {};
  bool has_diverged = false;
  std::optional<CurvePoint> end = {};  // the last that it reported, where it has diverged
};

/// The runs together. Those that have diverged are not in the mean and do not set the scale, unless all have. Where it
/// joins, points of fewer runs than others are marked: BandPoint::is_of_fewer.
Figure::Line line_of(const std::vector<DrawnRun>& runs, FigureSpec::Band band, bool joins);

/// Draws a figure of the grid. UserError for a y that no run has although some have ended, with the nearest names.
/// `views`: all of the grid; its tables say which runs count, its claims have limits to be marked.
Figure draw(const Grid& grid, const std::vector<View>& views, const Name& title, const FigureSpec& spec,
            const ResultSet& results);

}  // namespace tearless::harness
