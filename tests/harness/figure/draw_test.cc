// Figures of grids, drawn of runs whose curves are known.
#include "harness/figure/draw.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "base/error.h"
#include "harness/figure/band.h"
#include "harness/grid/expand.h"
#include "harness/runs/workspace.h"
#include "tests/harness/notes_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::draw_test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Coordinates = std::map<std::string, std::string>;  // axis → label, and "seed"

constexpr const char* kAxes = R"(
seeds = 3
[axis]
norm  = ["layer", "scale"]
depth = [2, 4, 8]
[names]
layer      = "LayerNorm"
"dev.bleu" = "dev BLEU"
depth      = "layers"
"depth=8"  = "eight"
)";

/// What a run reports and has, by its labels. bleu at updates 10, 20, 30: 10 k × (1 with layer, 2 with scale) + seed +
/// depth.
struct Given {
  std::vector<MetricLine> metrics = {};
  std::map<std::string, double> scores = {};
  RunState state = RunState::kDone;
};

Given given(const Coordinates& at) {
  const double norm = at.at("norm") == "layer" ? 1 : 2, seed = std::stod(at.at("seed")),
               depth = std::stod(at.at("depth"));
  Given run;
  for (int k = 1; k <= 3; ++k) {
    run.metrics.push_back({40 * k, 10 * k, "dev.bleu", 10 * k * norm + seed + depth});
    run.metrics.push_back({40 * k + 10, 10 * k, "epoch", k / 2.0});
  }
  run.scores = {
      {"test.bleu", norm * depth + seed}, {"g.ffn.1.len", seed}, {"g.ffn.2.len", 2 * seed * norm}, {"g.final", 7}};
  return run;
}

class Draw : public testing::Test {
 protected:
  Draw() : workspace_(folder_ / "work"), store_(Store::open_writer(workspace_)) {}

  /// The only figure of the grid.
  Figure drawn(const std::string& figure, const std::function<Given(const Coordinates&)>& run = given,
               const std::string& axes = kAxes) {
    const Grid grid = loaded(figure, axes);
    ResultSet results;
    std::vector<harness::Run> runs;
    for (const Combination& point : runs_of(grid)) {
      Row& row = results.rows.emplace_back();
      Coordinates at = {{"seed", std::to_string(point.seed)}};
      for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
        row.run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[point.index[axis]].label);
        at.insert(row.run.coordinates.back());
      }
      row.run.id = row.trained = fmt::format("{:016x}", results.rows.size());
      row.run.settings = "a = 1\n";
      row.run.seed = point.seed;
      runs.push_back(row.run);
    }
    store_->submit({.id = "s" + std::to_string(++sweeps_),
                    .title = "t",
                    .grid_file = "/g.toml",
                    .submitted_at = "2026-01-31T12:00:00Z",
                    .runs = runs});
    for (Row& row : results.rows) {
      Coordinates at(row.run.coordinates.begin(), row.run.coordinates.end());
      at["seed"] = std::to_string(row.run.seed);
      const Given own = run(at);
      store_->put_metrics(row.run.id, 0, own.metrics, 1);
      row.result.state = own.state;
      row.result.scores = own.state == RunState::kDone ? own.scores : std::map<std::string, double>();
      row.result.measured["measured.seconds_per_update"] = 36;
    }
    results.store = Store::open_reader(workspace_);
    const std::vector<View> views = views_of(grid);
    for (const View& view : views) {
      if (const auto* spec = std::get_if<FigureSpec>(&view.spec)) return draw(grid, views, view.title, *spec, results);
    }
    throw std::logic_error("no figure");
  }

  Grid loaded(const std::string& figure, const std::string& axes = kAxes) {
    test::write_text(folder_ / "grid.toml", axes + "[[figure]]\ncaption = \"F\"\n" + figure);
    return load_grid(folder_ / "grid.toml");
  }
  std::string refused(const std::string& figure) {
    try {
      views_of(loaded(figure));
    } catch (const UserError& error) {
      const std::string text = error.what();
      return text.substr(text.find("grid.toml"));
    }
    return "";
  }
  std::string refused_when_drawn(const std::string& figure) {
    try {
      drawn(figure);
    } catch (const UserError& error) {
      const std::string text = error.what();
      return text.substr(text.find("grid.toml"));
    }
    return "";
  }

  test::TempFolder folder_;
  Workspace workspace_;
  std::unique_ptr<Store> store_;
  int sweeps_ = 0;
};

/// "10: 1 2 3 n=3": x, low, mean, high.
std::vector<std::string> texts_of(const std::vector<BandPoint>& points) {
  std::vector<std::string> texts;
  for (const BandPoint& p : points)
    texts.push_back(fmt::format("{:.6g}: {:.6g} {:.6g} {:.6g} n={}", p.x, p.low, p.mean, p.high, p.runs));
  return texts;
}
std::vector<std::string> legend_of(const Figure& figure) {
  std::vector<std::string> lines;
  for (const std::vector<Name>& row : figure.legend) {
    std::string line;
    for (const Name& name : row) line += (line.empty() ? "" : ", ") + name.text;
    lines.push_back(line);
  }
  return lines;
}

// --- lines and panels ------------------------------------------------------------------------------------------------

TEST_F(Draw, EachCellIsALineTheMeanOfItsSeedsWithTheirStandardDeviation) {
  const Figure figure = drawn("y = \"dev.bleu\"\n");
  EXPECT_EQ(figure.title.text, "F");
  EXPECT_EQ(figure.x.text, "updates");
  ASSERT_EQ(figure.panels.size(), 1u);
  EXPECT_EQ(figure.panels[0].y.text, "dev BLEU");
  EXPECT_THAT(legend_of(figure),
              ElementsAre("LayerNorm, 2", "LayerNorm, 4", "LayerNorm, eight", "scale, 2", "scale, 4", "scale, eight"));
  EXPECT_EQ(figure.heading.at(1).text, "layers");
  // seeds 1, 2, 3: mean 2, deviation 1
  EXPECT_THAT(texts_of(figure.panels[0].lines[4].points),
              ElementsAre("10: 25 26 27 n=3", "20: 45 46 47 n=3", "30: 65 66 67 n=3"));
  EXPECT_THAT(figure.panels[0].lines[4].labels, ElementsAre("scale", "4"));
  EXPECT_THAT(notes_of(figure), Contains("Lines: the mean of 3 seeds; bands: the mean ± the standard deviation."));
}

TEST_F(Draw, PanelsAreTheLabelsOfAnAxis) {
  const Figure figure = drawn("y = \"dev.bleu\"\nlines = \"norm\"\npanels = \"depth\"\n");
  ASSERT_EQ(figure.panels.size(), 3u);
  EXPECT_EQ(figure.panels[0].title.text, "layers = 2") << "a number says what it is of";
  EXPECT_EQ(figure.panels[2].title.text, "eight");
  EXPECT_THAT(legend_of(figure), ElementsAre("LayerNorm", "scale"));
  EXPECT_THAT(texts_of(figure.panels[2].lines[1].points), Contains("30: 69 70 71 n=3"));
  EXPECT_THAT(figure.axes, ElementsAre("depth", "norm"));
  EXPECT_THAT(figure.panels[2].lines[1].labels, ElementsAre("8", "scale"));
}

TEST_F(Draw, SeveralYAreLinesOrPanels) {
  const Figure lines = drawn("y = [\"dev.bleu\", \"epoch\"]\nlines = \"norm\"\nwhere.depth = \"2\"\n");
  EXPECT_THAT(legend_of(lines),
              ElementsAre("LayerNorm, dev BLEU", "LayerNorm, epoch", "scale, dev BLEU", "scale, epoch"));
  EXPECT_THAT(texts_of(lines.panels[0].lines[3].points), Contains("30: 1.5 1.5 1.5 n=3"));
  const Figure panels = drawn("y = [\"dev.bleu\", \"epoch\"]\nlines = \"norm\"\npanels = \"y\"\nwhere.depth = \"2\"\n");
  ASSERT_EQ(panels.panels.size(), 2u);
  EXPECT_EQ(panels.panels[1].title.text, "epoch");
  EXPECT_EQ(panels.panels[1].y.text, "") << "the title says it";
  EXPECT_THAT(texts_of(panels.panels[1].lines[1].points), Contains("30: 1.5 1.5 1.5 n=3"));
  EXPECT_THAT(texts_of(panels.panels[0].lines[1].points), Contains("30: 63 64 65 n=3"));
}

TEST_F(Draw, WithSeedAmongTheLinesEachRunHasOne) {
  const Figure figure = drawn("y = \"dev.bleu\"\nlines = [\"norm\", \"seed\"]\nwhere = { depth = \"2\" }\n");
  EXPECT_THAT(legend_of(figure),
              ElementsAre("LayerNorm, 1", "LayerNorm, 2", "LayerNorm, 3", "scale, 1", "scale, 2", "scale, 3"));
  EXPECT_THAT(texts_of(figure.panels[0].lines[2].points),
              ElementsAre("10: 15 15 15 n=1", "20: 25 25 25 n=1", "30: 35 35 35 n=1"));
  EXPECT_THAT(figure.panels[0].lines[2].labels, ElementsAre("layer", "3"));
}

TEST_F(Draw, WhereLeavesOutRuns) {
  const Figure figure = drawn("y = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = [\"2\", \"8\"] }\n");
  EXPECT_THAT(legend_of(figure), ElementsAre("2", "eight"));
}

TEST_F(Draw, BandsAreOfTheKindThatIsAskedFor) {
  const auto first = [&](const std::string& band) {
    return texts_of(drawn("y = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\nband = \"" + band + "\"\n")
                        .panels[0]
                        .lines[0]
                        .points)
        .front();
  };
  EXPECT_EQ(first("none"), "10: 26 26 26 n=3");
  EXPECT_EQ(first("std"), "10: 25 26 27 n=3");
  EXPECT_EQ(first("range"), "10: 25 26 27 n=3");
  EXPECT_EQ(first("ci95"), "10: 23.5159 26 28.4841 n=3");  // 4.3027 / √3
  const auto unequal = [](const Coordinates& at) {
    Given run = given(at);
    if (at.at("seed") == "3") run.metrics = {{40, 10, "dev.bleu", 100}};
    return run;
  };
  const std::string only = "y = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\nband = \"range\"\n";
  EXPECT_EQ(texts_of(drawn(only, unequal).panels[0].lines[0].points).front(), "10: 25 50.3333 100 n=3");
}

TEST_F(Draw, PanelsOfOneYShareTheirAxisUnlessEachIsToHaveItsOwn) {
  const auto scales = [&](const std::string& keys) {
    std::vector<size_t> found;
    for (const Figure::Panel& panel : drawn(keys + "lines = \"norm\"\nwhere.depth = [2, 4]\n").panels)
      found.push_back(panel.scale);
    return found;
  };
  const std::string depths = "y = \"dev.bleu\"\npanels = \"depth\"\n",
                    both = "y = [\"dev.bleu\", \"epoch\"]\npanels = [\"y\", \"depth\"]\n";
  EXPECT_THAT(scales(depths), ElementsAre(0, 0));
  EXPECT_THAT(scales(both), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(scales(depths + "y_axes = \"own\"\n"), ElementsAre(0, 1));
  EXPECT_THAT(scales(both + "y_axes = \"own\"\n"), ElementsAre(0, 1, 2, 3));
}

// --- x ---------------------------------------------------------------------------------------------------------------

TEST_F(Draw, OverAnotherMetricAreItsValuesAtTheSameUpdates) {
  const Figure figure = drawn("x = \"epoch\"\ny = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\n");
  EXPECT_EQ(figure.x.text, "epoch");
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points),
              ElementsAre("0.5: 25 26 27 n=3", "1: 45 46 47 n=3", "1.5: 65 66 67 n=3"));
}

TEST_F(Draw, OverAnotherMetricThatIsReportedLessOftenAreOnTheLineBetween) {
  const auto sparse = [](const Coordinates& at) {
    Given run = given(at);
    std::erase_if(run.metrics, [](const MetricLine& line) { return line.name == "epoch" && line.step == 20; });
    return run;
  };
  const Figure figure = drawn("x = \"epoch\"\ny = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\n", sparse);
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points), Contains("1: 45 46 47 n=3"));
}

TEST_F(Draw, HoursAreUpdatesTimesTheMeasuredSecondsAnUpdate) {
  const Figure figure = drawn("x = \"hours\"\ny = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\n");
  EXPECT_EQ(figure.x.text, "hours");
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points),
              ElementsAre("0.1: 25 26 27 n=3", "0.2: 45 46 47 n=3", "0.3: 65 66 67 n=3"));
}

TEST_F(Draw, OverAnAxisAreTheScoresOfItsLabels) {
  const Figure figure = drawn("x = \"depth\"\ny = \"test.bleu\"\nlog = \"x\"\n");
  EXPECT_EQ(figure.x.text, "layers");
  EXPECT_TRUE(figure.log_x);
  EXPECT_FALSE(figure.log_y);
  EXPECT_FALSE(figure.from_zero);
  EXPECT_THAT(legend_of(figure), ElementsAre("LayerNorm", "scale"));
  EXPECT_THAT(texts_of(figure.panels[0].lines[1].points),
              ElementsAre("2: 5 6 7 n=3", "4: 9 10 11 n=3", "8: 17 18 19 n=3"));
}

TEST_F(Draw, OverLayersAreTheScoresThatHaveTheirNumberAndThenThoseWithout) {
  const Figure figure =
      drawn("x = \"layer\"\ny = [\"g.ffn.*.len\", \"g.final\"]\nlines = \"norm\"\nwhere.depth = \"4\"\n");
  EXPECT_THAT(texts_of(figure.panels[0].lines[2].points), ElementsAre("1: 1 2 3 n=3", "2: 4 8 12 n=3"));
  EXPECT_THAT(texts_of(figure.panels[0].lines[3].points), ElementsAre("3: 7 7 7 n=3")) << "behind the last layer";
}

TEST_F(Draw, TheNormOfEveryUpdateIsThatOfTheRunsFile) {
  const auto with_norms = [&](const Coordinates& at) {
    const Given run = given(at);
    return run;
  };
  // Files by id, which is the place in the grid: norm, depth, seed.
  for (int i = 1; i <= 18; ++i) {
    const float norms[] = {1.0F * static_cast<float>(i), 3.0F};
    std::string bytes(sizeof(norms), '\0');
    std::memcpy(bytes.data(), norms, sizeof(norms));
    test::write_text(workspace_.run(fmt::format("{:016x}", i)).gradient_norms(), bytes);
  }
  const Figure figure = drawn("y = \"gradient_norms\"\nlog = [\"x\", \"y\"]\n", with_norms);
  EXPECT_TRUE(figure.log_x && figure.log_y);
  double sum = 0;
  for (const Figure::Line& line : figure.panels[0].lines) {
    ASSERT_EQ(line.points.size(), 2u);
    EXPECT_EQ(line.points[0].x, 1);
    EXPECT_EQ(line.points[1].mean, 3);
    sum += line.points[0].mean;
  }
  EXPECT_DOUBLE_EQ(sum, 18 * 19 / 2 / 3.0) << "each run is in one line";
}

TEST_F(Draw, BarsStandOverTheLabelsOfAnAxisInTheOrderOfTheGrid) {
  const Figure figure = drawn("kind = \"bars\"\nx = \"norm\"\ny = \"test.bleu\"\nwhere.depth = [\"2\", \"8\"]\n");
  EXPECT_EQ(figure.kind, FigureSpec::Kind::kBars);
  ASSERT_EQ(figure.labels.size(), 2u);
  EXPECT_EQ(figure.labels[0].label, "layer");
  EXPECT_EQ(figure.labels[0].name.text, "LayerNorm");
  EXPECT_THAT(legend_of(figure), ElementsAre("2", "eight"));
  EXPECT_THAT(texts_of(figure.panels[0].lines[1].points), ElementsAre("1: 9 10 11 n=3", "2: 17 18 19 n=3"));
  EXPECT_THAT(notes_of(figure), Contains("Bars: the mean of 3 seeds; error bars: the mean ± the standard deviation."));
}

TEST_F(Draw, BarsOverNumbersStandAtEqualDistancesAndLabelsThatWhereLeavesOutHaveNone) {
  const auto one_diverges = [](const Coordinates& at) {
    Given run = given(at);
    if (at.at("seed") == "3" && at.at("depth") == "8") run.state = RunState::kDiverged;
    return run;
  };
  const Figure figure = drawn(
      "kind = \"bars\"\nx = \"depth\"\ny = \"test.bleu\"\nwhere.depth = [2, 8]\nband = \"range\"\n"
      "[[figure.published]]\nsource = \"S\"\nline = { norm = \"scale\" }\npoints = [[8, 21.5], [\"2\", 20]]\n",
      one_diverges);
  ASSERT_EQ(figure.labels.size(), 2u);
  EXPECT_EQ(figure.labels[1].label, "8");
  EXPECT_EQ(figure.labels[1].name.text, "eight");
  EXPECT_THAT(texts_of(figure.panels[0].lines[1].points), ElementsAre("1: 5 6 7 n=3", "2: 17 17.5 18 n=2"));
  EXPECT_THAT(figure.panels[0].lines[1].diverged, testing::SizeIs(1));
  EXPECT_EQ(figure.panels[0].lines[1].diverged[0].x, 2);
  EXPECT_THAT(texts_of(figure.panels[0].lines[2].points), ElementsAre("1: 20 20 20 n=1", "2: 21.5 21.5 21.5 n=1"));
}

// A bar is the number of the table's cell: a run that fails there is in neither.
TEST_F(Draw, RunsThatFailByTheTablesLimitAreInNoMeanOverAnAxisAndANoteSaysSo) {
  const std::string figure = "x = \"depth\"\ny = \"test.bleu\"\nband = \"range\"\n";
  const Figure limited = drawn(figure + "[table]\nscores = [\"test.bleu\"]\nfail_below = 6\n");
  const std::vector<Figure::Line>& lines = limited.panels[0].lines;
  EXPECT_THAT(texts_of(lines[0].points), ElementsAre("2: nan nan nan n=0", "4: 6 6.5 7 n=2", "8: 9 10 11 n=3"));
  EXPECT_THAT(texts_of(lines[1].points), ElementsAre("2: 6 6.5 7 n=2", "4: 9 10 11 n=3", "8: 17 18 19 n=3"));
  EXPECT_THAT(notes_of(limited), Contains("5 runs with test.bleu below 6, which fail by the table, in no mean."));
  EXPECT_THAT(notes_of(limited), Not(Contains(HasSubstr("drawn"))));
  const Figure whole = drawn(figure +
                             "[[table]]\ncaption = \"a\"\nscores = [\"g.final\"]\nfail_below = 8\n[[table]]\ncaption = "
                             "\"b\"\nscores = [\"test.*\"]\n");
  EXPECT_THAT(texts_of(whole.panels[0].lines[0].points), ElementsAre("2: 3 4 5 n=3", "4: 5 6 7 n=3", "8: 9 10 11 n=3"));
}

// --- seeds that end early, or begin late --------------------------------------------------------------------------

/// Seed 2 ends at update 20.
Given one_ends_early(const Coordinates& at) {
  Given run = given(at);
  if (at.at("seed") == "2") std::erase_if(run.metrics, [](const MetricLine& line) { return line.step > 20; });
  return run;
}
constexpr const char* kOneLine = "y = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\nband = \"range\"\n";

TEST_F(Draw, ALineEndsWhereTheFirstOfItsSeedsDoesAndANoteCounts) {
  const Figure figure = drawn(kOneLine, one_ends_early);
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points),
              ElementsAre("10: 25 26 27 n=3", "20: 45 46 47 n=3", "30: nan nan nan n=0"));
  EXPECT_THAT(notes_of(figure), Contains("Lines: the mean of 3 seeds to update 20, then of 2 (not drawn)."));
  EXPECT_THAT(render_csv({figure}, Formulas::kAsTheyAre), HasSubstr(",30,66,65,67,2,")) << "what is there";
  EXPECT_THAT(notes_of(drawn(kOneLine)), Not(Contains(HasSubstr("then of"))));
}

TEST_F(Draw, ALineIsDashedNotEndedWhereASeedIsStillUnderWay) {
  const Figure figure = drawn(kOneLine, [](const Coordinates& at) {
    Given run = one_ends_early(at);
    if (at.at("seed") == "2") run.state = RunState::kRunning;
    return run;
  });
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points),
              ElementsAre("10: 25 26 27 n=3", "20: 45 46 47 n=3", "30: 65 66 67 n=2"));
  EXPECT_THAT(notes_of(figure), Contains("Lines: the mean of 3 seeds to update 20, then of 2 (dashed)."));
}

TEST_F(Draw, WithFewerSeedsDashedTheLineGoesOnMarkedAsTheMeanOfThoseThatAreLeft) {
  const Figure figure = drawn(std::string(kOneLine) + "fewer_seeds = \"dashed\"\n", one_ends_early);
  const std::vector<BandPoint>& points = figure.panels[0].lines[0].points;
  EXPECT_THAT(texts_of(points), ElementsAre("10: 25 26 27 n=3", "20: 45 46 47 n=3", "30: 65 66 67 n=2"));
  EXPECT_EQ((std::vector{points[0].is_of_fewer, points[1].is_of_fewer, points[2].is_of_fewer}),
            (std::vector{false, false, true}));
  EXPECT_THAT(notes_of(figure), Contains("Lines: the mean of 3 seeds to update 20, then of 2 (dashed)."));
}

TEST_F(Draw, SeedsThatBeginLateOrEndOneAfterTheOtherAreCountedOverAMetricAsWell) {
  const auto late = [](const Coordinates& at) {
    Given run = given(at);
    std::erase_if(run.metrics, [&](const MetricLine& line) { return line.step == 10 && at.at("seed") == "3"; });
    return run;
  };
  const Figure figure = drawn(std::string(kOneLine) + "x = \"epoch\"\n", late);
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points),
              ElementsAre("0.5: nan nan nan n=0", "1: 45 46 47 n=3", "1.5: 65 66 67 n=3"));
  EXPECT_THAT(notes_of(figure), Contains("Lines: the mean of 3 seeds from epoch = 1, elsewhere of 2 (not drawn)."));
  const auto a_little = [](const Coordinates& at) {
    Given run = given(at);
    run.metrics.push_back({200, 31, "dev.bleu", 100});
    run.metrics.push_back({201, 31, "epoch", at.at("seed") == "3" ? 1.52 : 1.5});
    return run;
  };
  const Figure almost = drawn(std::string(kOneLine) + "x = \"epoch\"\n", a_little);
  EXPECT_EQ(almost.panels[0].lines[0].points.back().runs, 0);
  EXPECT_THAT(notes_of(almost), Not(Contains(HasSubstr("not drawn")))) << "less than a twentieth of the line";
  const auto one_after_the_other = [](const Coordinates& at) {
    Given run = given(at);
    std::erase_if(run.metrics, [&](const MetricLine& line) { return line.step > 10 * std::stod(at.at("seed")); });
    return run;
  };
  EXPECT_THAT(
      notes_of(
          drawn("y = \"dev.bleu\"\nlines = \"norm\"\npanels = \"depth\"\nwhere.depth = [2, 4]\n", one_after_the_other)),
      Contains("layers = 2, LayerNorm; layers = 2, scale; layers = 4, LayerNorm; layers = 4, scale: the mean of 3 "
               "seeds to update 10, then of 2 or fewer (not drawn)."));
}

TEST_F(Draw, ALineOfEachRunAndRunsThatDivergedEndNoOtherLine) {
  EXPECT_THAT(texts_of(drawn("y = \"dev.bleu\"\nlines = [\"norm\", \"seed\"]\nwhere.depth = \"2\"\n", one_ends_early)
                           .panels[0]
                           .lines[2]
                           .points),
              testing::SizeIs(3));
  const auto diverges = [](const Coordinates& at) {
    Given run = one_ends_early(at);
    if (at.at("seed") == "2") run.state = RunState::kDiverged;
    return run;
  };
  const Figure figure = drawn(kOneLine, diverges);
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points), Contains("30: 65 66 67 n=2"));
  EXPECT_THAT(notes_of(figure), Not(Contains(HasSubstr("then of"))));
}

TEST_F(Draw, ALineIsInterruptedWhereAValueOfASeedIsNoNumberAndANoteCounts) {
  const auto lost_at = [](int64_t begin, int64_t end) {
    return [=](const Coordinates& at) {
      Given run = given(at);
      for (MetricLine& line : run.metrics) {
        if (at.at("seed") == "2" && begin <= line.step && line.step <= end) line.value = kNaN;
      }
      return run;
    };
  };
  const Figure figure = drawn(kOneLine, lost_at(20, 20));
  EXPECT_THAT(texts_of(figure.panels[0].lines[0].points),
              ElementsAre("10: 25 26 27 n=3", "20: nan nan nan n=0", "30: 65 66 67 n=3"));
  EXPECT_THAT(render_csv({figure}, Formulas::kAsTheyAre),
              HasSubstr(",10,26,25,27,3,,\nF,dev.bleu,20,46,45,47,2,,\nF,dev.bleu,30,"));
  EXPECT_THAT(notes_of(figure), Contains("Lines: the mean of 3 seeds, of 2 at update 20 (not drawn)."));
  const Figure dashed = drawn(std::string(kOneLine) + "fewer_seeds = \"dashed\"\n", lost_at(20, 20));
  EXPECT_THAT(texts_of(dashed.panels[0].lines[0].points), Contains("20: 45 46 47 n=2"));
  EXPECT_THAT(notes_of(drawn(kOneLine, lost_at(30, 30))),
              Contains("Lines: the mean of 3 seeds to update 20, then of 2 (not drawn)."));
}

TEST_F(Draw, OverAnAxisALineIsInterruptedWhereNoRunHasAScore) {
  const auto lost_at_4 = [](RunState state) {
    return [=](const Coordinates& at) {
      Given run = given(at);
      if (at.at("depth") == "4" && at.at("norm") == "scale") run = {.state = state};
      return run;
    };
  };
  for (const RunState state : {RunState::kFailed, RunState::kDiverged, RunState::kDone, RunState::kQueued}) {
    const Figure figure = drawn("x = \"depth\"\ny = \"test.bleu\"\n", lost_at_4(state));
    EXPECT_THAT(texts_of(figure.panels[0].lines[1].points), Contains("4: nan nan nan n=0")) << name_of(state);
    EXPECT_THAT(texts_of(figure.panels[0].lines[0].points), Not(Contains(HasSubstr("nan")))) << name_of(state);
  }
}

TEST(LineOf, ARunOfWhichAValueIsNoNumberIsNotInTheMeanThere) {
  const DrawnRun whole = {.curve = {{1, 1}, {2, 1}, {3, 1}, {4, 1}}},
                 gap = {.curve = {{1, 3}, {2, kNaN}, {3, 3}, {4, 3}}},
                 lost = {.curve = {{1, 5}, {2, 5}, {3, kNaN}, {4, kNaN}}}, none = {.curve = {{1, kNaN}}};
  const auto fewer = [](const Figure::Line& line) {
    std::vector<bool> found;
    for (const BandPoint& point : line.points) found.push_back(point.is_of_fewer);
    return found;
  };
  EXPECT_THAT(fewer(line_of({whole, lost, none}, FigureSpec::Band::kNone, true)),
              ElementsAre(false, false, true, true));
  EXPECT_THAT(fewer(line_of({whole, gap}, FigureSpec::Band::kNone, true)), ElementsAre(false, true, false, false));
  EXPECT_THAT(fewer(line_of({whole, lost}, FigureSpec::Band::kNone, false)), Each(false)) << "over an axis";
  EXPECT_TRUE(line_of({}, FigureSpec::Band::kNone, true).points.empty());
}

// --- smoothing -------------------------------------------------------------------------------------------------------

TEST_F(Draw, SmoothingAndBinsAreOfEachRunAndSaidInANote) {
  const std::string only = "y = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\n";
  const Figure smooth = drawn(only + "smooth = 3\n");
  EXPECT_THAT(texts_of(smooth.panels[0].lines[0].points),
              ElementsAre("10: 35 36 37 n=3", "20: 45 46 47 n=3", "30: 55 56 57 n=3"));
  EXPECT_THAT(notes_of(smooth), Contains("Of each run, a point is the mean of 3 reported values about it."));
  const Figure binned = drawn(only + "bins = 2\n");  // 10 … 20, 20 … 30
  EXPECT_THAT(texts_of(binned.panels[0].lines[0].points), ElementsAre("15: 25 26 27 n=3", "25: 55 56 57 n=3"));
  EXPECT_THAT(notes_of(binned), Contains("Of each run, a point is the mean in one of 2 equal parts of x."));
}

TEST(Smoothed, BesideAValueThatIsNotFiniteAPointIsTheMeanOfTheOthers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Curve curve = {{1, 1}, {2, 3}, {3, kInfinity}, {4, 8}, {5, 10}, {6, 12}};
  const Curve smooth = smoothed(curve, 3);
  for (const auto& [i, mean] : {std::pair(0, 2.0), {1, (1 + 3) / 2.0}, {3, (8 + 10) / 2.0}, {4, 10.0}, {5, 11.0}}) {
    EXPECT_EQ(smooth[i].y, mean) << i;
  }
  EXPECT_TRUE(std::isinf(smooth[2].y)) << "the gap stays";
}

TEST(Binned, APartWithoutAFiniteValueInterruptsAndOneWithoutAValueDoesNot) {
  const Curve curve = {{1, 1}, {2, 3}, {5, kNaN}, {6, kNaN}, {9, 7}, {10, kNaN}};
  EXPECT_EQ(texts_of(band_of({binned(curve, 3, 1, 10, false)}, FigureSpec::Band::kNone)),
            (std::vector<std::string>{"2.5: 2 2 2 n=1", "5.5: nan nan nan n=0", "8.5: 7 7 7 n=1"}));
  EXPECT_THAT(binned({{1, 1}, {10, 7}}, 3, 1, 10, false), testing::SizeIs(2));
}

TEST(Binned, PartsAreEqualByTheirLogarithmsOnALogarithmicAxis) {
  const Curve curve = {{1, 1}, {5, 3}, {20, 8}, {100, 10}};
  EXPECT_EQ(texts_of(band_of({binned(curve, 2, 1, 100, true)}, FigureSpec::Band::kNone)),
            (std::vector<std::string>{"3.16228: 2 2 2 n=1", "31.6228: 9 9 9 n=1"}));
  EXPECT_EQ(texts_of(band_of({binned(curve, 2, 1, 100, false)}, FigureSpec::Band::kNone)),
            (std::vector<std::string>{"25.75: 4 4 4 n=1", "75.25: 10 10 10 n=1"}));
}

// --- what is not there, and what is beside
// ----------------------------------------------------------------------------

TEST_F(Draw, ARunThatDivergedEndsInACrossAndIsNotInTheMean) {
  const auto one_diverges = [](const Coordinates& at) {
    Given run = given(at);
    if (at.at("seed") == "3" && at.at("norm") == "scale") run.state = RunState::kDiverged;
    return run;
  };
  const Figure figure = drawn("y = \"dev.bleu\"\nwhere.depth = \"4\"\n", one_diverges);
  const Figure::Line& line = figure.panels[0].lines[1];
  EXPECT_THAT(texts_of(line.points), Contains("30: 64.7929 65.5 66.2071 n=2"));
  EXPECT_THAT(line.diverged, ElementsAre(CurvePoint{30, 67}));
  EXPECT_TRUE(line.sets_scale);
  EXPECT_THAT(notes_of(figure), Contains("×: 1 run diverged, in no mean unless all of a line have."));
  const Figure scores = drawn("x = \"depth\"\ny = \"test.bleu\"\n", one_diverges);
  EXPECT_THAT(texts_of(scores.panels[0].lines[1].points), Contains("8: 16.7929 17.5 18.2071 n=2"));
  EXPECT_EQ(scores.panels[0].lines[1].diverged.size(), 3u);
  EXPECT_EQ(scores.panels[0].lines[1].diverged[2].x, 8);
}

TEST_F(Draw, OfALineOfWhichARunLacksTheCurveTheOthersAreDrawnAndThatIsSaid) {
  const auto lacks = [](const Coordinates& at) {
    Given run = given(at);
    if (at.at("seed") == "1" && at.at("norm") == "layer") run.metrics.clear();
    return run;
  };
  const Figure figure = drawn("y = \"dev.bleu\"\nwhere.depth = \"4\"\n", lacks);
  EXPECT_EQ(figure.panels[0].lines[0].points.at(0).runs, 2);
  EXPECT_THAT(notes_of(figure),
              Contains(HasSubstr("LayerNorm: 2 of 3 runs drawn; 0000000000000004 is done without dev BLEU.")));
  const auto waits = [](const Coordinates& at) {
    Given run = given(at);
    if (at.at("seed") == "1" && at.at("norm") == "layer") run = {.state = RunState::kQueued};
    return run;
  };
  EXPECT_THAT(notes_of(drawn("y = \"dev.bleu\"\nwhere.depth = \"4\"\n", waits)),
              Contains("LayerNorm: 2 of 3 runs drawn, the others have nothing to draw."));
  const auto none = [](const Coordinates& at) {
    return at.at("norm") == "layer" ? Given{.state = RunState::kQueued} : given(at);
  };
  EXPECT_THAT(
      notes_of(drawn("y = [\"dev.bleu\", \"epoch\"]\nlines = \"norm\"\npanels = \"y\"\nwhere.depth = \"4\"\n", none)),
      Contains("No run to draw yet: LayerNorm."));
}

TEST_F(Draw, OfALineWhoseRunsHaveAllEndedNothingIsExpectedYet) {
  for (const RunState state : {RunState::kFailed, RunState::kCancelled}) {
    for (const std::string figure :
         {"y = \"dev.bleu\"\nlines = \"norm\"\nwhere.depth = \"4\"\n", "x = \"depth\"\ny = \"test.bleu\"\n"}) {
      const Figure none = drawn(
          figure, [&](const Coordinates& at) { return at.at("norm") == "layer" ? Given{.state = state} : given(at); });
      EXPECT_THAT(notes_of(none), Contains("No run to draw, as all have failed or were cancelled: LayerNorm."));
    }
  }
  const Figure waits = drawn("x = \"depth\"\ny = \"test.bleu\"\n", [](const Coordinates& at) {
    const RunState state = at.at("seed") == "1" ? RunState::kQueued : RunState::kFailed;
    return at.at("norm") == "layer" ? Given{.state = state} : given(at);
  });
  EXPECT_THAT(notes_of(waits), Contains("No run to draw yet: LayerNorm."));
}

TEST_F(Draw, ALineWithoutALabelOnTheAxisOfXIsInNoLegendAndNoNote) {
  constexpr const char* kConditional =
      "seeds = 1\n[axis]\nnorm = [\"adam\", \"sgd\"]\n[axis.depth]\nvalues = [2, 4]\nwhen = { norm = \"sgd\" }\n";
  const auto scored = [](const Coordinates&) { return Given{.scores = {{"test.bleu", 20}}}; };
  for (const std::string where : {"", "where.depth = [\"–\", 2, 4]\n"}) {
    const Figure figure = drawn("x = \"depth\"\ny = \"test.bleu\"\nlines = \"norm\"\n" + where, scored, kConditional);
    EXPECT_THAT(legend_of(figure), ElementsAre("sgd"));
    EXPECT_THAT(notes_of(figure), ElementsAre("Lines: one seed."));
  }
  EXPECT_THAT(
      legend_of(drawn("kind = \"bars\"\nx = \"depth\"\ny = \"test.bleu\"\nlines = \"norm\"\n", scored, kConditional)),
      ElementsAre("adam", "sgd"))
      << "a bar stands over any label";
}

TEST_F(Draw, ARunThatFailedIsNotDrawnAndThatIsSaid) {
  const auto fails = [](const Coordinates& at) {
    Given run = given(at);
    if (at.at("seed") == "3" && at.at("norm") == "layer") run.state = RunState::kFailed;
    return run;
  };
  const Figure figure = drawn("y = \"dev.bleu\"\nwhere.depth = \"4\"\n", fails);
  EXPECT_EQ(figure.panels[0].lines[0].points.at(0).runs, 2);
  EXPECT_THAT(notes_of(figure), Contains("LayerNorm: 2 of 3 runs drawn, the others have nothing to draw."));
}

TEST_F(Draw, PublishedLinesStandBesideOurs) {
  const Figure figure = drawn(
      "x = \"depth\"\ny = \"test.bleu\"\n"
      "[[figure.published]]\nsource = \"Them 2019\"\nline = { norm = \"scale\" }\npoints = [[8, 21.5], [2, 20]]\n"
      "[[figure.published]]\nsource = \"Others 2020\"\nlabel = \"their own\"\npoints = [[4, 1]]\n");
  EXPECT_THAT(legend_of(figure), ElementsAre("LayerNorm", "scale", "scale (Them 2019)", "their own (Others 2020)"));
  ASSERT_EQ(figure.panels[0].lines.size(), 4u);
  EXPECT_THAT(texts_of(figure.panels[0].lines[2].points), ElementsAre("2: 20 20 20 n=1", "8: 21.5 21.5 21.5 n=1"));
  EXPECT_EQ(figure.panels[0].lines[2].source, "Them 2019");
  EXPECT_THAT(figure.panels[0].lines[2].labels, ElementsAre("scale"));
  EXPECT_THAT(figure.panels[0].lines[3].labels, ElementsAre("their own"));
  EXPECT_THAT(notes_of(figure), Contains("Published: Them 2019; Others 2020."));
}

TEST_F(Draw, CaptionAndSourcesHaveTheirLatex) {
  const Figure figure = drawn(
      "x = \"depth\"\ny = \"test.bleu\"\n"
      "[[figure.published]]\nsource = { text = \"Them & us\", latex = \"\\\\citet{them}\" }\nline = { norm = \"scale\" "
      "}\n"
      "points = [[2, 20]]\n"
      "[[figure.published]]\nsource = \"A & B\"\nlabel = \"their own\"\npoints = [[4, 1]]\n");
  EXPECT_THAT(figure.notes, Contains(Name{"Published: Them & us; A & B.", "Published: \\citet{them}; A \\& B."}));
  EXPECT_EQ(figure.legend[2].front(), (Name{"scale (Them & us)", "scale (\\citet{them})"}));
  EXPECT_EQ(figure.panels[0].lines[2].source, "Them & us") << "for CSV";
}

TEST_F(Draw, TheLimitsOfTheScoresThatTheGridTakesFromItsCurvesAreMarked) {
  const std::string scores =
      "[score.late]\nof = \"dev.bleu\"\ntake = \"mean\"\nfrom = 15\n[score.at_30]\nof = \"dev.bleu\"\ntake = "
      "\"first_at_least\"\nvalue = 30\n"
      "[score.other]\nof = \"epoch\"\ntake = \"mean\"\nfrom = 12\n";
  const Figure figure = drawn("y = \"dev.bleu\"\nwhere.depth = \"4\"\n" + scores);
  EXPECT_THAT(figure.panels[0].at_x, ElementsAre(15));
  EXPECT_THAT(figure.panels[0].at_y, ElementsAre(30));
  EXPECT_THAT(notes_of(figure), Contains("Dashed lines: the limits of late, at_30."));
}

TEST_F(Draw, OverAnAxisThatSomeRunsOfALineLackIsSaid) {
  const auto lacks = [](const Coordinates& at) {
    return at.at("depth") == "8" && at.at("seed") != "1" ? Given{.state = RunState::kQueued} : given(at);
  };
  const Figure figure = drawn("x = \"depth\"\ny = \"test.bleu\"\n", lacks);
  EXPECT_EQ(figure.panels[0].lines[0].points[2].runs, 1);
  EXPECT_THAT(notes_of(figure), Contains("LayerNorm: 7 of 9 runs drawn, the others have nothing to draw."));
}

TEST_F(Draw, TheSeedsThatAreDrawnAreCountedAndNotThoseOfTheGrid) {
  const auto of_seeds = [&](int drawn_seeds) {
    return drawn("y = \"dev.bleu\"\nlines = \"norm\"\nwhere.depth = \"2\"\n", [=](const Coordinates& at) {
      return std::stoi(at.at("seed")) > drawn_seeds ? Given{.state = RunState::kQueued} : given(at);
    });
  };
  EXPECT_THAT(notes_of(of_seeds(1)), Contains("Lines: one seed."));
  EXPECT_THAT(notes_of(of_seeds(2)), Contains(HasSubstr("Lines: the mean of 2 seeds; bands: ")));
  EXPECT_THAT(notes_of(of_seeds(0)), Not(Contains(HasSubstr("Lines: "))));
}

TEST_F(Draw, NamesWithAndWithoutLatexAreJoinedAsLatexHasThem) {
  const Figure figure =
      drawn("y = \"dev.bleu\"\npanels = [\"norm\", \"depth\"]\nwhere.depth = [\"2\", \"8\"]\n", given,
            std::string(kAxes) +
                "\"norm=scale\" = { text = \"√d\", latex = \"$\\\\surd d$\" }\n\"depth=2\" = \"two_layers\"\n");
  EXPECT_EQ(figure.panels[2].title.text, "√d, two_layers");
  EXPECT_EQ(figure.panels[2].title.latex, "$\\surd d$, two\\_layers");
}

TEST_F(Draw, TheCrossIsAtTheLastValueAlsoWhereValuesAreBinned) {
  const auto diverges = [](const Coordinates& at) {
    Given run = given(at);
    if (at.at("seed") == "3") run.state = RunState::kDiverged;
    return run;
  };
  const Figure figure = drawn("y = \"dev.bleu\"\nwhere = { norm = \"scale\", depth = \"4\" }\nbins = 1\n", diverges);
  EXPECT_THAT(figure.panels[0].lines[0].diverged, ElementsAre(CurvePoint{30, 67}));
}

TEST_F(Draw, TheUpdateFromWhichAClaimIsAboutACurveIsMarked) {
  const Figure figure = drawn(
      "y = \"dev.bleu\"\nwhere.depth = \"4\"\n[table]\nscores = \"test.bleu\"\nrows = \"norm\"\ncolumns = \"depth\"\n"
      "[[claim]]\ntext = \"scale is ahead\"\nstays_better = [\"scale\", \"layer\"]\ncurve = \"dev.bleu\"\nfrom = "
      "15\nbest_is = "
      "\"highest\"\n");
  EXPECT_THAT(figure.panels[0].at_x, ElementsAre(15));
  EXPECT_THAT(notes_of(figure), Contains("Dashed lines: the limits of \"scale is ahead\"."));
}

// --- mistakes --------------------------------------------------------------------------------------------------------

TEST_F(Draw, AYThatNoRunHasIsRefusedWithTheNearestName) {
  EXPECT_EQ(refused_when_drawn("y = \"dev.blue\"\n"),
            "grid.toml:11: the figure \"F\": y = \"dev.blue\": no run has it (did you mean \"dev.bleu\"?); they have: "
            "dev.bleu, "
            "epoch, gradient_norms");
  EXPECT_EQ(refused_when_drawn("x = \"epochs\"\ny = \"dev.bleu\"\n"),
            "grid.toml:11: the figure \"F\": x = \"epochs\": no run has this metric (did you mean \"epoch\"?); they "
            "have: dev.bleu, "
            "epoch, gradient_norms");
  EXPECT_THAT(refused_when_drawn("x = \"depth\"\ny = \"test.blue\"\n"),
              HasSubstr("y = \"test.blue\": no run has it (did you mean \"test.bleu\"?)"));
  EXPECT_THAT(refused_when_drawn("y = \"gradient_norms\"\n"), HasSubstr("no run has its file gradient_norms.f32"));
}

TEST_F(Draw, AMistakeInASectionIsRefusedWithFileLineAndWhatToDo) {
  EXPECT_THAT(refused("lines = \"norm\"\n"),
              HasSubstr("grid.toml:11: a figure needs y = \"…\", a metric or gradient_norms"));
  EXPECT_THAT(refused("y = \"m\"\nlines = \"nrom\"\n"),
              HasSubstr("grid.toml:14: the grid has no axis nrom (did you mean \"norm\"?)"));
  EXPECT_THAT(refused("y = \"m\"\nlines = \"norm\"\n"),
              HasSubstr("the axis depth is neither x nor in lines or panels: its runs would be one line"));
  EXPECT_THAT(refused("y = \"m\"\nlines = \"norm\"\npanels = [\"depth\", \"norm\"]\n"),
              HasSubstr("the axis norm is in both lines and panels"));
  EXPECT_THAT(refused("x = \"norm\"\ny = \"m\"\n"), HasSubstr("x = \"norm\": its label \"layer\" is not a number"));
  EXPECT_THAT(refused("y = \"g.*.f\"\n"), HasSubstr("y = \"g.*.f\": a * stands for the layer, and x is not \"layer\""));
  EXPECT_THAT(refused("x = \"layer\"\ny = \"g.final\"\n"),
              HasSubstr("with x = \"layer\" y has a * for the number of the layer"));
  EXPECT_THAT(refused("y = \"m\"\nband = \"sd\"\n"),
              HasSubstr("grid.toml:14: [figure] band = \"sd\" is not known (did you mean \"std\"?)"));
  EXPECT_THAT(refused("x = \"depth\"\ny = \"m\"\nsmooth = 3\n"),
              HasSubstr("smooth is for what runs report over updates"));
  EXPECT_THAT(refused("y = \"m\"\nsmooth = 0\n"),
              HasSubstr("grid.toml:14: smooth must be a whole number from 1 to 100000"));
  EXPECT_THAT(refused("y = \"m\"\nbins = 2.5\n"),
              HasSubstr("grid.toml:14: bins must be a whole number from 1 to 1000"));
  EXPECT_THAT(refused("y = \"m\"\nlog = \"z\"\n"), HasSubstr("log must be \"x\", \"y\" or both in a list"));
  EXPECT_THAT(refused("y = \"m\"\nwhere = { norm = \"layerr\" }\n"),
              HasSubstr("the axis norm has no label \"layerr\" (did you mean \"layer\"?)"));
  EXPECT_THAT(refused("x = \"depth\"\ny = \"m\"\nfewer_seeds = \"dashed\"\n"),
              HasSubstr("grid.toml:15: fewer_seeds is for what runs report over updates"));
  EXPECT_THAT(refused("y = \"m\"\nfewer_seeds = \"dash\"\n"), HasSubstr("did you mean \"dashed\"?"));
  for (const std::string width :
       {"8.5", "\"8.5\"", "\"8.5 ft\"", "\"1 mm\"", "\"-8cm\"", "\"nan cm\"", "\"cm\"", "\"pages\""}) {
    EXPECT_EQ(
        refused("y = \"m\"\nwidth = " + width + "\n"),
        "grid.toml:14: width must be \"column\", \"page\", or a number from 20 to 1000 mm with its unit (mm, cm, in, "
        "pt), as in \"8.5cm\"");
  }
  EXPECT_THAT(refused("y = \"m\"\ncaption_in_picture = \"no\"\n"),
              HasSubstr("grid.toml:14: caption_in_picture must be true or false"));
  EXPECT_FALSE(drawn("y = \"dev.bleu\"\ncaption_in_picture = false\n").caption_in_picture);
  for (const auto& [width, mm] : {std::pair("8.5cm", 85.0), {"85 mm", 85.0}, {"6in", 152.4}, {"241.14pt", 84.75}}) {
    const Figure figure = drawn(fmt::format("y = \"dev.bleu\"\nwidth = \"{}\"\n", width));
    EXPECT_NEAR(figure.own_width.value_or(0), mm, 0.01) << width;
    EXPECT_EQ(figure.width == TableSpec::Width::kPage, mm > 129) << width;
  }
  for (const std::string size : {"7", "\"7\"", "\"3pt\"", "\"1cm\"", "\"big\""}) {
    EXPECT_EQ(refused("y = \"m\"\nfont_size = " + size + "\n"),
              "grid.toml:14: font_size must be a number from 4 to 24 pt with its unit, as in \"7pt\"");
  }
  EXPECT_NEAR(*drawn("y = \"dev.bleu\"\nfont_size = \"7.5 pt\"\n").font_size, 7.5, 1e-9);
  EXPECT_THAT(refused("y = \"m\"\nlegend = \"in\"\n"),
              HasSubstr("grid.toml:14: [figure] legend = \"in\" is not known"));
  EXPECT_TRUE(drawn("y = \"dev.bleu\"\nlegend = \"inside\"\n").legend_inside);
  EXPECT_THAT(refused("y = \"m\"\nname = \"a b\"\n"), HasSubstr("name = \"a b\" must be a word"));
  EXPECT_THAT(refused("y = \"m\"\ncolour = \"red\"\n"), HasSubstr("colour"));
  EXPECT_THAT(refused("x = \"m\"\ny = \"m\"\n"), HasSubstr("grid.toml:14: x and y are both m"));
  EXPECT_THAT(refused("y = \"m\"\nname = \"f\"\n[[figure]]\ncaption = \"G\"\ny = \"m\"\nname = \"f\"\n"),
              HasSubstr("two figures have the name f; each needs its own"));
}

TEST_F(Draw, WhatBarsCannotBeOfIsRefusedWithFileLineAndWhatToDo) {
  const std::string bars = "kind = \"bars\"\ny = \"m\"\n";
  EXPECT_THAT(refused("kind = \"bar\"\ny = \"m\"\n"),
              HasSubstr("grid.toml:13: [figure] kind = \"bar\" is not known (did you mean \"bars\"?)"));
  for (const std::string x : {"updates", "hours", "layer", "epoch"}) {
    EXPECT_THAT(refused(bars + "x = \"" + x + "\"\n"),
                HasSubstr("grid.toml:15: kind = \"bars\": x must be an axis of the grid, and " + x +
                          " is none; there are: norm, depth"));
  }
  EXPECT_EQ(
      refused(bars),
      "grid.toml:11: kind = \"bars\": x must be an axis of the grid, and updates is none; there are: norm, depth");
  EXPECT_THAT(refused(bars + "x = \"nrom\"\n"), HasSubstr("nrom is none (did you mean \"norm\"?)"));
  EXPECT_THAT(refused(bars + "x = \"norm\"\nwhere.norm = \"scale\"\n"),
              HasSubstr("grid.toml:15: kind = \"bars\": x = \"norm\" has one label, and nothing stands beside it"));
  EXPECT_THAT(
      refused(bars + "x = \"norm\"\nlog = [\"y\", \"x\"]\n"),
      HasSubstr("grid.toml:16: log: kind = \"bars\" has labels side by side on its axis of x, and no logarithms"));
  EXPECT_EQ(refused(bars + "x = \"norm\"\nlog = \"y\"\n"), "");
  for (const std::string key : {"smooth", "bins"}) {
    EXPECT_THAT(refused(bars + "x = \"norm\"\n" + key + " = 3\n"),
                HasSubstr("grid.toml:16: " + key + " is for what runs report over updates"));
  }
  EXPECT_THAT(refused("x = \"norm\"\ny = \"m\"\n"), HasSubstr("leave it out by where, or draw kind = \"bars\""));
  const std::string published = bars + "x = \"norm\"\n[[figure.published]]\nsource = \"s\"\nlabel = \"a\"\n";
  EXPECT_THAT(refused(published), HasSubstr("published needs points = [[label, y], …]"));
  EXPECT_THAT(refused(published + "points = [[\"scale\", 1], [\"layerr\", 2]]\n"),
              HasSubstr("grid.toml:19: points: the axis norm has no label \"layerr\" (did you mean \"layer\"?)"));
  EXPECT_THAT(refused(published + "points = [[\"scale\", 1], [\"scale\", 2]]\n"), HasSubstr("have the same x"));
  EXPECT_THAT(refused(published + "points = [[\"scale\", \"1\"]]\n"), HasSubstr("a published point is [label, y]"));
  EXPECT_THAT(
      refused(bars + "x = \"depth\"\nwhere.depth = [2, 4]\n[[figure.published]]\nsource = \"s\"\nlabel = \"a\"\n"
                     "points = [[8, 1]]\n"),
      HasSubstr("points: a label of depth that the figure shows is wanted"));
}

TEST_F(Draw, LabelsThatAreOneNumberOrHaveNoLogarithmAreRefusedAsX) {
  const auto refused_over = [&](const std::string& labels, const std::string& keys) {
    try {
      views_of(loaded("x = \"lr\"\ny = \"m\"\n" + keys, "[axis]\nlr = " + labels + "\n"));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused_over("[\"0.001\", \"1e-3\"]", ""), HasSubstr("its labels \"0.001\" and \"1e-3\" are one number"));
  EXPECT_THAT(refused_over("[0, 1]", "log = \"x\"\n"), HasSubstr("the label \"0\" of lr has no logarithm"));
  EXPECT_EQ(refused_over("[0, 1]", "log = \"y\"\n"), "");
}

TEST_F(Draw, APublishedLineLooksLikeTheMeasuredOneAndSoItSaysWhoseItIs) {
  const std::string line =
      "[[figure.published]]\nline = { norm = \"scale\", depth = \"4\" }\npoints = [[10, 2], [20, 3]]\n";
  const Figure one = drawn("y = \"dev.bleu\"\n" + line + "source = \"S\"\n");
  EXPECT_EQ(one.measured, (std::map<size_t, size_t>{{6, 4}})) << "after layer 2, 4, 8 and scale 2";
  EXPECT_EQ(one.legend.at(6).at(0).text, "scale, layers = 4 (published)");
  const Figure two = drawn("y = \"dev.bleu\"\n" + line + "source = \"S\"\n" + line +
                           "source = \"T_1\"\n"
                           "[[figure.published]]\nlabel = \"own\"\npoints = [[10, 2]]\nsource = \"S\"\n");
  EXPECT_EQ(two.measured, (std::map<size_t, size_t>{{6, 4}, {7, 4}}));
  EXPECT_EQ(two.legend.at(6).at(0).text, "scale, layers = 4 (S)");
  EXPECT_EQ(two.legend.at(7).at(0).text, "scale, layers = 4 (T_1)");
  EXPECT_EQ(two.legend.at(8).at(0).text, "own (S)");
}

TEST_F(Draw, AMistakeInAPublishedLineIsRefused) {
  const auto published = [&](const std::string& keys) { return refused("y = \"m\"\n[[figure.published]]\n" + keys); };
  EXPECT_THAT(published("points = [[1, 2]]\nlabel = \"a\"\n"), HasSubstr("published needs its source"));
  EXPECT_THAT(published("source = \"s\"\nlabel = \"a\"\n"), HasSubstr("published needs points = [[x, y], …]"));
  EXPECT_THAT(published("source = \"s\"\npoints = [[1, 2]]\n"), HasSubstr("published needs line = { axis = label }"));
  EXPECT_THAT(published("source = \"s\"\nlabel = \"a\"\npoints = [[1, nan]]\n"),
              HasSubstr("a published point is [x, y], two numbers"));
  EXPECT_THAT(refused("y = \"m\"\nlines = \"norm\"\nwhere.depth = \"4\"\nwhere.norm = \"layer\"\n[[figure.published]]\n"
                      "source = \"s\"\nline = { norm = \"scale\" }\npoints = [[1, 2]]\n"),
              HasSubstr("line: the figure's where leaves out scale"));
  EXPECT_THAT(published("source = \"s\"\nlabel = \"a\"\npoints = [[1]]\n"),
              HasSubstr("a published point is [x, y], two numbers"));
  EXPECT_THAT(published("source = \"s\"\nlabel = \"a\"\npoints = [[1, 2], [1, 3]]\n"),
              HasSubstr("two published points have the same x"));
  EXPECT_THAT(published("source = \"s\"\nline = { norm = \"scale\" }\npoints = [[1, 2]]\n"),
              HasSubstr("line needs a label of depth"));
  EXPECT_THAT(published("source = \"s\"\nlabel = \"a\"\ny = \"n\"\npoints = [[1, 2]]\n"),
              HasSubstr("the figure does not draw n"));
}

TEST_F(Draw, AMistakeInAScoreOfACurveIsRefused) {
  const auto score = [&](const std::string& keys) { return refused("y = \"m\"\n[score.s]\n" + keys); };
  EXPECT_THAT(
      score("of = \"m\"\n"),
      HasSubstr(
          "grid.toml:14: it needs `of` (a metric, scores of layers as in \"g.decoder.*.ffn\", or a list of scores) "
          "and `take`"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"means\"\n"),
              HasSubstr("grid.toml:16: take = \"means\" is not known (did you mean \"mean\"?)"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"first_at_least\"\n"), HasSubstr("first_at_least needs value = a number"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"mean\"\nvalue = 3\n"), HasSubstr("value"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"mean\"\nfrom = 3\nto = 3\n"), HasSubstr("from must be below to"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"mean\"\nlast = 0\n"),
              HasSubstr("last must be a share above 0 and at most 1: 0.1 is the last tenth"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"mean\"\nlast = 10\n"), HasSubstr("grid.toml:17: last must be a share"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"mean\"\nfrom = 3\nlast = 0.1\n"),
              HasSubstr("last and from or to exclude each other"));
  EXPECT_THAT(score("of = \"m\"\ntake = \"spikes\"\nwindow = 0\n"), HasSubstr("window must be a whole number"));
  EXPECT_THAT(score("of = \"a.*.b.*\"\ntake = \"slope\"\n"), HasSubstr("has more than one *"));
}

TEST_F(Draw, AMistakeInAMeanOfScoresIsRefused) {
  const auto score = [&](const std::string& keys) { return refused("y = \"m\"\n[score.s]\n" + keys); };
  const std::string mean = "take = \"mean\"\n";
  EXPECT_THAT(score("of = [\"a\", \"b\"]\n"),
              HasSubstr("grid.toml:15: of several scores take = \"mean\" alone is known"));
  EXPECT_THAT(score("of = [\"a\", \"b\"]\ntake = \"final\"\n"),
              HasSubstr("grid.toml:16: of several scores take = \"mean\" alone is known"));
  EXPECT_THAT(score("of = [\"a\"]\n" + mean), HasSubstr("grid.toml:15: of must name two scores or more, each once"));
  EXPECT_THAT(score("of = [\"a\", \"b\", \"a\"]\n" + mean), HasSubstr("of must name two scores or more, each once"));
  EXPECT_THAT(score("of = [\"a\", 3]\n" + mean),
              HasSubstr("grid.toml:15: [score.s] of must be a text or a list of texts"));
  EXPECT_THAT(score("of = [\"a\", \"test.*\"]\n" + mean),
              HasSubstr("of: a mean is of scores that are named one by one, and \"test.*\" is no name of one"));
  EXPECT_THAT(score("of = [\"a\", \"s\"]\n" + mean),
              HasSubstr("of: s is a score of this file; a mean is of scores that the runs have"));
  EXPECT_THAT(score("of = [\"a\", \"b\"]\nfrom = 3\n" + mean), HasSubstr("unknown key \"from\" in [score.s]"));
}

}  // namespace
}  // namespace tearless::harness::draw_test
