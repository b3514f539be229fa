// `tearless diff` of two sweeps: what is compared, and what is said where nothing can be.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::diff_sweeps_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class DiffOfSweeps : public RunTest {
 protected:
  // Trains a grid under a name. Runs that fail are no error here.
  void train(const std::string& name, const std::string& grid) {
    test::write_text(folder_ / (name + ".toml"), grid);
    tearless({"run", name + ".toml", "--name", name});
  }
  std::string refusal(const std::vector<std::string>& arguments) const {
    const test::Finished finished = tearless(arguments);
    EXPECT_EQ(finished.code, 2) << testing::PrintToString(arguments) << finished.output;
    return finished.errors;
  }
  json compared(std::vector<std::string> words = {"before", "after"}) const {
    words.insert(words.begin(), {"--json", "diff"});
    return json::parse(ok(words).output);
  }
};

// A bundle of an axis with its score.
std::string point(const std::string& axis, const std::string& label, double score) {
  return fmt::format("[[axis.{0}]]\nlabel = \"{1}\"\nset = {{ \"model.{0}\" = \"{1}\", \"fake.score.dev\" = {2} }}\n",
                     axis, label, score);
}

TEST_F(DiffOfSweeps, AreComparedBySettingsAndCells) {
  const std::string grid = "seeds = 2\n[axis]\n\"model.kind\" = [\"a\", \"b\"]\n[set]\n\"fake.updates\" = 4\n";
  test::write_text(folder_ / "grid.toml", grid + "\"fake.score.dev\" = 7\n");
  ok({"run", "grid.toml", "--name", "before"});
  test::write_text(folder_ / "grid.toml", grid + "\"fake.score.dev\" = 7.5\n\"train.lr\" = 0.1\n");
  ok({"run", "grid.toml", "--name", "after", "--only", "model.kind=a"});
  const json found = json::parse(ok({"--json", "diff", "before", "after"}).output);
  EXPECT_EQ(found.at("runs"), (json{{"both", 2}, {"only", {2, 0}}}));
  EXPECT_EQ(found.at("settings"), (json::array({{{"key", "fake.score.dev"}, {"values", {"7", "7.5"}}, {"runs", 2}},
                                                {{"key", "train.lr"}, {"values", {"–", "0.1"}}, {"runs", 2}}})));
  bool has_dev = false;
  for (const json& cell : found.at("cells")) {
    EXPECT_EQ(cell.at("labels"), (json{{"model.kind", "a"}}));
    has_dev |= cell.at("score") == "dev" && cell.at("means") == json({7.0, 7.5});
  }
  EXPECT_TRUE(has_dev) << found;
  const std::string text = ok({"diff", "before", "after"}).output;
  EXPECT_THAT(text, testing::AllOf(HasSubstr("2 runs of both, 2 of "), HasSubstr("+0.5"), HasSubstr("train.lr")));
  EXPECT_THAT(ok({"diff", "before", "before"}).output,
              testing::AllOf(HasSubstr("4 runs of both, 0 of "), HasSubstr("No mean of a cell differs")));
}

// Of 1 and 4 for two values of an axis that the other sweep lacks, 2.5 would be a number of no experiment.
TEST_F(DiffOfSweeps, WithAnAxisThatOneAloneHasAreRefusedUntilWhereTakesOneOfItsValues) {
  train("before", "[axis]\n\"model.norm\" = [\"x\"]\n[set]\n\"fake.score.dev\" = 3\n");
  train("after", "[axis]\n\"model.norm\" = [\"x\"]\n" + point("size", "s", 1) + point("size", "m", 4));
  for (const auto& [left, right] : {std::pair("before", "after"), std::pair("after", "before")}) {
    EXPECT_THAT(
        refusal({"diff", left, right}),
        ContainsRegex("sweep after-[0-9a-f]{8} has the axis size, which before-[0-9a-f]{8} has not; compare one of "
                      "its values, as in --where \"size=m\"; it has: m, s"));
  }
  for (const auto& [label, score] : {std::pair("s", 1.0), std::pair("m", 4.0)}) {
    const json found = compared({"before", "after", "--where", std::string("size=") + label});
    EXPECT_EQ(found.at("runs"), (json{{"both", 1}, {"only", {0, 0}}})) << label;
    EXPECT_EQ(found.at("cells").at(0).at("means"), json({3.0, score})) << label;
    EXPECT_EQ(found.at("cells").at(0).at("labels"), (json{{"model.norm", "x"}}));
  }
  EXPECT_THAT(refusal({"diff", "before", "after", "--where", "depth=2"}),
              HasSubstr("--where: the grid has no axis depth; it has: model.norm"));
}

TEST_F(DiffOfSweeps, OfWhichWhereLeavesNoRunOfOneAreRefused) {
  const std::string grid = "[axis]\n\"model.norm\" = [\"x\", \"y\"]\n" + point("size", "s", 1) + point("size", "m", 4);
  train("before", grid);
  train("after", grid + "[[exclude]]\nwhen = { \"model.norm\" = \"x\", size = \"m\" }\nwhy = \"w\"\n");
  EXPECT_THAT(refusal({"diff", "before", "after", "--where", "model.norm=x", "--where", "size=m"}),
              ContainsRegex("--where leaves no run of sweep after-[0-9a-f]{8}\n"));
}

// An axis of one value tells nothing apart.
TEST_F(DiffOfSweeps, WithAnAxisOfOneValueThatTheOtherLacksAreCompared) {
  train("before", "[axis]\n\"model.norm\" = [\"x\"]\n[set]\n\"fake.score.dev\" = 3\n");
  train("after", "[axis]\n\"model.norm\" = [\"x\"]\n" + point("size", "s", 1));
  EXPECT_EQ(compared().at("cells").at(0).at("means"), json({3.0, 1.0}));
}

TEST_F(DiffOfSweeps, AreComparedOverTheSeedsThatHaveAValueInBothAndNameTheOthers) {
  const std::string grid = "[axis]\n\"fake.behaviour\" = [\"succeed\"]\n\"model.kind\" = [\"a\"]\n";
  train("before", "seeds = [1, 2, 3]\n" + grid);
  train("after", "seeds = [2, 3, 4]\n" + grid + "[set]\n\"train.lr\" = 0.1\n");
  const json cell = compared().at("cells").at(0);
  EXPECT_EQ(cell.at("seeds"), json({2, 3}));
  EXPECT_EQ(cell.at("n"), json({3, 3}));
  const json runs = json::parse(ok({"runs", "before", "after", "--json"}).output);
  const std::string score = cell.at("score");
  std::map<std::string, std::vector<double>> values;  // by sweep, of the seeds of both
  for (const json& run : runs) {
    const int64_t seed = run.at("seed");
    const std::string sweep = run.at("sweep");
    if (seed == 2 || seed == 3) values[sweep.substr(0, sweep.find('-'))].push_back(run.at("scores").at(score));
  }
  EXPECT_DOUBLE_EQ(cell.at("means").at(0), (values["before"].at(0) + values["before"].at(1)) / 2);
  EXPECT_DOUBLE_EQ(cell.at("means").at(1), (values["after"].at(0) + values["after"].at(1)) / 2);

  train("fewer", "seeds = [2]\n" + grid);  // the same run
  const json same = compared({"before", "fewer"});
  ASSERT_FALSE(same.at("cells").empty()) << "two seeds are not in both";
  EXPECT_EQ(same.at("cells").at(0).at("n"), json({3, 1}));
  EXPECT_EQ(same.at("cells").at(0).at("seeds"), json({2}));
  EXPECT_EQ(same.at("cells").at(0).at("means").at(0), same.at("cells").at(0).at("means").at(1));
  EXPECT_THAT(ok({"diff", "before", "after", "--where", "seed=2"}).output, Not(HasSubstr("(1/")))
      << "all that were asked for";
}

// A point of the axis ends so in one of the sweeps; the other point has its scores.
TEST_F(DiffOfSweeps, SayWhichSeedsHaveNoValueAndWhy) {
  const auto grid = [](const std::string& behaviour) {
    const std::string set = "set = { \"fake.behaviour\" = \"";
    return "seeds = 2\n[axis]\n[[axis.kind]]\nlabel = \"a\"\n" + set + "succeed\" }\n[[axis.kind]]\nlabel = \"b\"\n" +
           set + behaviour + "\" }\n";
  };
  train("before", grid("crash_once"));  // and then is done
  for (const auto& [behaviour, word] : {std::pair("refuse_late", "failed"), std::pair("diverge", "diverged")}) {
    const std::string name = std::string("ends_") + word;
    train(name, grid(behaviour));
    const json found = compared({"before", name});
    ASSERT_FALSE(found.at("cells").empty());
    for (const json& cell : found.at("cells")) {
      EXPECT_EQ(cell.at("labels"), (json{{"kind", "b"}})) << "where nothing differs";
      EXPECT_EQ(cell.at("without_value"), json::array({json::object(), {{"1", word}, {"2", word}}}));
      EXPECT_EQ(cell.at("means"), json({nullptr, nullptr})) << "no seed of both has a value";
    }
    EXPECT_THAT(ok({"diff", "before", name}).output,
                AllOf(HasSubstr("none in common"), ContainsRegex(name + "-[0-9a-f]{8}: 1, 2 " + word)));
  }
}

TEST_F(DiffOfSweeps, OfWhichOneHasNoResultOrAnotherScoreSayThatNothingWasCompared) {
  const std::string grid = "[axis]\n\"model.kind\" = [\"a\"]\n";
  train("before", grid);
  train("crashed", grid + "[set]\n\"fake.behaviour\" = \"refuse_late\"\n");
  EXPECT_THAT(ok({"diff", "before", "crashed"}).output,
              AllOf(ContainsRegex("No run of crashed-[0-9a-f]{8} has a result: nothing was compared"),
                    Not(HasSubstr("No mean"))));
  const json crashed = compared({"crashed", "before"});
  EXPECT_EQ(crashed.at("notes").size(), 1u);
  EXPECT_EQ(crashed.at("cells"), json::array());
  train("other_seed", "seeds = [2]\n" + grid);
  EXPECT_THAT(ok({"diff", "before", "other_seed"}).output,
              HasSubstr("No cell has a seed with a value in both: nothing was compared."));
}

// As `table --layout` would have the right sweep: by the first table of the left one.
TEST_F(DiffOfSweeps, AreComparedByTheRulesOfTheFirstTableOfTheLeftOne) {
  const std::string axes = "[axis]\n\"model.norm\" = [\"x\"]\n";
  const auto sizes = [](double s, double m) { return point("size", "s", s) + point("size", "m", m); };
  const std::string choosing =
      "[table]\nscores = [\"dev\"]\nselect = { over = [\"size\"], by = \"dev\" }\nfactor = 100\n";
  train("before", axes + sizes(0.3, 0.2) + choosing);
  train("after", axes + sizes(0.1, 0.4));
  const json chosen = compared().at("cells").at(0);
  EXPECT_EQ(chosen.at("means"), json({30.0, 40.0})) << "the best of each, times the factor";
  EXPECT_EQ(chosen.at("labels"), (json{{"model.norm", "x"}}));
  EXPECT_THAT(ok({"diff", "before", "after"}).output, AllOf(HasSubstr("30 @s"), HasSubstr("40 @m")));
  std::set<std::string> sizes_of_both;
  const json plain = compared({"after", "before"});
  for (const json& cell : plain.at("cells")) sizes_of_both.insert(cell.at("labels").at("size"));
  EXPECT_THAT(sizes_of_both, testing::ElementsAre("m", "s")) << "the grid of the other one has no table";

  train("limited", axes + sizes(0.3, 0.2) + "[table]\nscores = [\"dev\"]\nfail_below = 0.25\n");
  const json by_limit = compared({"limited", "after"});
  ASSERT_FALSE(by_limit.at("cells").empty());
  for (const json& cell : by_limit.at("cells")) {
    const bool is_s = cell.at("labels").at("size") == "s";
    EXPECT_EQ(cell.at("n"), is_s ? json({1, 0}) : json({0, 1})) << cell;
    EXPECT_EQ(cell.at("without_value").at(is_s ? 1 : 0), (json{{"1", "below"}})) << cell;
  }
}

}  // namespace
}  // namespace tearless::harness::diff_sweeps_test
