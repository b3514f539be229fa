// Tables of a sweep whose looks decided how many seeds each cell has: what a fixed number of seeds would be tested with
// is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/notes_of.h"
#include "tests/harness/table/example_table.h"

namespace tearless::harness::looks_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kNote =
    "Looks decided how many seeds cells have: marks, bold by a test, intervals and p would be wrong and are left out; "
    "tearless check-table has the verdicts.";

/// b is above a by 9, 10 and 11, c below it by as much. `seeds_of_c`: 3 are all.
Table table(int seeds_of_c, const std::string& keys, const std::string& looks = "[claims]\nlooks = [2, 3]\n") {
  const Grid grid = example::load_text(
      "seeds = 3\n" + looks + "[axis]\nnorm = [\"a\", \"b\", \"c\"]\n[table]\nrows = \"norm\"\nscores = \"s\"\n" +
      "decimals = 1\nbaseline = \"a\"\n" + keys + "[[claim]]\ntext = \"t\"\nbetter = [\"b\", \"a\"]\n");
  std::vector<Row> rows = example::rows_of(grid, [](auto labels, int64_t seed) {
    const double sign = labels["norm"] == "a" ? 0 : labels["norm"] == "b" ? 1 : -1;
    return example::done({{"s", 50 + static_cast<double>(seed) + sign * (8 + static_cast<double>(seed))}});
  });
  std::erase_if(rows,
                [&](const Row& row) { return row.run.coordinates[0].second == "c" && row.run.seed > seeds_of_c; });
  const View view = views_of(grid).at(0);
  return fill(grid, view.title, view.table(), rows);
}

std::vector<std::string> column_of(const Table& table) {
  std::vector<std::string> texts;
  for (const auto& line : example::texts_of(table)) texts.push_back(line.at(1));
  return texts;
}

size_t count_bold(const Table& table) {
  return static_cast<size_t>(
      std::ranges::count_if(table.rows, [](const Table::Row& row) { return row.cells[0].is_bold; }));
}

const std::string kTest = "[table.test]\n";

TEST(TablesOfLooks, HaveTheirTestsWhereEachCellHasAllSeeds) {
  const Table all = table(3, "show = \"{mean:.1f}\"\n" + kTest);
  EXPECT_THAT(column_of(all), ElementsAre("52.0", "62.0†", "42.0†"));
  EXPECT_EQ(count_bold(all), 1u);
  EXPECT_THAT(notes_of(all), Not(Contains(kNote)));
}

TEST(TablesOfLooks, HaveNoMarksAndNoBoldWhereACellHasFewer) {
  const Table fewer = table(2, "show = \"{mean:.1f}\"\n" + kTest);
  EXPECT_THAT(column_of(fewer), ElementsAre("52.0", "62.0", "42.0"));
  EXPECT_EQ(count_bold(fewer), 0u);
  EXPECT_THAT(notes_of(fewer), Contains(kNote));
  EXPECT_THAT(notes_of(fewer), Contains(HasSubstr("over the first 2 to 3 of 3 seeds (1, 2, 3)")));
  EXPECT_THAT(notes_of(fewer), Not(Contains(HasSubstr("p ≤"))));
  EXPECT_THAT(column_of(table(2, "show = \"{mean:.1f}\"\n[table.test]\nwithin = \"90 s\"\n")),
              ElementsAre("52.0", "62.0", "42.0"))
      << "≈ is a test, too";
}

TEST(TablesOfLooks, KeepTheHighestMeanBold) {
  EXPECT_EQ(count_bold(table(2, "bold = \"best\"\n")), 1u) << "which is no test";
}

TEST(TablesOfLooks, ShowNoIntervalAndNoPWhereACellHasFewer) {
  for (const char* show : {"{mean:.1f} ± {ci95:.1f}", "{mean:.1f} ({delta:.1f} ± {delta_ci95:.1f})",
                           "{mean:.1f} p = {p:.4f}", "{better_low:.1f}", "{better_high:.1f}"}) {
    const std::string keys = "show = \"" + std::string(show) + "\"\n" + kTest;
    EXPECT_EQ(column_of(table(2, keys)), column_of(table(2, ""))) << show;
    EXPECT_NE(column_of(table(3, keys)), column_of(table(3, ""))) << show;
  }
  EXPECT_THAT(column_of(table(2, "")), ElementsAre("52.0 ± 1.0", "62.0 ± 2.0", "42.0 ± 0.0"));
}

TEST(TablesOfLooks, AreOthersThanThoseOfAGridWithout) {
  const Table missing = table(2, "show = \"{mean:.1f}\"\n" + kTest, "");
  EXPECT_THAT(column_of(missing).at(1), HasSubstr("†"));
  EXPECT_THAT(notes_of(missing), Not(Contains(kNote)));
}

}  // namespace
}  // namespace tearless::harness::looks_test
