// The rows or the columns of a table by their labels: those of the layout, and those that the grid file adds.
#pragma once

#include <string>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/views/layout.h"

namespace tearless::harness {

struct Lines {
  struct Line {
    std::vector<std::string> labels;  // one for each axis
    bool is_added = false;            // the grid does not have it
  };

  std::vector<std::string> axes = {};  // names, outermost first
  std::vector<Line> lines = {};

  /// The label that a line has on an axis; null: these lines have no such axis.
  const std::string* label_on(const std::string& axis, const Line& line) const;
};

/// Those of a layout on some axes.
Lines lines_of(const Grid& grid, const std::vector<size_t>& axes, const std::vector<Coordinates>& layout);

}  // namespace tearless::harness
