// The option --safe-for-spreadsheets of the commands that print CSV.
#pragma once

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "harness/console/columns.h"

namespace tearless::harness {

inline void add_formulas_option(CLI::App& app, Formulas& formulas) {
  app.add_flag_callback(
      "--safe-for-spreadsheets", [&formulas] { formulas = Formulas::kMadeText; },
      "with CSV: put an apostrophe before text that a spreadsheet would read as a formula (= + - @)");
}

/// UserError if formulas are to be made text where no CSV is printed. `csv` is the option that prints it.
inline void require_csv(Formulas formulas, bool prints_csv, const char* csv) {
  if (formulas == Formulas::kMadeText && !prints_csv) fail("--safe-for-spreadsheets is for CSV; add {}", csv);
}

}  // namespace tearless::harness
