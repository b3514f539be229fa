// Options of the commands that print the views of grids: `table`, `check-table` and `figure`.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/commands/view_output.h"
#include "harness/console/columns.h"
#include "harness/console/globals.h"
#include "harness/plan/grid_state.h"
#include "harness/table/sheet.h"
#include "harness/table/table.h"

namespace tearless::harness {

struct ViewOptions {
  std::vector<std::string> words, parts;
  std::filesystem::path layout;  // a grid file; empty: the sweep's own views
  std::string format;            // "": by the ending of `out`
  std::string out;               // "": standard output
  Formulas formulas = Formulas::kAsTheyAre;

  /// The words, --part and --layout.
  void add_selection_to(CLI::App& app);
  /// All. `formats` is the help of --format.
  void add_to(CLI::App& app, const std::string& formats);

  /// The grids that are asked for, with their runs' results. UserError for a plan with errors.
  std::vector<GridState> states(const Globals& globals) const;
  /// Of the terminal; 0: what is printed is not for one.
  size_t width() const;
  /// A text that is printed, or is the file `out`.
  ViewOutput output(std::string text) const;
};

struct TableOptions : ViewOptions {
  void add_to(CLI::App& app);

  /// UserError for options that contradict each other.
  TableFormat chosen_format(const Globals& globals) const;
};

/// A sentence for each sheet that does not fit its place in LaTeX.
void notice_what_is_too_wide(const std::vector<Sheet>& sheets);

}  // namespace tearless::harness
