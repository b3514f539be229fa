// A table of a grid: headers, cells with their numbers and runs, and notes. fill() computes it from a grid and its rows
// of results; render() prints it in one of six formats. Pure: no database, no clock.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/results/row.h"
#include "harness/table/columns.h"
#include "harness/table/digits.h"

namespace tearless::harness {

/// One score of the runs that differ in their seed only.
struct Cell {
  // Numbers of runs:
  int expected = 0;         // in this cell; 0 if the grid has no runs there
  int diverged = 0;         // ended with a loss or gradient that was not finite
  int diverged_scored = 0;  // diverged runs that count in the mean: with the grid's diverged = "counted"
  int below = 0;            // done, but below the grid's fail_below
  int failed = 0;           // ended without a result: crashed, refused …
  int scoreless = 0;        // done, but without this score: it was null, or the run has none of its name
  int stale = 0;            // of those with a value: RunResult::stale
  int mixed = 0;            // by how many machines or versions of a program the values were made, if more than one

  bool excluded = false;  // all runs that the grid would have here are left out

  std::vector<SeedValue> values;  // of the runs that are done and have the score; mean and spread are over these
  std::optional<double> mean;
  std::optional<double> spread;   // sample standard deviation; unset for n = 1
  nlohmann::json published;       // the published number or text, or null
  std::string chosen;             // with `select`: the labels of the chosen point on the axes select.over; "": none yet
  bool tied = false;              // others have the same mean of select.by
  bool repeats = false;           // its runs are those of a cell above it, or before it in its row
  bool chosen_of_all = true;      // all that were compared have select.by of every seed
  std::vector<std::string> runs;  // ids, as far as they are known
  std::set<std::string> stale_because;               // RunResult::stale of the stale ones
  std::set<std::string> measured_on;                 // of a measured number: RunResult::measured_on of those with one
  std::set<std::string> trained_by;                  // RunResult::trained_by of those with a value
  std::map<std::string, std::string> without_score;  // of the scoreless runs: id → what it has instead: "null", "NaN"
                                                     // …, or "not in scores.json"

  int n() const { return static_cast<int>(values.size()); }
  /// Runs without a result yet.
  int missing() const { return expected - n() - (diverged - diverged_scored) - below - failed - scoreless; }

  /// The mean minus the published number, if both exist.
  std::optional<double> difference() const;
};

struct Table {
  struct Column {
    std::vector<std::string> labels;  // one for each column axis
    std::string score;
    Digits digits = {};          // of mean, spread and difference
    double factor = 1;           // by which the scores of the runs are multiplied
    int published_decimals = 0;  // digits after the point of published numbers, as in the source
  };
  struct Row {
    std::vector<std::string> labels;  // one for each row axis
    std::vector<Cell> cells;          // one for each column
  };

  std::string title;
  std::vector<std::string> row_axes;     // names, outermost first
  std::vector<std::string> column_axes;  // names, outermost first
  bool several_scores = false;           // the header then has a line with the scores' names
  std::vector<Column> columns;
  std::vector<Row> rows;
  TableSpec::Show show = TableSpec::Show::kMeanSpreadCount;
  std::vector<std::string> notes;  // printed below the table, one sentence each
};

/// Whether a note says how many runs `tearless verify-resume` found equal. Runs that it found different are always
/// named.
enum class ResumeNote { kIfDifferent, kAlways };

/// Computes a table of the grid. `rows` are those of the runs that the grid does not exclude, each at most once, in any
/// order; an absent run counts as missing. `options` (" --workspace elsewhere") is appended to the commands that the
/// notes recommend.
Table fill(const Grid& grid, const std::string& title, const TableSpec& spec, const std::vector<Row>& rows,
           const std::string& options = "", ResumeNote resume = ResumeNote::kIfDifferent);

/// What CSV, JSON and the formats for people print of a cell. The fields are in the order of CSV's columns.
struct CellField {
  const char* name;
  nlohmann::json (*value)(const Cell&);  // null: it has none
  bool in_csv = true;
  /// Its part of cell_text(), "" if it has none in this cell. Null: never. The parts are in the order of the fields.
  std::string (*text)(const Table&, const Table::Column&, const Cell&) = nullptr;
};
std::span<const CellField> cell_fields();

/// The text of a cell: "20.91 ± 0.30 (n=3) [20.91, +0.00]". The formats for people print it, with their own escapes.
std::string cell_text(const Table& table, const Table::Column& column, const Cell& cell);

/// A cell of the header, over `span` columns of the table.
struct HeaderCell {
  std::string text;
  size_t span = 1;
};
/// The lines of the header: one for each column axis, then one with the scores if there are several. The first cells of
/// a line hold the names of the row axes (on the last line) and the name of the column axis (before its labels).
/// Columns with the same label, under one cell of the line above, have one cell together.
std::vector<std::vector<HeaderCell>> header_of(const Table& table);

enum class TableFormat { kText, kMarkdown, kLatex, kHtml, kCsv, kJson };

/// The format called `name`. UserError, with the nearest name, for any other name.
TableFormat table_format(const std::string& name);

/// The format of a file with this name, by its ending: .md, .tex, .html … kText without one, and a UserError for any
/// other.
TableFormat table_format_of(const std::filesystem::path& file);

/// `formulas` is for CSV.
std::string render(const Table& table, TableFormat format, Formulas formulas = Formulas::kAsTheyAre);

/// Several tables with an empty line between them; as JSON a list of them. One alone as by itself.
std::string render(const std::vector<Table>& tables, TableFormat format, Formulas formulas = Formulas::kAsTheyAre);

/// Those of `names` that match a pattern (base/pattern.h), in the order of the patterns, of each in version order:
/// layer 10 after layer 9. A pattern without a match is retained, so that its empty column is visible.
std::vector<std::string> names_matching(const std::vector<std::string>& patterns, const std::set<std::string>& names);

}  // namespace tearless::harness
