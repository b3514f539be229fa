// Which differences between the cells of a table are marked †, ‡ and ≈, and which cells are bold: the section
// [table.test] of the grid file. Internal to harness/table.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/table/table.h"

namespace tearless::harness {

/// What notes say of it.
struct Compared {
  size_t family = 0;                   // comparisons with the baseline
  bool is_best_a_baseline = false;     // of a column: its bold goes by the p of the marks
  std::map<std::string, int> without;  // why two cells were not compared, or no p can be small enough → how often
};

/// Compares each cell with its baseline's in its column (Table::Row::baseline is set), and where the test asks for it
/// with the best of its column. Rows that the grid file adds are not compared. `means`: of each column that is a mean
/// of others these; its p is the largest of theirs, that of the statement that the row differs in all of them in one
/// direction (intersection–union).
Compared compare_cells(const SignificanceTest& test, bool has_bold, const std::vector<std::vector<size_t>>& means,
                       Table& table);

/// Makes bold the best mean of each column, and those that equal it. Not of rows that the grid file adds, and of no
/// difference.
void embolden_best(Table& table);

}  // namespace tearless::harness
