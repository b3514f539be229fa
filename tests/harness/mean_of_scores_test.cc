// A mean of several scores of runs and of what derives from them, through every command that shows scores; and the same
// in DS' Table 6, whose last column in the paper is a mean of five test sets.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::mean_of_scores_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kGrid = R"(
seeds = 3
[axis]
depth = [1, 2, 4]
[derived.wide]
beam = 8
[score.both]
of   = ["test.bleu", "wide.test.bleu"]
take = "mean"
[[table]]
caption = "T"
rows    = "depth"
scores  = ["both", "test.bleu", "wide.test.bleu"]
[[table]]
caption = "S"
select  = { over = "depth", by = "both" }
scores  = "test.bleu"
[[figure]]
caption = "F"
x       = "depth"
y       = "both"
[[claim]]
text  = "it is above 10"
score = "both"
above = [1, 2, 4]
than  = 10
)";

class MeanOfScores : public RunTest {
 protected:
  /// A command whose training program has runs with these scores.
  test::Finished asked(std::vector<std::string> arguments) const {
    test::Command asked = command(std::move(arguments));
    asked.environment["FAKE_SCORES"] =
        "test.bleu,wide.test.bleu,wmt15.newstest2015.bleu,wmt16.newstest2016.bleu,wmt17.newstest2017.bleu,"
        "wmt18.newstest2018.bleu,filtered.test.multi_bleu,sacre14.test.sacrebleu,sacre15.newstest2015.sacrebleu,"
        "sacre16.newstest2016.sacrebleu,sacre17.newstest2017.sacrebleu,sacre18.newstest2018.sacrebleu,parameters";
    return finish(asked);
  }
  std::string output_of(std::vector<std::string> arguments) const {
    const test::Finished finished = asked(std::move(arguments));
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    return finished.output;
  }
};

using BySeed = std::map<std::string, double>;

BySeed values_of(const json& table, size_t row, const std::string& score) {
  for (size_t i = 0; i < table.at("columns").size(); ++i) {
    if (table.at("columns").at(i).at("score") == score)
      return table.at("rows").at(row).at("cells").at(i).at("values").get<BySeed>();
  }
  ADD_FAILURE() << score;
  return {};
}

double mean(const BySeed& values) {
  double sum = 0;
  for (const auto& [seed, value] : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST_F(MeanOfScores, IsShownDrawnChosenByAndClaimedAsOtherScoresAre) {
  test::write_text(folder_ / "grid.toml", kGrid);
  output_of({"run", "grid.toml"});
  const json tables = json::parse(output_of({"table", "grid.toml", "--json"}));
  std::vector<double> means;
  for (size_t row = 0; row < 3; ++row) {
    const BySeed both = values_of(tables.at(0), row, "both"), test = values_of(tables.at(0), row, "test.bleu"),
                 wide = values_of(tables.at(0), row, "wide.test.bleu");
    ASSERT_EQ(both.size(), 3u);
    for (const auto& [seed, value] : both) EXPECT_NEAR(value, (test.at(seed) + wide.at(seed)) / 2, 1e-12);
    EXPECT_NE(mean(test), mean(wide)) << "or the mean shows nothing";
    means.push_back(mean(both));
  }
  const size_t best = static_cast<size_t>(std::ranges::max_element(means) - means.begin());
  EXPECT_EQ(tables.at(1).at("rows").at(0).at("cells").at(0).at("chosen"), (std::vector{"1", "2", "4"}).at(best));

  std::istringstream csv(output_of({"figure", "grid.toml", "--format", "csv"}));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "figure,y,x,mean,low,high,runs,source,diverged");
  for (size_t i = 0; i < 3 && std::getline(csv, line); ++i) {
    const std::string start = fmt::format("figure-1,both,{},", 1 << i);
    ASSERT_THAT(line, testing::StartsWith(start));
    EXPECT_NEAR(std::stod(line.substr(start.size())), means[i], 1e-9);
  }

  const json claims = json::parse(output_of({"check-table", "grid.toml", "--json"}));
  EXPECT_EQ(claims.at("claims").at(0).at("score"), "both");
  EXPECT_NEAR(claims.at("claims").at(0).at("estimate"), std::ranges::min(means), 1e-9) << "the nearest to its limit";
}

TEST_F(MeanOfScores, OfANameThatNoRunHasIsAMistakeOfTheGrid) {
  std::string grid = kGrid;
  grid.replace(grid.find("wide.test.bleu"), 14, "wide.test.blue");
  test::write_text(folder_ / "grid.toml", grid);
  output_of({"run", "grid.toml"});
  const test::Finished finished = asked({"table", "grid.toml"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.errors, HasSubstr("of: no run of this grid has a score wide.test.blue (did you mean "
                                         "\"wide.test.bleu\"?)"));
}

TEST_F(MeanOfScores, AreColumnsOfTable6OfDs) {
  fs::copy(test::source_root() / "grids", folder_ / "grids", fs::copy_options::recursive);
  output_of({"run", "grids/ds_table6.toml"});
  const json table = json::parse(output_of({"table", "grids/ds_table6.toml", "--json"}));
  const std::vector<double> kBleu = {33.16, 33.21, 33.26}, kSacre = {32.88, 32.90, 32.96};  // docs/spec/tables.md 3.7
  ASSERT_EQ(table.at("rows").size(), 8u) << "five of other authors first";
  const auto published = [&](size_t row, size_t column) {
    return table.at("rows").at(row).at("cells").at(column).at("published").get<double>();
  };
  for (size_t row = 5; row < 8; ++row) {
    double sum = values_of(table, row, "filtered.test.multi_bleu").at("1");
    for (int year = 15; year <= 18; ++year)
      sum += values_of(table, row, fmt::format("wmt{0}.newstest20{0}.bleu", year)).at("1");
    EXPECT_NEAR(values_of(table, row, "newstests").at("1"), sum / 5, 1e-12);
    EXPECT_EQ(values_of(table, row, "newstests_sacre").size(), 1u);
    EXPECT_EQ(published(row, 2), kBleu.at(row - 5));
    EXPECT_EQ(published(row, 3), kSacre.at(row - 5));
  }
  EXPECT_EQ(published(4, 2), 33.13) << "Wu et al.";
  EXPECT_EQ(published(4, 3), 32.86) << "Wu et al.";
}

}  // namespace
}  // namespace tearless::harness::mean_of_scores_test
