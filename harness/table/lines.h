// The rows and the columns of a table: those of the grid's layout, and those that the grid file adds. Internal to
// harness/table.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/table/table.h"

namespace tearless::harness {

/// A row or a column of the table: one of the layout, or one that the grid file adds.
struct Line {
  std::vector<std::string> labels;
  std::vector<std::pair<size_t, double>> sum;   // of rows (columns) of the layout
  const TableSpec::AddedLine* added = nullptr;  // null: one of the layout
  std::string score = {};                       // of a column
};

/// Those of the layout, with the added ones before them or at the end. `of_layout`: for each of its rows (columns) the
/// lines that it has. An added column without a score has `score`. `names` gets the names of the added ones, whose
/// labels are of `axes`.
std::vector<Line> with_added(const std::vector<std::vector<Line>>& of_layout,
                             const std::vector<TableSpec::AddedLine>& added, const std::string& score,
                             const std::vector<std::string>& axes, Names& names);

/// The cells of the layout, by row, column and score.
using Base = std::map<std::tuple<size_t, size_t, std::string>, TableCell>;

/// The cell of a row and a column: one of the layout's, or a sum of these.
TableCell cell_of(const Line& row, const Line& column, const Base& base);

/// A cell of a row of published numbers alone: one of them, or the same sum of them as the column is. `first_scores`:
/// of each column of the layout, the score that the numbers are of.
TableCell published_cell(const Line& row, const Line& column, const std::vector<std::string>& first_scores,
                         const Base& base);

}  // namespace tearless::harness
