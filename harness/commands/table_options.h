// Options of the commands that print the tables of grids or what is said of them: `table` and `check-table`.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/plan/globals.h"
#include "harness/plan/grid_state.h"
#include "harness/table/columns.h"
#include "harness/table/table.h"

namespace tearless::harness {

struct TableOptions {
  std::vector<std::string> words, parts;
  std::filesystem::path layout;  // a grid file; empty: the sweep's own tables
  std::string format;            // "": by the ending of `out`
  std::string out;               // "": standard output
  Formulas formulas = Formulas::kAsTheyAre;

  void add_to(CLI::App& app);

  /// UserError for options that contradict each other.
  TableFormat chosen_format(const Globals& globals) const;
  /// The grids that are asked for, with their runs' results. UserError for a plan with errors.
  std::vector<GridState> states(const Globals& globals) const;
  /// Of the terminal; 0: what is printed is not for one.
  size_t width() const;
  void write(const std::string& text) const;
};

}  // namespace tearless::harness
