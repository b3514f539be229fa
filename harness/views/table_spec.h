// A view that is a table: the sections [table] of a grid file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/grid/defined_score.h"
#include "harness/grid/names.h"
#include "harness/views/arrangement.h"
#include "harness/views/idle_key.h"
#include "harness/views/published.h"
#include "harness/views/show.h"
#include "harness/views/significance.h"

namespace tearless {
class TableReader;
}

namespace tearless::harness {

struct Grid;
struct View;

/// The layout of the table and the content of its cells.
struct TableSpec {
  static constexpr const char* kSection = "table";
  static constexpr const char* kTitle = "caption";
  static constexpr bool kHasDefaultTitle = true;  // that of the grid

  /// A row or a column that the grid does not have: a weighted sum of its rows (columns), of each seed, or published
  /// numbers alone. The weights of a mean of k are 1/k, those of a difference 1 and -1.
  struct AddedLine {
    std::vector<Name> labels;  // one for each axis of the rows (columns)
    std::vector<std::pair<size_t, double>>
        sum;  // index into the layout's rows (columns) → weight; empty: published alone
    bool is_difference = false;
    std::optional<size_t> before;    // index into the layout's rows (columns) before which it stands; nullopt: last
    std::string score;               // of a column; "": the first of the table
    std::optional<size_t> baseline;  // of a column: the layout's row that is subtracted from each
    // Of a row of published numbers alone: for each of the layout's columns, by score; "": the first of the column.
    std::vector<std::map<std::string, PublishedNumber>> published;
    Name source;  // of these
  };

  /// A line of the header, below the labels of the columns: a text for the labels of an axis.
  struct HeaderLine {
    Name name;
    size_t axis = 0;                    // index into Grid::axes; it is in `columns`
    std::map<std::string, Name> texts;  // label → text
  };

  /// What is bold in a column: nothing; the best mean; or that and what the test cannot tell from it.
  enum class Bold { kNone, kBest, kNotWorse };

  /// The notes below a table, in their order, by the words of the key `notes`.
  static constexpr std::array kNotes = {"cells",    "names",  "select",   "published", "seeds",  "test",
                                        "power",    "marks",  "failures", "machines",  "factor", "resume",
                                        "warnings", "sample", "excluded", "missing"};

  /// In LaTeX.
  enum class Width { kAsNeeded, kColumn, kPage };

  Arrangement arrangement;  // of the rows, columns and cells
  CellRules rules;
  std::vector<std::string> scores;                                  // names, or patterns with `*`; empty: test.*
  std::optional<size_t> scores_axis;                                // of columns, whose labels have scores of their own
  std::map<std::string, std::vector<std::string>> scores_of_label;  // label of that axis → scores
  std::map<std::string, Show> shows;                                // score or pattern; others: default_show()
  std::map<std::string, int> decimals;  // score or pattern → digits after the point; others: derived from the spread
  std::map<std::string, bool> highest_is_best;  // score or pattern; others: it is
  // Rows of the layout, in its order: each row is compared with the last of them that stands above it, and those above
  // all of them with the first.
  std::vector<size_t> baselines;
  std::optional<SignificanceTest> test;  // which differences are marked
  Bold bold = Bold::kNone;
  std::vector<Published> published;
  std::vector<AddedLine> added_rows, added_columns;
  std::vector<HeaderLine> header;
  std::optional<std::set<std::string>> notes;  // of kNotes; nullopt: all
  std::vector<Name> own_notes;                 // below these
  std::string label;                           // \label in LaTeX; "": none
  Width width = Width::kAsNeeded;
  std::vector<NamedScore> named;  // all scores that the sections above name
  std::vector<IdleKey> idle;

  /// The names and patterns of a column of the layout (Coordinates); empty: test.*.
  const std::vector<std::string>& scores_of_column(const Grid& grid, const std::vector<uint32_t>& column) const;
};

/// `others`: the views before it. UserError with file and line for every mistake.
void read_view(TableReader& reader, const Grid& grid, const std::vector<View>& others, TableSpec& spec);

}  // namespace tearless::harness
