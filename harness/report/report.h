// What `tearless report` says of grids and of their runs.
//
//   Grid, Table, GridChecks, Figure ──add_grid()──> Report ──page_of()──> HTML
//   rows, metrics, folders of sweeps ────┘
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/check/check.h"
#include "harness/figure/figure.h"
#include "harness/grid/grid.h"
#include "harness/report/thin_curve.h"
#include "harness/results/cost.h"
#include "harness/results/row.h"
#include "harness/table/table.h"

namespace tearless::harness {

/// A term, and what it is.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// A sweep that has runs of the report.
struct ReportSweep {
  std::string id;
  std::string command;    // that submits it again
  std::string note = {};  // of its user
  Facts facts = {};       // of its submission: when, from which commit, with which program
};

struct ReportRun {
  Row row;
  size_t grid = 0;                              // the first that has it
  std::string label = {};                       // in print, without the seed
  std::optional<size_t> trained = {};           // of a derived run: the run that it derives from, if it is here
  std::map<std::string, std::string> settings;  // as run.toml has them
  std::map<std::string, Curve> curves = {};     // by metric
};

struct ReportGrid {
  std::string title;
  Names names = {};         // in print
  Facts asked;              // axes with their labels, seeds, what is left out
  std::string text = {};    // of the grid file as it was submitted
  std::string layout = {};  // of the grid file whose views are laid over it, if another one's are
  std::vector<Table> tables = {};
  std::vector<Figure> figures = {};
  GridChecks checks = {};
};

struct Report {
  std::string title;
  std::string command;  // that makes it
  std::vector<ReportGrid> grids = {};
  std::vector<ReportRun> runs = {};       // each once
  std::vector<ReportSweep> sweeps = {};   // each once
  std::vector<std::string> metrics = {};  // of curves; those that the grids' views use come first
  CostOfGrids cost = {};
  bool has_thin_curves = false;  // a curve has fewer points than its run has reported
  bool has_all_curves = false;
};

/// How a page says what made it: a file with this text is a report.
inline constexpr const char* kGenerator = "<meta name=\"generator\" content=\"tearless ";

/// How many points a curve of a report has at most.
inline constexpr size_t kCurvePoints = 500;

/// The page: one file that loads nothing. Curves have fewer points where it would be larger than 5 MB, or than 15 kB a
/// run up to 15 MB.
std::string page_of(const Report& report);

}  // namespace tearless::harness
