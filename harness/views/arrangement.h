// Which runs of a grid stand together, and which of their numbers count: what tables, figures and comparisons of sweeps
// ask for cells with (cells/cells.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/grid/where.h"

namespace tearless::harness {

/// A cell for each combination of the points of two groups of axes. Axes are indices into Grid::axes; each is in
/// exactly one of rows, columns, average and select.over, or `where` leaves one point of it.
struct Arrangement {
  /// Model selection. Of the runs that differ on the axes `over` only, the cell has the best: the point with the best
  /// mean of the score `by` over the seeds. `by` is a score on the development set, so the reported test score does not
  /// take part in the choice.
  struct Select {
    std::vector<size_t> over;
    std::string by;
    bool highest = true;  // false: the lowest mean is best
  };

  std::vector<size_t> rows = {}, columns = {};  // outermost first
  std::vector<size_t> average = {};             // a cell is the mean over their points, of each seed
  Where where = {};                             // that the cells are of
  std::optional<Select> select = {};
};

/// Which of the runs count, and with what number.
struct CellRules {
  std::map<std::string, double> factors;  // score or pattern → by what it is multiplied; others: 1
  std::optional<double> fail_below;       // a done run whose first score is lower counts as failed, in every column
  bool count_diverged = false;  // a diverged run counts with the scores of its best checkpoint, if it has them

  double factor_of(const std::string& score) const;
};

}  // namespace tearless::harness
