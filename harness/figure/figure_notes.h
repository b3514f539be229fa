// What stands below a figure: how many seeds and runs it is of, what its marks are, what is missing. Internal to
// harness/figure.
#pragma once

#include "harness/figure/reading.h"

namespace tearless::harness {

/// A line of which a run is still under way does not end where that run is now.
bool ends_at_fewer(const FigureSpec& spec, const Reading& reading, size_t line);

/// REQUIRES: the figure's panels and legend are complete.
void add_notes(const Grid& grid, const FigureSpec& spec, const FigureRuns& runs, Figure& figure);

}  // namespace tearless::harness
