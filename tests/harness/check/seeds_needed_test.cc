// How many seeds claims need, over tables with known values.
#include "harness/check/seeds_needed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "harness/grid/expand.h"
#include "tests/support/paths.h"

namespace tearless::harness::seeds_needed_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kGrid = R"(
title = "T"
[axis]
norm = ["a", "b"]
task = ["q", "p", "r"]
[table]
rows = "norm"
columns = "task"
scores = ["bleu", "parameters"]
)";

/// b has 10 times the seed; a is above it by the seed on p, by half of that on q, and equal on r.
double score_of(const std::string& norm, const std::string& task, int64_t seed) {
  const double above = task == "p" ? 1 : task == "q" ? 0.5 : 0;
  return (norm == "a" ? 10 + above : 10) * static_cast<double>(seed);
}

class SeedsNeededTest : public testing::Test {
 protected:
  std::vector<SeedsNeeded> needed(const std::string& claim, int known_seeds = 5, const ClaimTests& tests = {}) {
    test::write_text(folder_ / "grid.toml", "seeds = 5\n" + std::string(kGrid) + "[[claim]]\ntext = \"t\"\n" + claim);
    const Grid grid = load_grid(folder_ / "grid.toml");
    std::vector<Row> rows;
    for (const Combination& point : runs_of(grid)) {
      Row& row = rows.emplace_back();
      for (size_t axis = 0; axis < grid.axes.size(); ++axis)
        row.run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[point.index[axis]].label);
      row.run.id = row.trained = row.result.id = describe_combination(grid, point);
      row.run.seed = point.seed;
      if (point.seed > known_seeds) continue;
      row.result.state = RunState::kDone;
      row.result.scores = {{"bleu", score_of(row.run.coordinates[0].second, row.run.coordinates[1].second, point.seed)},
                           {"parameters", 7}};
    }
    const std::vector<View> views = views_of(grid);
    std::vector<Table> tables;
    for (const View& view : views) {
      const auto* spec = std::get_if<TableSpec>(&view.spec);
      tables.push_back(spec ? fill(grid, view.title, *spec, rows) : Table());
    }
    return seeds_needed(views, tables, tables, tests);
  }

  SeedsNeeded only(const std::string& claim, int known_seeds = 5, const ClaimTests& tests = {}) {
    const std::vector<SeedsNeeded> all = needed(claim, known_seeds, tests);
    return all.size() == 1 ? all.front() : SeedsNeeded{.claim = 99};
  }

  test::TempFolder folder_;
};

void expect_range(const SeedsNeeded& needed, size_t least, size_t most) {
  EXPECT_EQ(needed.least, least);
  EXPECT_EQ(needed.most, most);
}

// The ranges: s · √(ν / stats.chi2.ppf((0.9, 0.1), ν)) of SciPy, and the first n with which TTestPower().power() of
// statsmodels, or the integral of power_test.cc, is 0.8 or more.

TEST_F(SeedsNeededTest, AreARangeOverTheIntervalOfTheDeviation) {
  const SeedsNeeded found = only("better = [\"a\", \"b\"]\nmatters = \"1.5 BLEU\"\n");
  expect_range(found, 7, 35);
  EXPECT_EQ(found.claim, 1U);
  EXPECT_EQ(found.score, "bleu");
  EXPECT_EQ(found.place, (Place{{"task", "p"}}));  // of q, with half of the deviation, they are fewer
  EXPECT_DOUBLE_EQ(*found.deviation, std::sqrt(2.5));
  EXPECT_EQ(found.difference, 1.5);
  EXPECT_EQ(found.seeds, 5U);
  EXPECT_TRUE(found.is_paired);
}

TEST_F(SeedsNeededTest, GoByTheTestOfTheClaim) {
  expect_range(only("not_worse = [\"a\", \"b\"]\nwithin = \"1.5 bleu\"\n"), 6, 28);
  expect_range(only("equivalent = [\"a\", \"b\"]\nwithin = \"1.5 bleu\"\n"), 7, 38);
  expect_range(only("best = [\"a\"]\nmatters = \"1.5 bleu\"\n"), 7, 35);
  expect_range(only("above = [[\"b\", \"p\"]]\nthan = 5\nmatters = \"20 bleu\"\n"), 5, 21);
  // two independent cells with the deviations 17.4 and 15.8: by simulation
  const SeedsNeeded welch =
      only("better = [\"a\", \"b\"]\nmatters = \"20 bleu\"\npaired = false\nwhere = { task = \"p\" }\n");
  EXPECT_FALSE(welch.is_paired);
  EXPECT_NEAR(*welch.deviation, 16.62077, 1e-5);
  expect_range(welch, 8, 26);
}

TEST_F(SeedsNeededTest, AreOfAPercentageOfTheSecondMean) {
  const SeedsNeeded found = only("better = [\"a\", \"b\"]\nmatters = \"5 %\"\n");  // of 30
  EXPECT_DOUBLE_EQ(*found.difference, 1.5);
  expect_range(found, 7, 35);
  EXPECT_EQ(only("better = [\"a\", \"b\"]\nmatters = \"5 %\"\n", 0).difference, std::nullopt);
}

TEST_F(SeedsNeededTest, AreForOneDeviationWhereNothingElseIsKnown) {
  const SeedsNeeded without_matters = only("better = [\"a\", \"b\"]\n");
  expect_range(without_matters, 10, 10);
  EXPECT_TRUE(without_matters.deviation);
  const SeedsNeeded without_runs = only("better = [\"a\", \"b\"]\nmatters = \"1.5 BLEU\"\n", 1);
  expect_range(without_runs, 10, 10);
  EXPECT_EQ(without_runs.deviation, std::nullopt);
  expect_range(only("equivalent = [\"a\", \"b\"]\nwithin = \"1.5 BLEU\"\n", 0), 11, 11);
}

TEST_F(SeedsNeededTest, AreOfPlacesThatAreClaimedAndWhoseSeedsDiffer) {
  EXPECT_EQ(only("better = [\"a\", \"b\"]\nmatters = \"1 bleu\"\nnot_claimed = { task = \"p\" }\n").place,
            (Place{{"task", "q"}}));
  EXPECT_EQ(only("better = [\"a\", \"b\"]\nmatters = \"1 bleu\"\nwhere = { task = [\"q\", \"r\"] }\n").place,
            (Place{{"task", "q"}}));
  EXPECT_EQ(only("better = [\"a\", \"b\"]\nwhere = { task = \"r\" }\n").deviation, std::nullopt);  // all are equal
}

TEST_F(SeedsNeededTest, AreNotSaidOfOtherClaims) {
  EXPECT_THAT(needed("fails = \"a\"\n"), IsEmpty());
  EXPECT_THAT(needed("ratio = [\"a\", \"b\"]\nbetween = [0.9, 1.0]\n"), IsEmpty());
  EXPECT_THAT(needed("better = [\"a\", \"b\"]\nscore = \"parameters\"\n"), IsEmpty());
  EXPECT_THAT(needed("better = [\"a\", \"b\"]\nnot_claimed = true\n"), IsEmpty());
}

TEST_F(SeedsNeededTest, OfLooksAreThoseOfTheSequentialTest) {
  const ClaimTests tests = {.looks = {3, 5, 8, 12}};
  const SeedsNeeded found = only("better = [\"a\", \"b\"]\nmatters = \"3 bleu\"\n", 5, tests);
  // 5·10⁵ paths of NumPy for 3 / (√2.5 · 0.717) = 2.646 and 3 / (√2.5 · 1.939) = 0.978 deviations
  EXPECT_NEAR(found.at_looks->first.seeds, 4.723, 0.03);
  EXPECT_NEAR(found.at_looks->second.power, 0.734, 0.009);
  const SeedsNeeded equivalent = only("equivalent = [\"a\", \"b\"]\nwithin = \"1.5 bleu\"\n", 0, tests);
  EXPECT_NEAR(equivalent.at_looks->first.power, 0.7078, 0.009);  // as in power_test.cc
  EXPECT_EQ(only("better = [\"a\", \"b\"]\n").at_looks, std::nullopt);
}

TEST_F(SeedsNeededTest, AreRefusedADifferenceThatIsNone) {
  const auto refusal = [&](const std::string& claim) {
    try {
      needed(claim);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("better = [\"a\", \"b\"]\nmatters = \"0.3 ter\"\n"),
              HasSubstr("grid.toml:14: matters: ter is not the unit of the claim's score, bleu; write \"0.3 bleu\""));
  EXPECT_THAT(refusal("better = [\"a\", \"b\"]\nmatters = 0.3\n"),
              HasSubstr("matters must be a number above 0 and its unit, that of the score or % of the second's mean: "
                        "matters = \"0.3 bleu\""));
  EXPECT_THAT(refusal("equivalent = [\"a\", \"b\"]\nwithin = \"1 bleu\"\nmatters = \"0.3 bleu\"\n"),
              HasSubstr("grid.toml:15: matters: equivalent has its limit in within; leave it out"));
  EXPECT_THAT(refusal("fails = \"a\"\nmatters = \"0.3 bleu\"\n"),
              HasSubstr("matters: fails is about no difference of scores; leave it out"));
}

}  // namespace
}  // namespace tearless::harness::seeds_needed_test
