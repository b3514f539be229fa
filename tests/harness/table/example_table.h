// Tables of grids that are written in a test, with the results that it says.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/grid/expand.h"
#include "harness/table/table.h"
#include "tests/support/paths.h"

namespace tearless::harness::example {

inline Grid load_text(std::string_view text) {
  const test::TempFolder folder;
  test::write_text(folder / "grid.toml", text);
  Grid grid = load_grid(folder / "grid.toml");
  grid.file = "grids/example.toml";
  return grid;
}

using Scores = std::map<std::string, double>;
/// How the run ended that has these labels, axis → label, and this seed.
using OutcomeOf = std::function<RunResult(std::map<std::string, std::string> labels, int64_t seed)>;

inline RunResult done(Scores scores) { return {.state = RunState::kDone, .scores = std::move(scores)}; }
inline RunResult ended(RunState state) { return {.state = state}; }

inline std::vector<Row> rows_of(const Grid& grid, const OutcomeOf& outcome_of) {
  std::vector<Row> rows;
  for (const Combination& combination : runs_of(grid)) {
    std::map<std::string, std::string> labels;
    Run run{.id = fmt::format("{:016x}", rows.size()), .settings = "", .seed = combination.seed};
    for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
      const std::string& label = grid.axes[axis].points[combination.index[axis]].label;
      labels[grid.axes[axis].name] = label;
      run.coordinates.emplace_back(grid.axes[axis].name, label);
    }
    RunResult result = outcome_of(labels, combination.seed);
    result.id = run.id;
    rows.push_back({.run = run, .trained = run.id, .result = result});
  }
  return rows;
}

inline Table table_of(std::string_view text, const OutcomeOf& outcome_of, Notes notes = Notes::kAll) {
  const Grid grid = load_text(text);
  const View view = views_of(grid).at(0);
  return fill(grid, view.title, view.table(), rows_of(grid, outcome_of), "", ResumeNote::kIfDifferent, notes);
}

/// The texts of all cells: a list for each row, labels first.
inline std::vector<std::vector<std::string>> texts_of(const Table& table) {
  std::vector<std::vector<std::string>> texts;
  for (const Table::Row& row : table.rows) {
    std::vector<std::string>& line = texts.emplace_back(row.labels);
    for (size_t i = 0; i < row.cells.size(); ++i) line.push_back(cell_text(table, table.columns[i], row.cells[i]));
  }
  return texts;
}

}  // namespace tearless::harness::example
