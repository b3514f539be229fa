// A finished table as a value: headers, cells that know their numbers and their runs, and the notes below. fill() makes
// it from a grid and stored results; render() prints it. Pure: no store, no clock.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "harness/runs/run_result.h"

namespace tearless::harness {

struct Cell {
  int expected = 0;  // runs that belong here; 0 where an exclusion leaves the cell out
  int scored = 0;    // of these, the done ones that have the score: what mean and spread are taken over (n)
  int diverged = 0;
  int below = 0;      // done, but below the grid's fail_below
  int failed = 0;     // ended without a result: crashed, refused …
  int scoreless = 0;  // done without ever having this score (the g of a norm that has none)
  int stale = 0;
  int mixed = 0;

  std::optional<double> mean;
  std::optional<double> spread;   // sample standard deviation; none for n = 1
  nlohmann::json published;       // a number, a text, or null
  std::string chosen;             // with `select`: the labels whose runs these are
  std::vector<std::string> runs;  // ids, where known

  int missing() const { return expected - scored - diverged - below - failed - scoreless; }
  /// Ours minus the published number, where both are there.
  std::optional<double> difference() const;
};

struct Table {
  struct Column {
    std::vector<std::string> labels;  // one a column axis
    std::string score;
    int decimals = 2;            // of mean, spread and difference
    int published_decimals = 0;  // as many as the source prints
  };
  struct Row {
    std::vector<std::string> labels;  // one a row axis
    std::vector<Cell> cells;          // one a column
  };

  std::string title;
  std::vector<std::string> row_axes;
  std::vector<std::string> column_axes;
  bool several_scores = false;  // the header then needs a line that names them
  std::vector<Column> columns;
  std::vector<Row> rows;
  TableSpec::Show show = TableSpec::Show::kMeanSpreadCount;
  std::vector<std::string> notes;  // a sentence each
};

/// A run of the grid and what is known of it.
struct TableRun {
  GridPoint point;
  RunResult result;
};

/// `runs`: those of the grid that are not left out, each once, in any order; a run that is not among them counts as
/// missing.
/// `options` (" --workspace elsewhere") follows the commands that the notes tell a reader to type.
Table fill(const Grid& grid, const std::vector<TableRun>& runs, const std::string& options = "");

/// "20.91 ± 0.30 (n=3) [20.91, +0.00]": what a person reads in a cell. All renderers but CSV print this, each with its
/// escapes.
std::string cell_text(const Table& table, const Table::Column& column, const Cell& cell);

enum class TableFormat { kText, kMarkdown, kLatex, kHtml, kCsv };
/// UserError (with the nearest name) for a format there is not.
TableFormat table_format(const std::string& name);
std::string render(const Table& table, TableFormat format);

/// True where `name` matches `pattern`, in which `*` stands for any text.
bool matches_pattern(std::string_view pattern, std::string_view name);

/// Columns that a text takes on a terminal.
size_t display_width(std::string_view text);

}  // namespace tearless::harness
