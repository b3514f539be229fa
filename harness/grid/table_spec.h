// A view that is a table: the sections [table] of a grid file.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

struct Grid;
class TableReader;

/// The layout of the table and the content of its cells.
struct TableSpec {
  static constexpr const char* kSection = "table";

  enum class Show { kMeanSpreadCount, kMeanSpread, kMean };

  /// Model selection. Of the runs that differ on the axes `over` only, the table reports the best: the point with the
  /// best mean of the score `by` over the seeds. `by` is a score on the development set, so the reported test score
  /// does not take part in the choice.
  struct Select {
    std::vector<size_t> over;  // indices into Grid::axes; none of them is in rows or columns
    std::string by;
    bool highest = true;  // false: the lowest mean is best
  };

  /// The numbers that a paper published for this table, or its words ("fail").
  struct Published {
    std::string source;                               // "TwT, Table 3"
    std::string score;                                // the score that the numbers are of
    std::vector<std::vector<nlohmann::json>> values;  // [row][column]; a number, or a text printed as it is ("": none)
  };

  std::vector<size_t> rows;         // indices into Grid::axes, outermost first
  std::vector<size_t> columns;      // indices, too; each axis is in exactly one of rows, columns and select.over
  std::vector<std::string> scores;  // names, or patterns with `*`; empty: test.*
  Show show = Show::kMeanSpreadCount;
  std::map<std::string, int> decimals;  // score or pattern → digits after the point; others: derived from the spread
  std::map<std::string, double> factors;  // score or pattern → by what the table multiplies it; others: 1
  std::optional<double> fail_below;       // a done run whose first score is lower counts as failed, in every column
  bool count_diverged = false;  // a diverged run counts with the scores of its best checkpoint, if it has them
  std::optional<Select> select;
  std::optional<Published> published;
};

/// UserError with file and line for every mistake. REQUIRES: the rest of `grid` is complete.
void read_view(TableReader& reader, const Grid& grid, TableSpec& spec);

}  // namespace tearless::harness
