// A table as texts: what the formats for people print, each with its own escapes and rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/grid/names.h"
#include "harness/table/table.h"
#include "harness/views/table_spec.h"

namespace tearless::harness {

/// A cell of the header, over `span` columns of the table.
struct HeaderCell : Name {
  size_t span = 1;
};

struct HeaderLine {
  enum class Kind {
    kLabels,    // of a column axis, or the scores
    kAxisName,  // nothing but the name of an axis, above its labels
    kAdded      // by the grid file
  };
  Kind kind;
  std::vector<HeaderCell> cells;

  /// The text of a cell in each of the columns that it spans.
  std::vector<Name> one_a_column() const;
};

struct Sheet {
  struct Row {
    std::vector<Name> labels;                      // "" where the row above has the same one
    std::vector<std::string> measured, published;  // of each cell (table.h)
    std::vector<std::string> cells;                // the two beside each other
    std::vector<std::vector<std::string>> runs;    // of each cell
    std::vector<size_t> bold = {};                 // of each cell, how many bytes at its beginning; empty: none
    bool begins_group = false;                     // not the first row, and of another group than the one above
  };

  Name title;
  std::string label = {};  // in LaTeX
  TableSpec::Width width = TableSpec::Width::kAsNeeded;
  size_t label_columns = 0;  // the first columns, which have the labels of the rows
  bool wraps = false;        // in LaTeX texts break where the sheet is wider than the page
  // One line for each column axis, those that the grid file adds, then one with the scores if there are several. The
  // first cells of a line hold the names of the row axes (on the last line) and the name of the line (before its
  // labels, or above them where the names of the row axes stand there). Columns with the same label, under one cell of
  // the line above, have one cell together.
  std::vector<HeaderLine> header = {};
  std::vector<Row> rows = {};
  std::vector<Name> notes = {};

  // What text prints behind a bold part, since it has no bold letters, and the line that says so; both may be "".
  std::string bold_in_text = {}, about_bold_in_text = {};

  size_t columns() const { return rows.empty() ? 0 : rows.front().cells.size(); }

  /// The part of a cell that is bold, and the rest.
  static std::pair<std::string, std::string> bold_and_rest(const Row& row, size_t cell);
};

/// Puts a point behind notes, but not behind a command to type.
void end_sentences(std::vector<Name>& notes);

Sheet sheet_of(const Table& table);

/// Why it does not fit its place in LaTeX, a sentence; "" if it does.
std::string too_wide_in_latex(const Sheet& sheet);

/// Several sheets with an empty line between them. `width` as of render(). REQUIRES: a format for people.
std::string render(const std::vector<Sheet>& sheets, TableFormat format, size_t width);

}  // namespace tearless::harness
