// Rows by their labels: which belong to a cell, which row a score is of, and the values by seed.
#include "harness/results/row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/grid/grid.h"

namespace tearless::harness::row_test {
namespace {

using testing::ElementsAre;

Row trained(const std::string& id, const Labels& labels, int64_t seed, std::map<std::string, double> scores = {}) {
  return {.run = {.id = id, .settings = "", .coordinates = labels, .seed = seed},
          .trained = id,
          .result = {.id = id, .state = RunState::kDone, .scores = std::move(scores)}};
}

Row derived(const std::string& id, const Row& of, const std::string& name, std::map<std::string, double> scores) {
  Row row = of;
  row.run.id = id;
  row.run.coordinates.emplace_back(kDerivedLabel, name);
  row.derivation = name;
  row.result = {.id = id, .state = RunState::kDone, .scores = std::move(scores)};
  return row;
}

std::vector<std::pair<int64_t, double>> values(const Group& of, const std::string& score, bool count_diverged = false) {
  std::vector<std::pair<int64_t, double>> pairs;
  for (const SeedValue& one : values_of(of.replicates(), score, count_diverged))
    pairs.emplace_back(one.seed, one.value);
  return pairs;
}

TEST(Group, HasTheRowsWithTheSameLabelsWhateverTheirOtherAxes) {
  const std::vector<Row> rows = {trained("a", {{"norm", "x"}, {"depth", "1"}}, 1),
                                 trained("b", {{"norm", "y"}, {"lr", "1"}}, 1),
                                 trained("c", {{"depth", "2"}, {"norm", "x"}}, 1)};
  const std::vector<Group> groups = group(rows, std::vector<std::string>{"norm"});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].key, ElementsAre("x"));
  EXPECT_THAT(groups[0].rows, ElementsAre(&rows[0], &rows[2]));
  EXPECT_THAT(groups[1].rows, ElementsAre(&rows[1]));
  EXPECT_EQ(group(rows, std::vector<std::string>{"depth"}).size(), 3u) << "a row without the axis has no label there";
}

TEST(Group, GivesTheValuesOfAScoreBySeed) {
  std::vector<Row> rows = {trained("a", {}, 3, {{"test.bleu", 20}}), trained("b", {}, 1, {{"test.bleu", 22}}),
                           trained("c", {}, 2, {{"dev.bleu", 5}}), trained("d", {}, 4, {{"test.bleu", 9}})};
  rows[3].result.state = RunState::kDiverged;
  const Group all = group(rows, std::vector<std::string>{}).at(0);
  EXPECT_THAT(values(all, "test.bleu"), ElementsAre(std::pair(3, 20), std::pair(1, 22)));
  EXPECT_THAT(values(all, "test.bleu", /*count_diverged=*/true),
              ElementsAre(std::pair(3, 20), std::pair(1, 22), std::pair(4, 9)));
}

TEST(Group, TakesAScoreThatBeginsWithTheNameOfADerivationFromTheRunDerivedOfThatSeed) {
  const Row one = trained("a", {{"x", "1"}}, 1, {{"test.bleu", 20}}), two = trained("b", {{"x", "1"}}, 2);
  const std::vector<Row> rows = {one, two, derived("c", two, "wide", {{"wide.test.bleu", 32}}),
                                 derived("d", one, "wide", {{"wide.test.bleu", 31}}), derived("e", one, "wid", {})};
  const Group cell = group(rows, std::vector<std::string>{"x"}).at(0);
  EXPECT_THAT(values(cell, "wide.test.bleu"), ElementsAre(std::pair(1, 31), std::pair(2, 32)));
  const std::vector<Replicate> replicates = cell.replicates();
  ASSERT_EQ(replicates.size(), 2u);
  EXPECT_EQ(replicates[0].row_of("wid.test.bleu").run.id, "e");
  EXPECT_EQ(replicates[0].row_of("wider.test.bleu").run.id, "a");
  EXPECT_EQ(replicates[1].row_of("wid.test.bleu").run.id, "b") << "it has none of that name";
}

TEST(Group, KeepsDerivedRunsOfTwoSweepsApart) {
  Row old_one = trained("a", {{"x", "1"}}, 1), new_one = old_one;
  Sweep sweep;
  sweep.id = "old";
  old_one.sweep = std::make_shared<const Sweep>(sweep);
  sweep.id = "new";
  new_one.sweep = std::make_shared<const Sweep>(sweep);
  const std::vector<Row> rows = {old_one, new_one, derived("b", new_one, "wide", {{"wide.test.bleu", 9}}),
                                 derived("c", old_one, "wide", {{"wide.test.bleu", 8}})};
  const std::vector<Replicate> replicates = group(rows, std::vector<std::string>{"x"}).at(0).replicates();
  ASSERT_EQ(replicates.size(), 2u);
  EXPECT_EQ(replicates[0].row_of("wide.test.bleu").run.id, "c");
  EXPECT_EQ(replicates[1].row_of("wide.test.bleu").run.id, "b");
}

TEST(DerivationOf, ARunIsItsLabelOrItsOwnSetting) {
  EXPECT_EQ(derivation_of({.id = "a", .settings = "x = 1\n", .coordinates = {{"x", "an axis"}}}), "");
  EXPECT_EQ(derivation_of({.id = "a", .settings = "", .coordinates = {{"x", "1"}, {"derived", "wide"}}}), "wide");
  const std::string settings = "derived.name = \"wide\"\nderived.of = \"0123456789abcdef\"\n";
  EXPECT_EQ(derivation_of({.id = "a", .settings = settings}), "wide") << "no sweep has it any more";
}

}  // namespace
}  // namespace tearless::harness::row_test
