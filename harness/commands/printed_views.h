// The tables, claims and figures of a grid, with what each of them needs read into its results. The commands that print
// them alone, and those that print several of them, share this.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/archive/copy.h"
#include "harness/check/check.h"
#include "harness/figure/figure.h"
#include "harness/plan/grid_state.h"
#include "harness/report/report.h"
#include "harness/table/table.h"

namespace tearless::harness {

/// Reads what tables and claims are made of: the scores that the grid defines, the statistics of sentences that tables
/// compare, and when runs began. Call once.
void read_for_views(GridState& state);

/// Which files of its runs these and figures are made of, beside metrics and scores.
NeededStatistics statistics_of_views(const GridState& state);

/// In the order of the grid file. `options`: of the commands in notes. REQUIRES: read_for_views().
std::vector<Table> tables_of(const GridState& state, const std::string& options, Notes notes = Notes::kAll,
                             ResumeNote resume = ResumeNote::kIfDifferent);

/// With the looks that were recorded. REQUIRES: read_for_views().
GridChecks checks_of(const GridState& state);

/// Figure::name of a grid's figures: the grid file's, or "figure-3". `before`: the figures of the grids before it.
std::vector<std::string> names_of_figures(const GridState& state, size_t before = 0);

/// Those of them that `is_wanted`. `has_scores`: read_for_views() was called; otherwise the scores that the grid
/// defines are read if a figure needs them.
std::vector<Figure> figures_of(GridState& state, const std::vector<std::string>& names, bool has_scores,
                               const std::function<bool(const std::string&)>& is_wanted);

/// All of them, the grids' runs and where these come from. With `all_curves` of every metric. REQUIRES:
/// read_for_views() of each; there is a grid.
Report report_of(std::vector<GridState>& states, const Globals& globals, bool all_curves);

}  // namespace tearless::harness
