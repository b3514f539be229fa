// Tables of grids that are no plain product: what stands where a grid has no run, where runs repeat, and beside a
// sample or settings of the command line.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/grid/expand.h"
#include "harness/statistics/power.h"
#include "harness/table/table.h"
#include "tests/harness/notes_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::grid_forms_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class GridForms : public testing::Test {
 protected:
  /// Every run has the score 7, or that of score_of_; `id_of` says which runs are one.
  Table table_of(
      const std::string& text, const std::vector<std::string>& set = {},
      const std::function<std::string(const std::string& cell)>& id_of = [](const std::string& cell) { return cell; },
      const std::string& local = "") {
    test::write_text(folder_ / "grid.toml", text);
    const Grid grid = load_grid(folder_ / "grid.toml", set);
    std::vector<Row> rows;
    for (const Combination& point : runs_of(grid)) {
      Row& row = rows.emplace_back();
      row.run.id = row.trained = row.result.id = id_of(describe_combination(grid, point));
      row.run.seed = point.seed;
      row.run.local = local;
      row.result.state = RunState::kDone;
      row.result.scores = {{"test.bleu", score_of_(row.run.id, point.seed)}};
      for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
        row.run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[point.index[axis]].label);
      }
    }
    return fill(grid, {grid.title}, views_of(grid).front().table(), rows);
  }
  static std::vector<std::string> cells(const Table& table) {
    std::vector<std::string> all;
    for (const Table::Row& row : table.rows) {
      std::string text;
      for (size_t i = 0; i < row.cells.size(); ++i) text += "|" + cell_text(table, table.columns[i], row.cells[i]);
      all.push_back(text);
    }
    return all;
  }

  test::TempFolder folder_;
  std::function<double(const std::string& id, int64_t seed)> score_of_ = [](const std::string&, int64_t) { return 7; };
};

TEST_F(GridForms, APlaceWithoutRunsIsEmptyAndOneThatIsExcludedSaysSo) {
  const Table table = table_of(R"(
[axis]
opt = ["adam", "sgd"]
[axis.momentum]
values = [0.5, 0.9]
when = { opt = "sgd" }
[[exclude]]
when = { momentum = 0.9 }
why = "w"
[axis.depth]
values = [2, 4]
[table]
rows = ["opt", "depth"]
columns = "momentum"
)");
  EXPECT_THAT(cells(table), ElementsAre("||7.00", "||7.00", "|7.00|", "|7.00|"));
  EXPECT_EQ(table.columns.at(1).labels, std::vector<std::string>{"–"});
  const Table excluded = table_of(R"(
[axis]
a = [1, 2]
b = [1, 2]
[[exclude]]
when = { a = 1, b = 2 }
why = "w"
)");
  EXPECT_THAT(cells(excluded), ElementsAre("|7.00|left out", "|7.00|7.00"));
}

TEST_F(GridForms, SubgridsAreRowsWithAllTheirAxes) {
  const Table table = table_of(R"(
[[subgrid]]
label = "depth"
axis.layers = [2, 4]
[[subgrid]]
label = "width"
axis.d = [64]
)");
  EXPECT_THAT(table.row_axes, ElementsAre("subgrid", "layers", "d"));
  EXPECT_THAT(table.rows.at(2).labels, ElementsAre("width", "–", "64"));
  EXPECT_THAT(cells(table), ElementsAre("|7.00", "|7.00", "|7.00"));
}

constexpr const char* kTwoKinds =
    "seeds = 2\n[axis]\nkind = [\"x\", \"y\"]\nlr = [0.1, 0.2]\n[table]\nrows = [\"kind\", \"lr\"]\n";
// On runs of the kind x lr has no effect.
std::string without_lr(const std::string& cell) {
  const size_t lr = cell.find(", lr=");
  return cell.starts_with("kind=x") ? cell.substr(0, lr) + cell.substr(cell.rfind(',')) : cell;
}

TEST_F(GridForms, TheNoteOfPowerCountsARepeatedCellOnce) {
  score_of_ = [](const std::string& id, int64_t seed) { return seed == 1 ? 0 : id.starts_with("kind=x") ? 2 : 4; };
  const Table table = table_of(kTwoKinds, {}, without_lr);
  // Variances of the cells: 2, once, and 8, twice.
  const double once = *detectable_difference(std::sqrt((2 + 8 + 8) / 3.0), 2),
               twice = *detectable_difference(std::sqrt((2 + 2 + 8 + 8) / 4.0), 2);
  EXPECT_THAT(notes_of(table), Contains(HasSubstr(fmt::format("(two-sided, 5 %): {:.1f}", once))));
  EXPECT_NE(fmt::format("{:.1f}", once), fmt::format("{:.1f}", twice));
}

TEST_F(GridForms, CellsWithTheRunsOfAnotherAreMarked) {
  const std::string text = kTwoKinds;
  const Table table = table_of(text, {}, without_lr);
  EXPECT_THAT(cells(table), ElementsAre("|7.00 ± 0.00", "|7.00 ± 0.00 ≡", "|7.00 ± 0.00", "|7.00 ± 0.00"));
  EXPECT_THAT(notes_of(table), Contains(HasSubstr("≡: the same runs")));
  EXPECT_THAT(notes_of(table_of(text)), Not(Contains(HasSubstr("≡"))));
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("$\\equiv$"));
  EXPECT_THAT(render(table, TableFormat::kJson), HasSubstr("\"repeats\": true"));
}

TEST_F(GridForms, ASampleSaysOfHowMany) {
  EXPECT_THAT(notes_of(table_of("sample = { count = 2, seed = 4 }\n[axis]\na = [1, 2, 3]\n")),
              Contains("2 of 3 points, drawn at random with seed 4."));
}

constexpr const char* kPublished =
    "[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\npublished = { source = \"a paper\", values = [[6.5]] }\n";

TEST_F(GridForms, PublishedNumbersStandBesideThePapersSettingsOnly) {
  EXPECT_THAT(cells(table_of(kPublished)), ElementsAre("|7.00 [6.5, +0.50]"));
  EXPECT_THAT(cells(table_of(kPublished, {"run.device=cpu"})), ElementsAre("|7.00 [6.5, +0.50]"));
  const auto id_of = [](const std::string& cell) { return cell; };
  EXPECT_THAT(cells(table_of(kPublished, {"run.log=x"}, id_of, "a = 1\nrun.log = \"x\"\n")),
              ElementsAre("|7.00 [6.5, +0.50]"))
      << "a local setting";
  const Table other = table_of(kPublished, {"train.max_epochs=1", "run.device=cpu"}, id_of, "a.train.max_epochs = 1\n");
  EXPECT_THAT(cells(other), ElementsAre("|7.00"));
  EXPECT_THAT(notes_of(other),
              Contains("Without the published numbers, which are not of runs with --set train.max_epochs."));
}

}  // namespace
}  // namespace tearless::harness::grid_forms_test
