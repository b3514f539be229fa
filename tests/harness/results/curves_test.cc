// Curves of runs: read from the database, from gradient_norms.f32 and from scores; and the scores taken from them.
#include "harness/results/curves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "harness/runs/workspace.h"
#include "tests/support/paths.h"

namespace tearless::harness::curves_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGrid = R"(
[axis]
norm = ["a", "b"]
[score.early]
of   = "dev.bleu"
take = "mean"
to   = 20
[score.reached]
of    = "dev.bleu"
take  = "first_at_least"
value = 6
[score.norms]
of   = "gradient_norms"
take = "final"
[score.steep]
of   = "g.decoder.*.ffn"
take = "slope"
)";

class CurvesTest : public testing::Test {
 protected:
  CurvesTest() {
    const Workspace workspace(folder_ / "work");
    store_ = Store::open_writer(workspace);
    test::write_text(folder_ / "grid.toml", kGrid);
    grid_ = load_grid(folder_ / "grid.toml");
  }

  /// A run that is done, with these scores.
  void add(const std::string& id, const std::vector<MetricLine>& metrics, const std::map<std::string, double>& scores,
           const std::vector<float>& norms = {}) {
    const harness::Run run = {
        .id = id, .settings = "a = 1\n", .coordinates = {{"norm", "a"}}, .seed = 1, .updates = 10};
    store_->submit(
        {.id = "s" + id, .title = "t", .grid_file = "/g.toml", .submitted_at = "2026-01-31T12:00:00Z", .runs = {run}});
    store_->put_metrics(id, 0, metrics, 1);
    if (!norms.empty()) {
      std::string bytes(norms.size() * sizeof(float), '\0');
      std::memcpy(bytes.data(), norms.data(), bytes.size());
      test::write_text(Workspace(folder_ / "work").run(id).gradient_norms(), bytes);
    }
    Row& row = results_.rows.emplace_back();
    row.run = run;
    row.trained = id;
    row.result.state = RunState::kDone;
    row.result.scores = scores;
  }

  const ResultSet& read() {
    results_.store = Store::open_reader(Workspace(folder_ / "work"));
    return results_;
  }

  test::TempFolder folder_;
  std::unique_ptr<Store> store_;
  ResultSet results_;
  Grid grid_;
};

TEST_F(CurvesTest, AreWhatTheRunReportedAndTheNormOfEveryUpdate) {
  add("aa", {{0, 10, "dev.bleu", 5}, {40, 10, "train.loss", 7}, {80, 20, "dev.bleu", 6}}, {}, {1.5F, 2.5F, 0.5F});
  read();
  EXPECT_THAT(curve_of(results_, results_.rows[0], "dev.bleu"), ElementsAre(CurvePoint{10, 5}, CurvePoint{20, 6}));
  EXPECT_THAT(curve_of(results_, results_.rows[0], "gradient_norms"),
              ElementsAre(CurvePoint{1, 1.5}, CurvePoint{2, 2.5}, CurvePoint{3, 0.5}));
  EXPECT_TRUE(curve_of(results_, results_.rows[0], "dev.ppl").empty());
}

TEST_F(CurvesTest, OfAnUpdateThatWasReportedTwiceTheLaterLineCounts) {
  add("aa", {{0, 10, "m", 1}, {40, 20, "m", 2}, {80, 10, "m", 7}}, {});
  read();
  EXPECT_THAT(curve_of(results_, results_.rows[0], "m"), ElementsAre(CurvePoint{10, 7}, CurvePoint{20, 2}));
}

TEST_F(CurvesTest, OverLayersAreTheScoresWithTheNumberOfALayerInTheirName) {
  add("aa", {},
      {{"g.decoder.10.ffn", 4},
       {"g.decoder.2.ffn", 3},
       {"g.decoder.final", 9},
       {"g.decoder.x.ffn", 8},
       {"g.decoder.1.self", 7}});
  EXPECT_THAT(layers_of(results_.rows[0], "g.decoder.*.ffn"), ElementsAre(CurvePoint{2, 3}, CurvePoint{10, 4}));
  EXPECT_TRUE(layers_of(results_.rows[0], "g.encoder.*.ffn").empty());
}

TEST_F(CurvesTest, TheirScoresAreAddedToThoseOfTheRuns) {
  add("aa", {{0, 10, "dev.bleu", 5}, {40, 20, "dev.bleu", 6}, {80, 30, "dev.bleu", 9}},
      {{"g.decoder.1.ffn", 1}, {"g.decoder.2.ffn", 4}}, {3, 4});
  add("bb", {{0, 10, "dev.bleu", 5}}, {{"test.bleu", 1}});
  read();
  add_defined_scores(grid_, results_);
  const Row &first = results_.rows[0], &second = results_.rows[1];
  EXPECT_EQ(first.number("early"), 5.5);
  EXPECT_EQ(first.number("reached"), 20);
  EXPECT_EQ(first.number("norms"), 4);
  EXPECT_EQ(first.number("steep"), 3);
  EXPECT_EQ(second.number("early"), 5);
  EXPECT_EQ(second.number("reached"), std::nullopt);
  EXPECT_EQ(second.result.no_numbers.at("reached"), "not reached");
  EXPECT_EQ(second.result.no_numbers.at("norms"), "no curve");
}

// Of 500 to 1,000 of a metric that is a mean since the last report.
TEST_F(CurvesTest, AreOfWindowsWhereTheProgramSaysSoOrIsTearlessEngineOfBefore) {
  grid_.defined_scores = {grid_.defined_scores[0]};
  grid_.defined_scores[0].limits = {.from = 500, .to = 1000};
  const auto early = [&](const std::string& metric, const std::string& identity = "") {
    results_.rows[0].result.scores = {{"test.bleu", 1}};
    results_.rows[0].run.settings = "a = 1\n" + identity;
    grid_.defined_scores[0].of = metric;
    add_defined_scores(grid_, results_);
    return results_.rows[0].number("early").value_or(-1);
  };
  std::vector<MetricLine> lines;
  for (const char* name :
       {"train.loss", "train.ppl_smoothed", "train.lr", "dev.bleu", "grad_norm_window_mean.encoder.1"})
    for (const int64_t step : {450, 500, 550, 1000, 1050}) lines.push_back({std::ssize(lines), step, name, 1.0 * step});
  add("aa", lines, {{"test.bleu", 1}});
  read();
  const double of_windows = 775, of_points = 2050 / 3.0;
  EXPECT_EQ(early("train.loss"), of_windows);
  EXPECT_EQ(early("train.ppl_smoothed"), of_windows);
  EXPECT_EQ(early("grad_norm_window_mean.encoder.1"), of_windows);
  EXPECT_EQ(early("train.lr"), of_points);
  EXPECT_EQ(early("dev.bleu"), of_points);
  EXPECT_EQ(early("train.loss", "program.identity = \"mine 1\"\n"), of_points) << "another program, which says nothing";
  results_.windows = {"dev.*"};
  EXPECT_EQ(early("train.loss"), of_points);
  EXPECT_EQ(early("dev.bleu", "program.identity = \"mine 1\"\n"), of_windows);
}

TEST_F(CurvesTest, TheLastShareIsOfTheUpdatesThatTheRunMade) {
  grid_.defined_scores = {grid_.defined_scores[0]};
  grid_.defined_scores[0].limits = {.last = 0.1};
  add("aa", {{0, 900, "dev.bleu", 1}, {40, 950, "dev.bleu", 2}, {80, 980, "dev.bleu", 4}}, {{"test.bleu", 1}});
  add("bb", {{0, 500, "dev.bleu", 1}, {40, 800, "dev.bleu", 2}}, {{"test.bleu", 1}});
  for (Row& row : results_.rows) row.result.step = 1060;
  read();
  add_defined_scores(grid_, results_);
  EXPECT_EQ(results_.rows[0].number("early"), 4);
  EXPECT_EQ(results_.rows[1].number("early"), std::nullopt);
  EXPECT_EQ(results_.rows[1].result.no_numbers.at("early"), "no value in its part");
}

TEST_F(CurvesTest, OverLayersMayBeOfARunThatDerivesFromIt) {
  grid_.defined_scores = {grid_.defined_scores.back()};
  grid_.defined_scores[0].of = "init.grad_norm.encoder.*";
  add("aa", {}, {{"test.bleu", 1}, {"init.grad_norm.encoder.1", 100}});
  add("bb", {}, {{"test.bleu", 1}});
  add("cc", {}, {{"init.grad_norm.encoder.1", 1}, {"init.grad_norm.encoder.2", 5}});
  results_.rows[2].derivation = "init";
  results_.rows[2].trained = "aa";
  add_defined_scores(grid_, results_);
  EXPECT_EQ(results_.rows[0].number("steep"), 4);
  EXPECT_EQ(results_.rows[1].number("steep"), std::nullopt);
  EXPECT_EQ(results_.rows[1].result.no_numbers.at("steep"), "no curve");
  EXPECT_EQ(results_.rows[2].number("steep"), std::nullopt);
}

TEST_F(CurvesTest, AMeanIsOfScoresOfTheRunAndOfWhatDerivesFromIt) {
  grid_.defined_scores = {{.name = "both", .mean_of = {"test.bleu", "wide.test.bleu", "dev.bleu"}}};
  add("aa", {}, {{"test.bleu", 20}, {"dev.bleu", 31}});
  add("bb", {}, {{"wide.test.bleu", 27}});
  results_.rows[1].derivation = "wide";
  results_.rows[1].trained = "aa";
  add("cc", {}, {{"test.bleu", 20}, {"dev.bleu", 31}});
  add_defined_scores(grid_, results_);
  EXPECT_EQ(results_.rows[0].number("both"), 26);
  EXPECT_EQ(results_.rows[1].number("both"), std::nullopt) << "a score of the trained run";
  EXPECT_EQ(results_.rows[2].number("both"), std::nullopt);
  EXPECT_EQ(results_.rows[2].result.no_numbers.at("both"), "not all of its scores");
}

TEST_F(CurvesTest, NormsThatAreNotThoseThatTheRunEndedWithAreRefused) {
  add("aa", {}, {}, {1.5F, 2.5F});
  const RunDirectory run = Workspace(folder_ / "work").run("aa");
  write_done(run, "done", 2, "max_updates", {"gradient_norms.f32"});
  read();
  EXPECT_EQ(curve_of(results_, results_.rows[0], "gradient_norms").size(), 2u);
  test::write_text(run.gradient_norms(), "changed!");
  read();
  try {
    curve_of(results_, results_.rows[0], "gradient_norms");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("gradient_norms.f32: it is not the file that the run ended with"));
  }
}

TEST_F(CurvesTest, AScoreThatTheRunsHaveThemselvesIsNotReplaced) {
  add("aa", {{0, 10, "dev.bleu", 5}}, {{"early", 1}});
  read();
  try {
    add_defined_scores(grid_, results_);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("grid.toml:4: run aa has a score early itself; give this one another name"));
  }
}

TEST(CurveCollector, KeepsAShortCurveAsItIs) {
  CurveCollector collector;
  Curve expected;
  for (int i = 0; i < 4096; ++i) {
    collector.add(i, i * 0.1);
    expected.push_back({1.0 * i, i * 0.1});
  }
  EXPECT_EQ(collector.each(), 1);
  EXPECT_EQ(collector.take(), expected);
}

TEST(CurveCollector, AValueThatIsNotFiniteInterruptsWhereItStands) {
  CurveCollector collector;
  for (int i = 0; i < 3 * 4096; ++i) collector.add(i, i == 5001 ? std::nan("") : 6);
  int broken = 0;
  for (const CurvePoint& point : collector.take()) {
    if (point.y == 6) continue;
    ++broken;
    EXPECT_TRUE(std::isnan(point.y));
    EXPECT_NEAR(point.x, 5001, 2);
  }
  EXPECT_EQ(broken, 1);
}

TEST(CurveCollector, OfALongOneKeepsTheMeansOfEqualGroups) {
  CurveCollector collector;
  constexpr int kPoints = 100'003;
  for (int i = 1; i <= kPoints; ++i) collector.add(i, i % 2 == 0 ? 4 : 8);
  const int64_t each = collector.each();
  const Curve curve = collector.take();
  EXPECT_EQ(each, 32) << "the least power of two of which there are at most 4096";
  const size_t groups = (kPoints + each - 1) / each;
  ASSERT_EQ(curve.size(), groups + 2);
  EXPECT_EQ(curve.front(), (CurvePoint{1, 8})) << "the first stays";
  for (size_t i = 0; i + 1 < groups; ++i) {
    EXPECT_DOUBLE_EQ(curve[i + 1].x, static_cast<double>(i * each) + (each + 1) / 2.0);
    EXPECT_DOUBLE_EQ(curve[i + 1].y, 6);
  }
  const double rest = kPoints - 32 * 3125;  // 3: 8, 4, 8
  EXPECT_NEAR(curve[groups].x, 32 * 3125 + (rest + 1) / 2, 1e-9);
  EXPECT_NEAR(curve[groups].y, 20 / 3.0, 1e-9);
  EXPECT_EQ(curve.back(), (CurvePoint{kPoints, 8})) << "and the last";
}

}  // namespace
}  // namespace tearless::harness::curves_test
