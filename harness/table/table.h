// A table of a grid: headers, cells with their numbers and runs, and notes. Pure: no database, no clock.
//
//   TableSpec --fill()--> Table --sheet_of()--> Sheet --render()--> text, Markdown, LaTeX, HTML
//   and its rows          numbers               texts
//   of results              └────────render()──────────────────────> CSV, JSON
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/cells/cell.h"
#include "harness/console/columns.h"
#include "harness/results/row.h"
#include "harness/statistics/sentence_test.h"
#include "harness/table/digits.h"
#include "harness/views/views.h"

namespace tearless::harness {

/// A cell against its baseline's in the same column.
struct BaselineComparison {
  bool is_baseline = false;                        // others are compared with it
  std::vector<SeedValue> baseline = {};            // the values of the baseline's cell
  std::optional<double> delta = {};                // the difference from it
  std::optional<double> ratio = {};                // to it, as {ratio} has it
  std::optional<double> p = {}, corrected_p = {};  // of the table's test
  std::optional<TwoSources> sources = {};          // of the difference, where `show` has them
  int level = 0;                                   // 1: † (p is at most the first level), 2: ‡ (the second)
  bool is_equivalent = false;                      // ≈: the table's test has a limit, and the difference is within it
};

struct TableCell {
  Cell cell = {};
  bool is_sum = false;         // of an added row or column: made of others, of each seed
  bool is_difference = false;  // then its mean is printed with a sign
  bool repeats = false;        // its runs are those of a cell above it, or before it in its row
  bool is_bold = false;        // the best of its column, or not to be told from it
  BaselineComparison comparison = {};
  std::vector<PublishedNumber> published = {};  // of each source that has this score

  /// The first published number or text; null: there is none.
  nlohmann::json published_value() const;
  /// The mean minus the first published number, if both exist.
  std::optional<double> difference() const;
};

struct Table {
  struct Column {
    std::vector<std::string> labels;  // one for each column axis
    std::string score;
    Show show = default_show();
    Digits digits = {};          // of mean, spread and difference
    double factor = 1;           // by which the scores of the runs are multiplied
    int published_decimals = 0;  // digits after the point of published numbers, as in the source
    bool highest_is_best = true;
    bool is_added = false;  // the grid does not have it
  };
  struct Row {
    std::vector<std::string> labels;      // one for each row axis
    std::vector<TableCell> cells;         // one for each column
    bool is_added = false;                // the grid does not have it
    std::optional<size_t> baseline = {};  // the row that it is compared with, by its place; its own: it is a baseline
  };
  struct HeaderLine {
    Name name;
    std::vector<Name> texts;  // one for each column
  };

  Name title = {};
  std::vector<std::string> row_axes = {};     // names, outermost first
  std::vector<std::string> column_axes = {};  // names, outermost first
  bool several_scores = false;                // the header then has a line with the scores' names
  std::vector<HeaderLine> header = {};        // below the labels of the columns
  std::vector<Column> columns = {};
  std::vector<Row> rows = {};
  bool has_choices = false;        // it has `select`
  std::string chosen = {};         // with `select`: what is chosen in every cell; "": not the same everywhere
  bool is_paired = true;           // with the baseline, by seed
  bool has_limits = false;         // its test has `within`
  std::vector<Name> sources = {};  // that single published numbers have
  Names names = {};                // in print, of the axes, labels and scores above
  std::string label = {};          // in LaTeX, as in \ref{tab:norms}
  TableSpec::Width width = TableSpec::Width::kAsNeeded;
  std::vector<Name> notes = {};  // printed below the table, one sentence each
};

/// Whether a note says how many runs `tearless verify-resume` found equal. Runs that it found different are always
/// named.
enum class ResumeNote { kIfDifferent, kAlways };

/// Which notes a table has: all, or those that a reader of the finished table needs, without what remains to be done.
enum class Notes { kAll, kFinal };

/// Why cells are mixed (Origins), as notes say it.
inline constexpr const char* kMixed =
    "trained on more than one kind of processor or device, or with more than one matmul library or file or version of "
    "the training program";

/// Whether `select` chooses by a score of a test set, or by `shown` itself: what is reported is then too good.
/// REQUIRES: the table has `select`.
bool is_chosen_by_what_is_reported(const TableSpec& spec, const std::string& shown);

/// Computes a table of the grid. `rows` are those of the runs that the grid does not exclude, each at most once, in any
/// order; an absent run counts as missing. `options` (" --workspace elsewhere") is appended to the commands that the
/// notes recommend.
Table fill(const Grid& grid, const Name& title, const TableSpec& spec, const std::vector<Row>& rows,
           const std::string& options = "", ResumeNote resume = ResumeNote::kIfDifferent, Notes notes = Notes::kAll);

/// What CSV and JSON print of a cell. The fields are in the order of CSV's columns.
struct CellField {
  const char* name;
  nlohmann::json (*value)(const TableCell&);  // null: it has none
  bool in_csv = true;
  bool Table::*only_with = nullptr;  // what a table must have for it; null: all have it
};
std::vector<CellField> cell_fields(const Table& table);

/// What was measured: "20.91 ± 0.30 (n=3)". The formats for people print it, with their own escapes.
std::string measured_text(const Table& table, const Table::Column& column, const TableCell& cell);
/// The part of it that is composed by the column's `show`, without marks and counts of runs: "20.91 ± 0.30".
std::string shown_text(const Table& table, const Table::Column& column, const TableCell& cell);
/// The first published number, as in its source, and what was measured minus it, with its sign; "" where there is none.
std::string published_number_text(const Table::Column& column, const TableCell& cell);
std::string difference_text(const Table& table, const Table::Column& column, const TableCell& cell);
/// What was published, and the difference from it: "[20.91, +0.00]"; "" if nothing was.
std::string published_text(const Table& table, const Table::Column& column, const TableCell& cell);
/// The two beside each other, as text, Markdown and HTML have them.
std::string cell_text(const Table& table, const Table::Column& column, const TableCell& cell);
std::string beside(const std::string& measured, const std::string& published);

enum class TableFormat { kText, kMarkdown, kLatex, kHtml, kCsv, kJson };

/// The format called `name`. UserError, with the nearest name, for any other name.
TableFormat table_format(const std::string& name);

/// The format of a file with this name, by its ending: .md, .tex, .html … kText without one, and a UserError for any
/// other.
TableFormat table_format_of(const std::filesystem::path& file);

/// A text with the escapes of a format for people. UserError, after "LOCATION: ", for the others.
std::string text_in(TableFormat format, const std::string& text, const std::string& location);

/// `formulas` is for CSV. `width`, in characters, is for text: a wider table is printed in several parts, each with
/// some of the columns; 0: in one.
std::string render(const Table& table, TableFormat format, Formulas formulas = Formulas::kAsTheyAre, size_t width = 0);

/// Several tables with an empty line between them; as JSON a list of them. One alone as by itself.
std::string render(const std::vector<Table>& tables, TableFormat format, Formulas formulas = Formulas::kAsTheyAre,
                   size_t width = 0);

}  // namespace tearless::harness
