// The runs that a figure draws: in which panel and on which line each is, and its curve. Internal to harness/figure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/figure/draw.h"
#include "harness/views/layout.h"

namespace tearless::harness {

/// Index into the figure's panels and lines.
using FigurePlace = std::pair<size_t, size_t>;

struct PanelKey {
  Coordinates at;           // on the axes spec.panels
  std::optional<size_t> y;  // with a panel for each y
};
struct LineKey {
  Coordinates at;               // on the axes spec.lines
  std::optional<size_t> y;      // without a panel for each y
  std::optional<int64_t> seed;  // with a line for each run
};

/// The panels and lines of a figure, in the order of the grid's axes.
class FigurePlaces {
 public:
  FigurePlaces(const Grid& grid, const FigureSpec& spec);

  std::vector<PanelKey> panels;
  std::vector<LineKey> lines;

  /// nullopt: `where` leaves the run out.
  std::optional<FigurePlace> place_of(const Row& row, size_t y) const;

 private:
  std::optional<Coordinates> coordinates_of(const Row& row, const std::vector<size_t>& axes) const;

  const Grid& grid_;
  const FigureSpec& spec_;
};

struct SeedCurve {
  int64_t seed = 0;
  DrawnRun run;
  int64_t each = 1;  // of how many values a point is the mean
};
using FigureCurves = std::map<FigurePlace, std::vector<SeedCurve>>;

/// What the notes say of the reading. Runs are ids.
struct Reading {
  std::map<FigurePlace, std::set<std::string>> expected, drawn;
  std::map<FigurePlace, std::string> without;  // a run that is done without this curve
  std::set<size_t> waited_for;                 // lines with a run that has not ended
  std::set<std::string> diverged;
  std::set<std::string> below;   // by the table's fail_below
  std::set<std::string> limits;  // "dev BLEU below 1"
  int64_t each = 1;              // the greatest of SeedCurve
  std::set<std::string> stale;   // RunResult::stale
  bool has_done = false;         // some run is
  bool lacks_metric = false;     // lacks() of some run
};

struct FigureRuns {
  FigurePlaces places;
  FigureCurves curves = {};                       // smoothed, and in bins, as the figure has it
  std::map<FigurePlace, Curve> diverged_at = {};  // of an axis: runs without a score
  Reading reading = {};
};

/// UserError if no run has what the figure names although one is done.
FigureRuns read_runs(const Grid& grid, const std::vector<View>& views, const std::string& title, const FigureSpec& spec,
                     const ResultSet& results);

std::string label_at(const Grid& grid, size_t axis, uint32_t point);

}  // namespace tearless::harness
