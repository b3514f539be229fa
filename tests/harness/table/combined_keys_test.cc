// Keys of a table together: averages with published numbers, sums of cells with marks, columns of scores that the table
// does not show otherwise.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "harness/results/curves.h"
#include "harness/table/table.h"
#include "tests/harness/notes_of.h"
#include "tests/harness/table/example_table.h"

namespace tearless::harness::combined_keys_test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using example::done;
using example::ended;
using example::load_text;
using example::OutcomeOf;
using example::rows_of;
using example::Scores;
using example::table_of;
using example::texts_of;

/// Rows a and b of two seeds with a derived run each, of which these are the scores; none: it is not there yet.
Table table_of_means(const std::string& keys, const std::function<RunResult(std::string, int64_t)>& derived) {
  const Grid grid = load_text(
      "seeds = 2\n[axis]\nsystem = [\"a\", \"b\"]\n[derived.wide]\nbeam = 8\n[score.both]\n"
      "of = [\"test.bleu\", \"wide.test.bleu\"]\ntake = \"mean\"\n" +
      keys);
  std::vector<Row> rows = rows_of(grid, [](auto labels, int64_t seed) {
    RunResult result = done({{"test.bleu", (labels["system"] == "a" ? 20.0 : 30.0) + static_cast<double>(seed)}});
    result.trained_on = {"cpu, Zen, OpenBLAS"};
    return result;
  });
  for (size_t i = 0, trained = rows.size(); i < trained; ++i) {
    Row row{.run = rows[i].run, .derivation = "wide", .trained = rows[i].run.id};
    row.run.id = row.run.id.replace(0, 1, "f");
    row.result = derived(rows[i].run.coordinates[0].second, row.run.seed);
    row.result.id = row.run.id;
    rows.push_back(row);
  }
  ResultSet results{.rows = std::move(rows)};
  add_defined_scores(grid, results);
  const View view = views_of(grid)[0];
  return fill(grid, view.title, view.table(), results.rows);
}

TEST(MeanOfScores, IsOfEachRunAndItsDerivedRun) {
  const Table table = table_of_means(R"--(
[table]
rows = "system"
scores = ["both", "test.bleu"]
published = { source = "P", score = "both", values = [[24.5], [""]] }
)--",
                                     [](const std::string& system, int64_t seed) {
                                       return done({{"wide.test.bleu", (system == "a" ? 24.0 : 35.0) + 3.0 * seed}});
                                     });
  // of a (21 + 27)/2 and (22 + 30)/2, of b (31 + 38)/2 and (32 + 41)/2
  EXPECT_THAT(texts_of(table)[0], ElementsAre("a", "25.0 ± 1.4 [24.5, +0.5]", "21.50 ± 0.71"));
  EXPECT_THAT(texts_of(table)[1], ElementsAre("b", "35.5 ± 1.4", "31.50 ± 0.71"));
  EXPECT_EQ(table.rows[0].cells[0].cell.runs.size(), 4u) << "of both kinds";
}

TEST(MeanOfScores, IsMixedOnlyWhereOneOfItsKindsOfRunIs) {
  const Table table =
      table_of_means("[table]\nrows = \"system\"\nscores = \"both\"\n", [](const std::string& system, int64_t seed) {
        RunResult result = done({{"wide.test.bleu", 25}});
        result.trained_on = {system == "b" && seed == 2 ? "cpu, Xeon" : "cpu, Zen"};  // it needs no matmuls
        return result;
      });
  EXPECT_EQ(table.rows[0].cells[0].cell.origins.mixed(), 0);
  EXPECT_EQ(table.rows[1].cells[0].cell.origins.mixed(), 2);
}

TEST(MeanOfScores, IsMissingForTheGravestReasonOfItsScores) {
  const Table table =
      table_of_means("[table]\nrows = \"system\"\nscores = \"both\"\n", [](const std::string& system, int64_t seed) {
        if (system == "b") return seed == 1 ? ended(RunState::kFailed) : RunResult();
        return seed == 1 ? done({{"wide.test.bleu", 25}}) : done({});
      });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("a", "23.00, 1/2 no score"));
  EXPECT_THAT(texts_of(table)[1], ElementsAre("b", "– (0/2), 1/2 failed"));
  EXPECT_THAT(notes_of(table), Contains(HasSubstr("wide: 1 run has no result yet. To make them: tearless run")));
  EXPECT_THAT(notes_of(table), Contains(HasSubstr("1 derived run failed")));
  EXPECT_THAT(notes_of(table), Contains(HasSubstr("no score: 1 run is done without both")));
}

TEST(MeanOfScores, IsBestAsItsScoresAreAndNotInBothDirections) {
  const auto table = [](const std::string& best) {
    return table_of_means("[table]\nrows = \"system\"\nscores = [\"both\", \"test.bleu\"]\n" + best,
                          [](const std::string&, int64_t) {
                            return done({{"wide.test.bleu", 25}});
                          });
  };
  EXPECT_TRUE(table("").columns[0].highest_is_best);
  EXPECT_FALSE(table("best = { \"*.bleu\" = \"lowest\" }\n").columns[0].highest_is_best);
  EXPECT_FALSE(table("best = { both = \"lowest\", \"test.bleu\" = \"lowest\" }\n").columns[0].highest_is_best);
  try {
    table("best = { \"wide.*\" = \"lowest\" }\n");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("grid.toml:6: of some scores of both the table \"best\" has the highest, of "
                                        "others the lowest; add best.both = \"highest\" or \"lowest\""));
  }
}

TEST(MeanOfScores, ChoosesAndIsBelowTheLimit) {
  const auto derived = [](const std::string& system, int64_t) {
    return done({{"wide.test.bleu", system == "a" ? 50.0 : 5.0}});
  };
  const Table chosen =
      table_of_means("[table]\nselect = { over = \"system\", by = \"both\" }\nscores = \"test.bleu\"\n", derived);
  EXPECT_EQ(chosen.rows[0].cells[0].cell.chosen.labels, "a") << "35.75 against 18.25, where test.bleu alone says b";
  const Table below =
      table_of_means("[table]\nrows = \"system\"\nscores = [\"both\", \"test.bleu\"]\nfail_below = 20\n", derived);
  EXPECT_THAT(texts_of(below)[0], ElementsAre("a", "35.75 ± 0.35", "21.50 ± 0.71"));
  EXPECT_THAT(texts_of(below)[1], ElementsAre("b", "fail (2/2)", "fail (2/2)"));
}

TEST(PublishedRow, HasTheFirstScoreOfEachColumnOrEachScoreOfEach) {
  const auto row = [](const std::string& scores, const std::string& values) {
    const Table table =
        table_of("[axis]\nsystem = [\"a\"]\ndata = [\"x\", \"y\"]\n[table]\nrows = \"system\"\n" + scores +
                     "[[table.row]]\nlabel = \"P\"\npublished = { source = \"S\", values = " + values + " }\n",
                 [](auto, int64_t) {
                   return done({{"s", 1}, {"t", 2}});
                 });
    return texts_of(table).at(1);
  };
  const std::string two = "scores = [\"s\", \"t\"]\n", by_label = "scores.data = { x = [\"t\", \"s\"], y = \"t\" }\n";
  EXPECT_THAT(row(two, "[5.5, \"6*\"]"), ElementsAre("P", "[5.5]", "", "[6*]", ""));
  EXPECT_THAT(row(two, "[5.5, 7, \"\", \"fail\"]"), ElementsAre("P", "[5.5]", "[7]", "", "[fail]"));
  EXPECT_THAT(row(by_label, "[1, 2, 3]"), ElementsAre("P", "[1]", "[2]", "[3]"));
  EXPECT_THAT(row(by_label, "[1, 3]"), ElementsAre("P", "[1]", "", "[3]"));
  for (const auto& [scores, values, sentence] :
       {std::tuple(two, "[1, 2, 3]", "2 of them (the table's columns), or 4 (each score of each)"),
        std::tuple(std::string("scores = \"*\"\n"), "[1]", "2 of them (the table's columns)")}) {
    try {
      row(scores, values);
      FAIL();
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(),
                  testing::EndsWith(std::string("a row of published numbers needs their source and values = […], ") +
                                    sentence));
    }
  }
}

constexpr const char* kInitAndPlace = R"--(
seeds = 2
[axis]
init = ["x", "s"]
place = ["post", "pre"]
)--";

TEST(Average, KeepsTheDigitsOfPublishedNumbersAndSaysHowItsRunsEnded) {
  const Table table = table_of(std::string(kInitAndPlace) + R"--(
[table]
rows = "place"
average = "init"
scores = "s"
show = "{mean:.1f}"
published = { source = "P", values = [[18.47], [19.5]] }
)--",
                               [](auto labels, int64_t) {
                                 return labels["place"] == "pre" ? ended(RunState::kDiverged) : done({{"s", 20}});
                               });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("post", "20.0 [18.47, +1.5]"));
  EXPECT_THAT(texts_of(table)[1], ElementsAre("pre", "div. (2/2) [19.50]"));
  EXPECT_THAT(notes_of(table), Contains("div.: diverged, the loss or a gradient was no longer finite."));
}

TEST(Average, OverOneValueInEachCellIsNoMean) {
  const Table table = table_of(R"--(
[axis]
place = ["post", "pre"]
[axis.dropout]
values = [0.3]
when = { place = "pre" }
[table]
rows = "place"
average = "dropout"
scores = "s"
)--",
                               [](auto labels, int64_t) {
                                 return done({{"s", labels["dropout"] == "0.3" ? 2 : 1}});
                               });
  EXPECT_THAT(texts_of(table), ElementsAre(ElementsAre("post", "1.00"), ElementsAre("pre", "2.00")));
  EXPECT_THAT(notes_of(table), Not(Contains(HasSubstr("mean over the values"))));
}

TEST(Average, OverOtherValuesInSomeCellsIsToldInTheNote) {
  const Table table = table_of(std::string(kInitAndPlace) + R"--(
[[exclude]]
when = { place = "pre", init = "s" }
why = "w"
[table]
rows = "place"
average = "init"
scores = "s"
show = "{mean:.0f}"
)--",
                               [](auto labels, int64_t) {
                                 return done({{"s", labels["init"] == "s" ? 30 : 10}});
                               });
  EXPECT_THAT(texts_of(table), ElementsAre(ElementsAre("post", "20"), ElementsAre("pre", "10")));
  EXPECT_THAT(notes_of(table),
              Contains("Of each seed the mean over the values of init that the cell has, which are not the "
                       "same in every cell."));
}

constexpr const char* kTwoRows = R"--(
seeds = 2
[axis]
norm = ["ln", "ada"]
[[table]]
rows = "norm"
scores = "s"
)--";
const std::string kMeanAndGain = R"--(
[[table.row]]
label = "mean"
mean = true
[[table.row]]
label = "gain"
difference = ["ada", "ln"]
)--";

TEST(AddedRows, HaveTheMarksOfTheirCellsAndAreNoRepetition) {
  const Table table = table_of(kTwoRows + kMeanAndGain, [](auto labels, int64_t seed) {
    RunResult result = done({{"s", labels["norm"] == "ln" ? 10 : 12}});
    if (labels["norm"] == "ln" && seed == 1) result.stale = "of old numerics";
    result.trained_on = {labels["norm"] == "ln" ? "cpu, one" : "cpu, two"};
    return result;
  });
  EXPECT_THAT(texts_of(table),
              ElementsAre(ElementsAre("ln", "10.00 ± 0.00*"), ElementsAre("ada", "12.00 ± 0.00"),
                          ElementsAre("mean", "11.00 ± 0.00*°"), ElementsAre("gain", "+2.00 ± 0.00*°")));
  EXPECT_EQ(json::parse(render(table, TableFormat::kJson)).at("rows").at(2).at("cells").at(0).at("stale"), 1);
  EXPECT_EQ(json::parse(render(table, TableFormat::kJson)).at("rows").at(2).at("added"), true);
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("\\addlinespace\nmean"));
}

TEST(AddedRows, OfNumbersMeasuredOnTwoMachinesHaveNone) {
  const Table table = table_of(R"--(
seeds = 2
[axis]
norm = ["ln", "ada"]
[table]
rows = "norm"
scores = "measured.seconds"
)--" + kMeanAndGain,
                               [](auto labels, int64_t) {
                                 RunResult result = done({});
                                 result.measured = {{"measured.seconds", labels["norm"] == "ln" ? 1 : 2}};
                                 result.measured_on = {labels["norm"] == "ln" ? "cpu, one" : "cpu, two"};
                                 return result;
                               });
  EXPECT_THAT(texts_of(table)[1], ElementsAre("ada", "2.00 ± 0.00"));
  EXPECT_THAT(texts_of(table)[2], ElementsAre("mean", "–°"));
  EXPECT_THAT(texts_of(table)[3], ElementsAre("gain", "–°"));
}

TEST(AddedRows, ChangeNoDigitsOfTheOthersAndLackWhatTheGridLeavesOut) {
  const Table table = table_of(R"--(
seeds = 2
[axis]
norm = ["ln", "ada", "none"]
task = ["A", "B"]
[[exclude]]
when = { norm = "none", task = "B" }
why = "w"
[table]
rows = "norm"
columns = "task"
scores = "s"
published = { source = "P", values = [[1, 2], [1, 2], [3, 20.91]] }
[[table.row]]
label = "gain"
difference = ["ada", "ln"]
[[table.row]]
label = "mean"
mean = true
)--",
                               [](auto labels, int64_t seed) {
                                 return done({{"s", 10.0 * seed + (labels["norm"] == "ada" ? 1e-4 * seed : 0)}});
                               });
  EXPECT_EQ(texts_of(table)[0][1], "15.0 ± 7.1 [1.00, +14.0]") << "the gain's spread is 7e-05";
  EXPECT_EQ(texts_of(table)[2][2], "left out [20.91]");
  EXPECT_EQ(texts_of(table)[4][2].substr(0, 3), "–");
}

TEST(Sums, HaveOfEachSeedTheGravestReason) {
  const std::string rows = R"--(
seeds = 4
[axis]
norm = ["ln", "ada"]
[[table]]
rows = "norm"
scores = "s"
show = "{mean:.0f}"
fail_below = 5
)--" + kMeanAndGain;
  // ln: a value, diverged, below, failed; ada: a value, a value, failed, still to come.
  const Table table = table_of(rows, [](auto labels, int64_t seed) {
    if (seed == 1) return done({{"s", 10}});
    if (labels["norm"] == "ln") {
      return seed == 2 ? ended(RunState::kDiverged) : seed == 3 ? done({{"s", 1}}) : ended(RunState::kFailed);
    }
    return seed == 2 ? done({{"s", 20}}) : seed == 3 ? ended(RunState::kFailed) : ended(RunState::kQueued);
  });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("ln", "10, 1/4 div., 1/4 fail, 1/4 failed"));
  EXPECT_THAT(texts_of(table)[2], ElementsAre("mean", "10 (1/4), 1/4 div., 1/4 failed")) << "the last is still to come";
}

TEST(Sums, OfOneCellSayWhatItSays) {
  const std::string grid =
      "seeds = 3\n[axis]\nnorm = [\"a\"]\n[table]\nrows = []\ncolumns = []\nscores = \"s\"\n"
      "fail_below = 5\naverage = \"norm\"\n";
  const Table table = table_of(grid, [](const auto&, int64_t seed) {
    return seed == 1 ? ended(RunState::kFailed) : seed == 2 ? ended(RunState::kDiverged) : done({{"s", 1}});
  });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("–, 1/3 div., 1/3 fail, 1/3 failed"));
}

TEST(AddedColumns, MayBeOfAScoreThatTheTableDoesNotShowOtherwise) {
  const Table table = table_of(R"--(
seeds = 1
[axis]
norm = ["ln"]
task = ["A", "B"]
[table]
rows = "norm"
columns = "task"
scores = "test"
show = "{mean:.0f}"
[[table.column]]
label = "dev"
mean = true
score = "dev"
[[table.column]]
label = { text = "test", latex = "$t$" }
mean = true
)--",
                               [](auto labels, int64_t) {
                                 const double task = labels["task"] == "A" ? 2 : 4;
                                 return done({{"test", task}, {"dev", 10 * task}});
                               });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("ln", "2", "4", "30", "3"));
  EXPECT_TRUE(table.several_scores);
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("A & B & dev & $t$ \\\\\nnorm & test & test & dev & test"))
      << "a label's LaTeX is not that of a score";
}

TEST(Published, IsOfTheFirstScoreOfEachColumn) {
  const Table table = table_of(R"--(
seeds = 1
[axis]
norm = ["ln"]
task = ["MT", "LM", "RT"]
[table]
rows = "norm"
columns = "task"
where = { task = ["LM", "RT"] }
scores.task = { MT = "test.bleu", LM = ["test.bpc", "dev.bpc"], RT = "test.acc" }
show = "{mean:.0f}"
published = { source = "P", values = [[7, 8]] }
[[table.row]]
label = "theirs"
published = { source = "Q", values = [5, ""] }
)--",
                               [](const auto&, int64_t) {
                                 return done({{"test.bpc", 1}, {"dev.bpc", 2}, {"test.acc", 3}});
                               });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("ln", "1 [7, −6]", "2", "3 [8, −5]"));
  EXPECT_THAT(texts_of(table)[1], ElementsAre("theirs", "[5]", "", ""));
}

TEST(Published, IsComparedWithWhatTheCellShows) {
  const Table table = table_of(
      "seeds = 3\n[axis]\na = [1]\n[table]\nscores = \"s\"\nshow = \"{median:.1f} ({max:.0f})\"\n"
      "published = { source = \"P\", values = [[26.5]] }\n",
      [](const auto&, int64_t seed) {
        return done({{"s", seed == 1 ? 20 : seed == 2 ? 27 : 37}});
      });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("1", "27.0 (37) [26.5, +0.5]"));
}

TEST(Published, OfTwoSourcesOfOneScoreTellsThemApart) {
  const Table table = table_of(R"--(
seeds = 1
[axis]
a = [1, 2]
[table]
scores = "s"
show = "{mean:.0f}"
[[table.published]]
source = "P"
values = [[5], [""]]
[[table.published]]
source = "Q"
values = [[6], [7]]
)--",
                               [](const auto&, int64_t) {
                                 return done({{"s", 9}});
                               });
  EXPECT_THAT(texts_of(table), ElementsAre(ElementsAre("1", "9 [5, +4] [6 (a)]"), ElementsAre("2", "9 [7 (a), +2]")));
  EXPECT_THAT(notes_of(table), Contains("[in brackets]: P, then ours minus that."));
  EXPECT_THAT(notes_of(table), Contains("(a): Q."));
}

TEST(Published, RowsGoWithSettingsOfTheCommandLineAndANoteSaysSo) {
  Grid grid = load_text(kTwoRows + std::string("[[table.row]]\nlabel = \"theirs\"\npublished = { source = \"P\", "
                                               "values = [5] }\n"));
  grid.set_options = {"train.max_epochs=1"};
  const Table table = fill(grid, {"t"}, views_of(grid).at(0).table(), rows_of(grid, [](const auto&, int64_t) {
                             return done({{"s", 9}});
                           }));
  EXPECT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(notes_of(table), Contains(HasSubstr("Without the published numbers")));
}

TEST(Where, TakesPatternsForTheScoresOfItsRunsAlone) {
  const Table table = table_of(R"--(
seeds = 1
[axis]
task = ["A", "B"]
[table]
rows = "task"
where = { task = "A" }
scores = "*"
)--",
                               [](auto labels, int64_t) {
                                 return done({{labels["task"] == "A" ? "bleu" : "bpc", 1}});
                               });
  ASSERT_EQ(table.columns.size(), 1u);
  EXPECT_EQ(table.columns[0].score, "bleu");
}

TEST(Where, ThatLeavesOneLabelOfAnAxisOfASubgridNeedsNoPlaceForIt) {
  const Table table = table_of(R"--(
seeds = 1
[[subgrid]]
label = "depth"
axis.d = [2, 4]
[[subgrid]]
label = "lr"
axis.lr = [1, 2]
[table]
where = { subgrid = "depth" }
rows = "d"
columns = []
scores = "s"
show = "{mean:.0f}"
)--",
                               [](const auto&, int64_t) {
                                 return done({{"s", 9}});
                               });
  EXPECT_THAT(texts_of(table), ElementsAre(ElementsAre("2", "9"), ElementsAre("4", "9")));
}

TEST(Select, PrintsTheNameOfWhatIsChosen) {
  const std::string grid = R"--(
seeds = 1
[axis]
norm = ["a", "b"]
lr = [0.1, 0.2]
[names]
"lr=0.2" = "large"
[table]
rows = "norm"
scores = "s"
show = "{mean:.0f}"
select = { over = ["lr"], by = "dev" }
)--";
  const Table table = table_of(grid, [](auto labels, int64_t) {
    return done({{"s", 5}, {"dev", (labels["lr"] == "0.2") == (labels["norm"] == "a") ? 2 : 1}});
  });
  EXPECT_THAT(texts_of(table), ElementsAre(ElementsAre("a", "5 @large"), ElementsAre("b", "5 @0.1")));
  EXPECT_EQ(json::parse(render(table, TableFormat::kJson)).at("rows").at(0).at("cells").at(0).at("chosen"), "0.2");
}

TEST(Select, WithTiesOrOneCellKeepsTheChoiceInTheCells) {
  const Table table =
      table_of(R"--(
seeds = 1
[axis]
norm = ["a", "b"]
lr = [1, 2]
[table]
rows = "norm"
scores = "test"
show = "{mean:.0f}"
select = { over = ["lr"], by = "dev" }
)--",
               [](auto labels, int64_t) {
                 return done({{"test", 5}, {"dev", labels["norm"] == "a" || labels["lr"] == "1" ? 1 : 0}});
               });
  EXPECT_THAT(texts_of(table), ElementsAre(ElementsAre("a", "5 @1 (tied)"), ElementsAre("b", "5 @1")));
}

TEST(Counts, OfCellsWithoutAResultDoNotCount) {
  const Table table = table_of(kTwoRows, [](auto labels, int64_t) {
    return labels["norm"] == "ln" ? done({{"s", 5}}) : ended(RunState::kQueued);
  });
  EXPECT_THAT(texts_of(table), ElementsAre(ElementsAre("ln", "5.00 ± 0.00"), ElementsAre("ada", "– (0/2)")));
}

TEST(Show, KeepsABracketThatIsOpenedInOnePartAndClosedInAnother) {
  const auto shown = [](const std::string& show) {
    return texts_of(table_of("seeds = 1\n[axis]\na = [1]\n[table]\nscores = \"s\"\nshow = \"" + show + "\"\n",
                             [](const auto&, int64_t) {
                               return done({{"s", 2}});
                             }))[0][1];
  };
  EXPECT_EQ(shown("{mean:.1f} ({std:.1f}, n={n})"), "2.0 (–, n=1)");
  EXPECT_EQ(shown("{mean:.1f} [{std:.1f}] max {max:.1f}"), "2.0 max 2.0");
  EXPECT_EQ(shown("{std:.1f} {mean:.1f}"), "2.0");
}

TEST(HeaderLines, ArePrintedInTheirOrderAndByNoOtherName) {
  const std::string text = R"--(
seeds = 1
[axis]
norm = ["ln"]
task = ["MT", "RT"]
[names]
2 = "two layers"
norm = ""
task = ""
[table]
rows = "norm"
columns = "task"
scores = "s"
[[table.header]]
name = "Model layers"
texts = { MT = 12, RT = 2 }
[[table.header]]
name = "Batch"
texts = { MT = 8, RT = 9 }
)--";
  const Grid grid = load_text(text), again = parse_grid(grid.merged, "merged.toml");
  for (const Grid& one : {grid, again}) {
    const Table table = fill(one, {"t"}, views_of(one).at(0).table(), {});
    EXPECT_THAT(
        render(table, TableFormat::kText),
        HasSubstr("\n\n               MT        RT\nModel layers   12        2\nBatch          8         9\n─"));
  }
}

TEST(Markdown, KeepsTheLabelsOfAColumnAxisOfOne) {
  const Table table = table_of(
      "seeds = 1\n[axis]\nnorm = [\"ln\"]\ncorpus = [\"gl\"]\n[names]\ncorpus = \"\"\n[table]\nrows = \"norm\"\nscores "
      "= "
      "[\"test\", \"dev\"]\n",
      [](const auto&, int64_t) {
        return done({{"test", 1}, {"dev", 2}});
      });
  EXPECT_THAT(render(table, TableFormat::kMarkdown), HasSubstr("| norm | gl, test | gl, dev |"));
}

TEST(Latex, SetsGreekLettersAndMathematicsThatItDoesNotKnow) {
  const Table table = table_of("title = \"η, σ₂ ≠ ∞\"\nseeds = 1\n[axis]\na = [1]\n[table]\nscores = \"s\"\n",
                               [](const auto&, int64_t) {
                                 return done({{"s", 1}});
                               });
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("\\caption{$\\eta$, $\\sigma$$_{2}$ $\\neq$ $\\infty$}"));
}

TEST(Latex, DoesNotReadTheBeginningOfALabelAsAnArgument) {
  const Table table = table_of(
      "seeds = 1\n[axis]\na = [1]\n[names]\n1 = { text = \"[CLS]\", latex = \"[CLS]\" }\n[table]\nscores = \"s\"\n",
      [](const auto&, int64_t) {
        return done({{"s", 1}});
      });
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("\\midrule\n{}[CLS] & "));
}

}  // namespace
}  // namespace tearless::harness::combined_keys_test
