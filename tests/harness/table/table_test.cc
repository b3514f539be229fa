// From a grid and results to a table: what each situation of a cell looks like, in every form.
#include "harness/table/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "harness/grid/expand.h"
#include "harness/table/sheet.h"
#include "tests/harness/notes_of.h"
#include "tests/support/golden.h"
#include "tests/support/paths.h"

namespace tearless::harness::table_test {
namespace {

using test::TempFolder;
using test::write_text;

Grid load_text(std::string_view text) {
  const TempFolder folder;
  write_text(folder / "grid.toml", text);
  Grid grid = load_grid(folder / "grid.toml");
  grid.file = "grids/example.toml";  // notes name it
  return grid;
}

// results() numbers those of several runs.
constexpr const char *kDoneRun = "0123456789abcdef", *kEndedRun = "fedcba9876543210";

RunResult done(std::map<std::string, double> scores) {
  return {.id = kDoneRun, .state = RunState::kDone, .scores = std::move(scores)};
}
RunResult ended(RunState state) { return {.id = kEndedRun, .state = state}; }

/// What became of a run, and of the one that the derivation called wide makes of it, if there is one.
struct Outcome {
  Outcome(RunResult result) : trained(std::move(result)) {}
  RunResult trained;
  std::optional<RunResult> wide = {};
};

/// A row for every run of the grid with the outcome that `outcome_of` gives it: by row and column point of the first
/// two axes, and seed.
using OutcomeOf = std::function<Outcome(uint32_t row, uint32_t column, int64_t seed)>;
std::vector<Row> results(const Grid& grid, const OutcomeOf& outcome_of) {
  std::vector<Row> rows;
  for (const Combination& combination : runs_of(grid)) {
    const uint32_t column = combination.index.size() > 1 ? combination.index[1] : 0;
    Outcome outcome = outcome_of(combination.index[0], column, combination.seed);
    std::string& id = outcome.trained.id;
    if (id == kDoneRun || id == kEndedRun) id.replace(12, 4, fmt::format("{:04x}", rows.size()));
    harness::Run run{.id = outcome.trained.id, .settings = "", .seed = combination.seed};
    for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
      run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[combination.index[axis]].label);
    }
    rows.push_back({.run = run, .trained = run.id, .result = outcome.trained});
    if (!outcome.wide) continue;
    run.coordinates.emplace_back(kDerivedLabel, "wide");
    rows.push_back({.run = run, .derivation = "wide", .trained = run.id, .result = *outcome.wide});
    rows.back().run.id = outcome.wide->id;
  }
  return rows;
}

/// The table of a grid that has one.
template <class... Options>
Table fill(const Grid& grid, const std::vector<Row>& rows, const Options&... options) {
  const View view = views_of(grid).at(0);
  return harness::fill(grid, view.title, view.table(), rows, options...);
}

/// The text of the one cell of a one-axis, one-value grid with `seeds` seeds.
std::string cell_of(int seeds, const std::function<RunResult(int64_t seed)>& result_of, const std::string& table = "") {
  const Grid grid =
      load_text("seeds = " + std::to_string(seeds) + "\n[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\n" + table);
  const Table filled = fill(grid, results(grid, [&](uint32_t, uint32_t, int64_t seed) { return result_of(seed); }));
  return cell_text(filled, filled.columns[0], filled.rows[0].cells[0]);
}

RunResult bleu(double value) { return done({{"test.bleu", value}}); }
RunResult around_28(int64_t seed) { return bleu(28.0 + 0.1 * static_cast<double>(seed)); }

TEST(Cell, ShowsMeanSpreadAndCount) {
  EXPECT_EQ(cell_of(3, around_28), "28.20 ± 0.10");
  EXPECT_EQ(cell_of(3, around_28, "cell.show = \"mean ± std\""), "28.20 ± 0.10");
  EXPECT_EQ(cell_of(3, around_28, "cell.show = \"mean\""), "28.20");
  EXPECT_EQ(cell_of(3, around_28, "decimals = 1"), "28.2 ± 0.1");
  EXPECT_EQ(cell_of(3, around_28, "decimals = { \"dev.*\" = 1, \"test.*\" = 3 }"), "28.200 ± 0.100");
}

/// A run with a derived one in this state.
Outcome with_derived(double value, std::optional<RunState> state, std::map<std::string, double> scores = {}) {
  Outcome outcome = bleu(value);
  outcome.wide = RunResult{.id = "00000000000000ff", .state = state, .scores = std::move(scores)};
  return outcome;
}

TEST(Cell, OfADerivedRunsScoreCountsTheDerivedRuns) {
  const auto cell = [](const std::function<Outcome(int64_t)>& result_of) {
    const Grid grid = load_text("seeds = 3\n[axis]\na = [1]\n[table]\nscores = [\"wide.test.bleu\", \"test.bleu\"]\n");
    const Table filled = fill(grid, results(grid, [&](uint32_t, uint32_t, int64_t seed) { return result_of(seed); }));
    std::string text;
    for (size_t i = 0; i < 2; ++i) text += cell_text(filled, filled.columns[i], filled.rows[0].cells[i]) + "; ";
    return text + testing::PrintToString(notes_of(filled).back());
  };
  EXPECT_THAT(cell([](int64_t seed) {
                return with_derived(28, RunState::kDone, {{"wide.test.bleu", 30.0 + static_cast<double>(seed)}});
              }),
              testing::HasSubstr("32.0 ± 1.0; 28.00 ± 0.00"));
  EXPECT_THAT(cell([](int64_t seed) {
                return seed == 1 ? with_derived(28, RunState::kDone, {{"wide.test.bleu", 30}})
                                 : with_derived(28, seed == 2 ? std::nullopt : std::optional(RunState::kQueued));
              }),
              testing::AllOf(testing::HasSubstr("30.00 (1/3); 28.00 ± 0.00"),
                             testing::HasSubstr("wide: 2 runs have no result yet. To make them: tearless run")));
  EXPECT_THAT(
      cell([](int64_t) { return with_derived(28, RunState::kFailed); }),
      testing::AllOf(testing::HasSubstr("failed (3/3); 28"),
                     testing::HasSubstr("1 derived run failed. To see why: tearless explain 00000000000000ff")));
  EXPECT_THAT(cell([](int64_t) { return with_derived(28, RunState::kDone); }), testing::HasSubstr("–; 28"));
  const Grid all = load_text("[axis]\na = [1]\n[table]\nscores = \"*.test.bleu\"\n");
  EXPECT_EQ(fill(all, results(all,
                              [](uint32_t, uint32_t, int64_t) {
                                return with_derived(28, RunState::kDone, {{"wide.test.bleu", 30}});
                              }))
                .columns.front()
                .score,
            "wide.test.bleu");
}

TEST(Cell, IsMixedIfTheTrainedOrTheDerivedRunsAreOfSeveralMachines) {
  const auto cell = [](const std::string& trained_on, const std::string& decoded_on) {
    const Grid grid = load_text("seeds = 2\n[axis]\na = [1]\n[table]\nscores = \"wide.test.bleu\"\n");
    const Table filled = fill(grid, results(grid, [&](uint32_t, uint32_t, int64_t seed) {
                                Outcome run = with_derived(28, RunState::kDone, {{"wide.test.bleu", 30}});
                                run.trained.trained_on = {seed == 1 ? "a" : trained_on};
                                run.wide->trained_on = {seed == 1 ? "b" : decoded_on};
                                return run;
                              }));
    return cell_text(filled, filled.columns[0], filled.rows[0].cells[0]);
  };
  EXPECT_EQ(cell("a", "b"), "30.00 ± 0.00");
  EXPECT_EQ(cell("c", "b"), "30.00 ± 0.00°");
  EXPECT_EQ(cell("a", "c"), "30.00 ± 0.00°");
}

TEST(Cell, HasNoSpreadForOneRun) { EXPECT_EQ(cell_of(1, around_28), "28.10"); }

/// A run that took so many seconds an update on that machine.
RunResult timed(double seconds, std::set<std::string> machines) {
  RunResult result = bleu(28);
  result.measured = {{"measured.seconds_per_update", seconds}, {"measured.seconds", 100 * seconds}};
  result.measured_on = std::move(machines);
  return result;
}

Table table_of_times(const std::string& scores, const std::function<RunResult(uint32_t row, int64_t seed)>& result_of) {
  const Grid grid = load_text("seeds = 2\n[axis]\na = [1, 2]\n[table]\nscores = " + scores + "\n");
  return fill(grid,
              results(grid, [&](uint32_t row, uint32_t, int64_t seed) -> Outcome { return result_of(row, seed); }));
}

std::string first_cell(const Table& table) { return cell_text(table, table.columns[0], table.rows[0].cells[0]); }

TEST(Cell, OfAMeasuredNumberIsTheMeanOfTheRunsAndTheMachineIsInANote) {
  const auto on_one = [](uint32_t, int64_t seed) {
    return timed(0.25 * static_cast<double>(seed), {"cpu, one, 1 thread"});
  };
  const Table table = table_of_times("\"measured.seconds_per_update\"", on_one);
  EXPECT_EQ(first_cell(table), "0.38 ± 0.18");
  EXPECT_THAT(notes_of(table), testing::Contains("Measured on: cpu, one, 1 thread."));
  const Table scores = table_of_times("\"test.bleu\"", on_one);
  EXPECT_THAT(notes_of(scores), testing::Not(testing::Contains(testing::HasSubstr("Measured on")))) << "of no score";
}

TEST(Cell, OfAMeasuredNumberOfTwoMachinesHasNoMean) {
  const auto on_two = [](uint32_t row, int64_t seed) {
    return timed(0.25, {row == 0 && seed == 2 ? "cpu, two" : "cpu, one"});
  };
  const Table table = table_of_times("[\"measured.seconds_per_update\", \"test.bleu\"]", on_two);
  EXPECT_EQ(first_cell(table), "–°");
  EXPECT_EQ(cell_text(table, table.columns[0], table.rows[1].cells[0]), "0.25 ± 0.00");
  EXPECT_EQ(cell_text(table, table.columns[1], table.rows[0].cells[1]), "28.00 ± 0.00") << "the scores count";
  EXPECT_THAT(notes_of(table), testing::Contains("Measured on machines that cannot be compared: cpu, one; cpu, two."));
  EXPECT_THAT(notes_of(table), testing::Contains(testing::HasSubstr("no score: 2 runs are done without "
                                                                    "measured.seconds_per_update (2 measured on one of "
                                                                    "several machines)")));
  const auto continued_elsewhere = [](uint32_t, int64_t seed) {
    return seed == 1 ? timed(0.25, {"cpu, one", "cpu, two"}) : timed(0.25, {"cpu, one"});
  };
  EXPECT_EQ(first_cell(table_of_times("\"measured.seconds_per_update\"", continued_elsewhere)), "–°");
}

TEST(Notes, SayOfEachMeasuredNumberWhereItIsOfOnlyWhereTheyDiffer) {
  const Grid grid =
      load_text("[axis]\na = [1, 2]\n[table]\nscores = [\"measured.seconds\", \"wide.measured.seconds\"]\n");
  const auto notes_with = [&](const std::string& decoded_on) {
    return notes_of(fill(grid, results(grid, [&](uint32_t row, uint32_t, int64_t) {
                           Outcome outcome = timed(0.25, {"cpu, one"});
                           outcome.wide = RunResult{.id = "00000000000000ff", .state = RunState::kDone};
                           outcome.wide->measured = {{"wide.measured.seconds", 1.5}};
                           outcome.wide->measured_on = {row == 0 ? "cpu, one" : decoded_on};
                           return outcome;
                         })));
  };
  EXPECT_THAT(notes_with("cpu, one"), testing::Contains("Measured on: cpu, one."));
  EXPECT_THAT(notes_with("cpu, two"),
              testing::IsSupersetOf({"measured.seconds: measured on: cpu, one.",
                                     "wide.measured.seconds: measured on machines that cannot be compared: cpu, one; "
                                     "cpu, two."}));
}

TEST(Cell, OfAMeasuredNumberCountsRunsThatHaveMeasuredNothingApart) {
  const auto half = [](uint32_t, int64_t seed) { return seed == 1 ? timed(0.25, {"cpu, one"}) : bleu(28); };
  const Table table = table_of_times("\"measured.seconds_per_update\"", half);
  EXPECT_EQ(first_cell(table), "0.25, 1/2 no score");
  EXPECT_THAT(notes_of(table), testing::Contains(testing::HasSubstr("(2 not measured)")));
  const auto none = [](uint32_t, int64_t) { return bleu(28); };
  EXPECT_EQ(first_cell(table_of_times("\"measured.seconds_per_update\"", none)), "–");
}

TEST(Fill, TakesMeasuredNumbersForPatternsThatNameThemAlone) {
  const auto on_one = [](uint32_t, int64_t) { return timed(0.25, {"cpu, one"}); };
  const auto scores_of = [&](const std::string& scores) {
    std::vector<std::string> names;
    for (const Table::Column& column : table_of_times(scores, on_one).columns) names.push_back(column.score);
    return names;
  };
  EXPECT_THAT(scores_of("\"measured.*\""), testing::ElementsAre("measured.seconds", "measured.seconds_per_update"));
  EXPECT_THAT(scores_of("\"*\""), testing::ElementsAre("test.bleu"));
}

TEST(Cell, CountsMissingRuns) {
  EXPECT_EQ(cell_of(3, [](int64_t) { return ended(RunState::kQueued); }), "– (0/3)");
  EXPECT_EQ(cell_of(3, [](int64_t seed) { return seed == 2 ? ended(RunState::kRunning) : around_28(seed); }),
            "28.20 ± 0.14 (2/3)");
  EXPECT_EQ(cell_of(2, [](int64_t) { return RunResult{}; }), "– (0/2)");
}

TEST(Cell, CountsDivergedRunsAsAResult) {
  EXPECT_EQ(cell_of(5, [](int64_t seed) { return seed == 5 ? ended(RunState::kDiverged) : around_28(seed); }),
            "28.25 ± 0.13, 1/5 div.");
  EXPECT_EQ(cell_of(5, [](int64_t) { return ended(RunState::kDiverged); }), "div. (5/5)");
  EXPECT_EQ(cell_of(3, [](int64_t seed) { return ended(seed == 1 ? RunState::kDiverged : RunState::kQueued); }),
            "– (0/3), 1/3 div.");
}

TEST(Cell, CountsADivergedRunsBestCheckpointOnRequest) {
  const auto second_diverged = [](int64_t seed) {
    RunResult result = around_28(seed);
    if (seed == 2) result.state = RunState::kDiverged;
    return result;
  };
  EXPECT_EQ(cell_of(3, second_diverged), "28.20 ± 0.14, 1/3 div.") << "as it was before such runs had scores";
  EXPECT_EQ(cell_of(3, second_diverged, "diverged = \"excluded\""), "28.20 ± 0.14, 1/3 div.");
  EXPECT_EQ(cell_of(3, second_diverged, "diverged = \"counted\""), "28.20 ± 0.10, 1/3 div.");
  EXPECT_EQ(cell_of(3, second_diverged, "diverged = \"counted\"\ncell.show = \"mean\""), "28.20, 1/3 div.");
  const auto without_scores = [&](int64_t seed) {
    return seed == 3 ? ended(RunState::kDiverged) : seed == 1 ? ended(RunState::kQueued) : second_diverged(seed);
  };
  EXPECT_EQ(cell_of(3, without_scores, "diverged = \"counted\""), "28.20 (1/3), 2/3 div.");
  EXPECT_EQ(cell_of(3, second_diverged, "diverged = \"counted\"\nfail_below = 28.15"),
            "28.250 ± 0.071, 1/3 div., 1/3 fail")
      << "the first fails";
  EXPECT_EQ(cell_of(3, second_diverged, "diverged = \"counted\"\nfail_below = 29"), "–, 1/3 div., 2/3 fail");
}

TEST(Cell, SaysInANoteThatDivergedRunsAreInTheMean) {
  const auto notes = [](const std::string& key) {
    const Grid grid = load_text("seeds = 1\n[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\n" + key);
    const auto one = [](uint32_t, uint32_t, int64_t) {
      RunResult result = bleu(25);
      result.state = RunState::kDiverged;
      return result;
    };
    return testing::PrintToString(notes_of(fill(grid, results(grid, one))));
  };
  const std::string counted = "in the mean with the scores of the best checkpoint before that";
  EXPECT_THAT(notes("diverged = \"counted\""), testing::HasSubstr(counted));
  EXPECT_THAT(notes(""),
              testing::AllOf(testing::HasSubstr("div.: diverged, the loss or a gradient was no longer finite"),
                             testing::Not(testing::HasSubstr(counted))));
}

TEST(Cell, CountsFailedRuns) {
  EXPECT_EQ(cell_of(2, [](int64_t) { return ended(RunState::kFailed); }), "failed (2/2)");
  EXPECT_EQ(cell_of(3, [](int64_t seed) { return seed == 1 ? ended(RunState::kFailed) : around_28(seed); }),
            "28.250 ± 0.071, 1/3 failed");
}

TEST(Cell, MarksAScoreBelowTheLimitAsFailed) {
  EXPECT_EQ(cell_of(
                2, [](int64_t) { return bleu(0.3); }, "fail_below = 1"),
            "fail (2/2)");
  EXPECT_EQ(cell_of(
                3, [](int64_t seed) { return seed == 1 ? bleu(0.3) : around_28(seed); }, "fail_below = 1"),
            "28.250 ± 0.071, 1/3 fail");
}

constexpr const char* kStale = "another program has made it";

TEST(Cell, MarksStaleAndMixedRuns) {
  EXPECT_EQ(cell_of(2,
                    [](int64_t seed) {
                      RunResult result = around_28(seed);
                      result.stale = seed == 1 ? kStale : "";
                      return result;
                    }),
            "28.150 ± 0.071*");
  EXPECT_EQ(cell_of(2,
                    [](int64_t seed) {
                      RunResult result = around_28(seed);
                      result.stale = kStale;
                      result.trained_on = {"cpu, one processor", "cpu, another"};
                      return result;
                    }),
            "28.150 ± 0.071*°");
}

// A decoding is made of the trained run's numbers: both must be of today.
TEST(Cell, OfADerivedRunsScoreIsStaleIfTheTrainedOrTheDerivedRunIs) {
  const auto cell = [](bool trained_is_stale, bool derived_is_stale) {
    const Grid grid = load_text("seeds = 2\n[axis]\na = [1]\n[table]\nscores = [\"wide.test.bleu\", \"test.bleu\"]\n");
    const Table filled = fill(grid, results(grid, [&](uint32_t, uint32_t, int64_t seed) {
                                Outcome run = with_derived(28, RunState::kDone, {{"wide.test.bleu", 30}});
                                run.trained.stale = seed == 1 && trained_is_stale ? kStale : "";
                                run.wide->stale = seed == 1 && derived_is_stale ? kStale : "";
                                return run;
                              }));
    const std::vector<TableCell>& cells = filled.rows[0].cells;
    return std::pair(cell_text(filled, filled.columns[0], cells[0]), cell_text(filled, filled.columns[1], cells[1]));
  };
  using Texts = std::pair<std::string, std::string>;
  EXPECT_EQ(cell(false, false), Texts("30.00 ± 0.00", "28.00 ± 0.00"));
  EXPECT_EQ(cell(true, false), Texts("30.00 ± 0.00*", "28.00 ± 0.00*"));
  EXPECT_EQ(cell(false, true), Texts("30.00 ± 0.00*", "28.00 ± 0.00"));
}

TEST(Cell, IsMixedWhereItsRunsWereTrainedOnDifferentMachines) {
  const auto trained_on = [](const std::string& odd, const std::string& even) {
    return cell_of(2, [&](int64_t seed) {
      RunResult result = around_28(seed);
      result.trained_on = {seed % 2 ? odd : even};
      return result;
    });
  };
  EXPECT_EQ(trained_on("cpu, a processor", "cpu, a processor"), "28.150 ± 0.071");
  EXPECT_EQ(trained_on("cpu, a processor, MKL 2024", "cpu, a processor, OpenBLAS 0.3.34 Haswell"), "28.150 ± 0.071°");
  EXPECT_EQ(trained_on("cpu, a processor", "cpu, a processor, OpenBLAS 0.3.34 Haswell"), "28.150 ± 0.071")
      << "what is not known is no other kind";
}

TEST(Cell, ShowsThePublishedValueWithTheDifference) {
  const auto published = [](const std::string& value) {
    return "published = { source = \"S\", values = [[" + value + "]] }";
  };
  EXPECT_EQ(cell_of(3, around_28, published("28.5")), "28.20 ± 0.10 [28.5, −0.30]");
  EXPECT_EQ(cell_of(3, around_28, published("28.15")), "28.20 ± 0.10 [28.15, +0.05]");
  EXPECT_EQ(cell_of(3, around_28, published("\"fail\"")), "28.20 ± 0.10 [fail]");
  EXPECT_EQ(cell_of(3, around_28, published("\"\"")), "28.20 ± 0.10");
  EXPECT_EQ(cell_of(
                3, [](int64_t) { return ended(RunState::kQueued); }, published("28")),
            "– (0/3) [28]");
}

// The cells of one score in rows of runs with these values; the notes last.
std::vector<std::string> cells_of(const std::vector<std::vector<double>>& rows, const std::string& table = "") {
  std::string labels;
  for (size_t row = 0; row < rows.size(); ++row) labels += std::to_string(row) + ", ";
  const Grid grid = load_text(
      fmt::format("seeds = {}\n[axis]\na = [{}]\n[table]\nscores = \"s\"\n{}", rows.front().size(), labels, table));
  const Table filled = fill(grid, results(grid, [&](uint32_t row, uint32_t, int64_t seed) {
                              return done({{"s", rows.at(row).at(static_cast<size_t>(seed - 1))}});
                            }));
  std::vector<std::string> texts;
  for (const Table::Row& row : filled.rows) texts.push_back(cell_text(filled, filled.columns[0], row.cells[0]));
  return texts;
}
using testing::ElementsAre;

TEST(Cell, ShowsAPublishedNumberWithItsRatioAsTheSourceHasIt) {
  const auto text = [](const std::string& published) {
    return cell_of(1, around_28, "published = { source = \"P\", values = [[\"" + published + "\"]] }\n");
  };
  EXPECT_EQ(text("27.5/1.00"), "28.10 [27.5/1.00, +0.60]");
  EXPECT_EQ(text("27.5/1.00*"), "28.10 [27.5/1.00*, +0.60]");
  EXPECT_EQ(text("–/1.00"), "28.10 [–/1.00]");
  EXPECT_EQ(text("27.5/1.00 (2)"), "28.10 [27.5/1.00 (2)]") << "no number";
  EXPECT_EQ(text("27.5/"), "28.10 [27.5/]");
}

TEST(Cell, OfAPatternHasTheDigitsOfTheLongestThatItsScoreMatches) {
  EXPECT_EQ(cell_of(3, around_28, "decimals = { \"*\" = 4, \"test*\" = 1, \"tes*\" = 3 }"), "28.2 ± 0.1");
}

TEST(Cell, EqualScoresHaveNoSpreadAndTheDigitsComeFromTheOthers) {
  EXPECT_THAT(cells_of({{27.7, 27.7, 27.7}, {0.1, 0.1, 0.1}, {28.0, 28.2, 28.5}}),
              ElementsAre("27.70 ± 0.00", "0.10 ± 0.00", "28.23 ± 0.25"));
  EXPECT_THAT(cells_of({{0.1 + 0.2, 0.3, 0.3}, {0.3, 0.4, 0.5}}), ElementsAre("0.30 ± 0.00", "0.40 ± 0.10"));
}

TEST(Cell, OfSmallNumbersHasAnExponent) {
  EXPECT_THAT(cells_of({{2.4e-8, 2.6e-8, 2.5e-8}, {1.1e-7, 1.3e-7, 1.2e-7}}),
              ElementsAre("2.50e-08 ± 1.0e-09", "1.200e-07 ± 1.00e-08"));
  EXPECT_THAT(cells_of({{3e-12}, {-7.5e-12}}), ElementsAre("3.0e-12", "−7.5e-12"));
  EXPECT_THAT(cells_of({{2.5e-8}}, "decimals = 3"), ElementsAre("2.500e-08"));
  EXPECT_THAT(cells_of({{2.5e-8}}, "decimals = 9"), ElementsAre("0.000000025")) << "as it was asked for";
  EXPECT_THAT(cells_of({{1, 1 + 2e-9}}), ElementsAre("1.0000000 ± 1.4e-09"));
  EXPECT_THAT(cells_of({{0.00031}, {0.00042}}), ElementsAre("0.00031", "0.00042"));
  EXPECT_THAT(cells_of({{2e-6, 4e-6}}), ElementsAre("0.0000030 ± 0.0000014"));
}

TEST(Cell, OfLargeWholeNumbersHasNoPoint) {
  EXPECT_THAT(cells_of({{61234567, 61234567}, {1234, 1234}}), ElementsAre("61234567 ± 0", "1234 ± 0"));
  EXPECT_THAT(cells_of({{1234.5}, {2}}), ElementsAre("1234.50", "2.00"));
  EXPECT_THAT(cells_of({{28}, {30}}), ElementsAre("28.00", "30.00"));
  EXPECT_THAT(cells_of({{3e20, 3.2e20}}), ElementsAre("3.10e+20 ± 1.4e+19"));
}

TEST(Cell, WhatIsPrintedAsZeroHasNoMinus) {
  EXPECT_THAT(cells_of({{-0.01, 0.01, -0.02, 0.01, -0.01}}, "decimals = 2"), ElementsAre("0.00 ± 0.01"));
  EXPECT_THAT(cells_of({{-0.0}, {-0.0}}), ElementsAre("0.00", "0.00"));
  const auto published = [](const char* value) {
    return fmt::format("decimals = 2\npublished = {{ source = \"S\", values = [[{}]] }}", value);
  };
  EXPECT_THAT(cells_of({{28.199}}, published("28.2")), ElementsAre("28.20 [28.2, +0.00]"));
  EXPECT_THAT(cells_of({{0.004}}, published("-0.0")), ElementsAre("0.00 [0, +0.00]"));
  EXPECT_THAT(cells_of({{2.4e-8}}, published("2.5e-8")), ElementsAre("2.40e-08 [2.5e-08, −1.00e-09]"));
  EXPECT_THAT(cells_of({{1e-9 + 1, 1e-9 - 1}}), ElementsAre("0.0 ± 1.4")) << "nearly 0 beside its spread";
}

TEST(Cell, IsTimesTheFactorOfItsScoreWithSpreadAndDifference) {
  const std::string keys = "published = { source = \"S\", values = [[90.0]] }\n";
  EXPECT_THAT(cells_of({{0.912, 0.914}}, keys + "factor = 100"), ElementsAre("91.30 ± 0.14 [90, +1.30]"));
  EXPECT_THAT(cells_of({{0.912, 0.914}}, keys + "factor = { \"s*\" = 1000 }"), ElementsAre("913.0 ± 1.4 [90, +823.0]"));
  EXPECT_THAT(cells_of({{0.912, 0.914}}, "factor = { \"t*\" = 100 }"), ElementsAre("0.9130 ± 0.0014"));
  EXPECT_THAT(cells_of({{0.07, 0.07}, {0.5, 0.6}}, "factor = 100"), ElementsAre("7.0 ± 0.0", "55.0 ± 7.1"));
  EXPECT_THAT(cells_of({{0.7 + 0.1, 0.9}}, "fail_below = 0.8"), ElementsAre("0.850 ± 0.071")) << "0.8 but for rounding";
  EXPECT_THAT(cells_of({{0.912, 0.914}}, "factor = 100\nfail_below = 0.913"), ElementsAre("91.40, 1/2 fail"))
      << "the limit is compared with what the runs report";
}

TEST(Notes, NameTheScoresThatAreMultiplied) {
  const Grid grid =
      load_text("[axis]\na = [1]\n[table]\nscores = [\"x\", \"y\", \"z\"]\nfactor = { x = 100, z = 100 }\n");
  EXPECT_THAT(notes_of(fill(grid, {})), testing::Contains("x, z: 100 times what the runs report."));
  EXPECT_EQ(fill(grid, {}).columns[1].factor, 1);
}

// A done run without the score is neither a failure nor a run to come.
TEST(Cell, CountsDoneRunsWithoutTheScoreApart) {
  const auto outcome = [](int64_t seed) {
    if (seed == 1) return done({{"test.ppl", 3}});
    RunResult nan = done({});
    nan.no_numbers = {{"test.bleu", "NaN"}};
    return seed == 2 ? nan : around_28(seed);
  };
  EXPECT_EQ(cell_of(5, outcome), "28.40 ± 0.10, 2/5 no score");
  EXPECT_EQ(cell_of(5, [&](int64_t seed) { return seed == 5 ? ended(RunState::kQueued) : outcome(seed); }),
            "28.350 ± 0.071 (2/5), 2/5 no score");
  EXPECT_EQ(cell_of(2, outcome), "–");
}

TEST(Notes, NameTheDoneRunsWithoutAScore) {
  const auto notes = [](int seeds, const std::function<RunResult(int64_t)>& result_of) {
    const Grid grid = load_text(fmt::format("seeds = {}\n[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\n", seeds));
    return notes_of(
        fill(grid, results(grid, [&](uint32_t, uint32_t, int64_t seed) { return result_of(seed); }), " -w x"));
  };
  const auto outcome = [](int64_t seed) {
    RunResult result = seed == 1 ? bleu(28) : done({});
    result.id = fmt::format("{:016}", seed);
    if (seed == 3) result.no_numbers = {{"test.bleu", "null"}};
    return result;
  };
  EXPECT_THAT(
      notes(3, outcome),
      testing::Contains("no score: 2 runs are done without test.bleu (1 not in scores.json, 1 null). To see what "
                        "is there: tearless explain 0000000000000002 -w x"));
  EXPECT_THAT(notes(2, outcome), testing::Contains(testing::StartsWith("no score: 1 run is done without test.bleu (")));
  EXPECT_THAT(notes(1, outcome), testing::Not(testing::Contains(testing::HasSubstr("no score"))));
  EXPECT_THAT(notes(1,
                    [](int64_t) {
                      RunResult result = done({});
                      result.no_numbers = {{"test.bleu", "NaN"}};
                      return result;
                    }),
              testing::Contains(testing::StartsWith("no score: 1 run is done without test.bleu (1 NaN). ")));
  EXPECT_THAT(notes(2, [](int64_t) { return done({}); }),
              testing::Not(testing::Contains(testing::HasSubstr("no score"))))
      << "usual for such a score";
}

TEST(Render, TheCountsOfACsvLineAddUp) {
  const Grid grid = load_text("seeds = 6\n[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\nfail_below = 1\n");
  const std::string csv = render(fill(grid, results(grid,
                                                    [](uint32_t, uint32_t, int64_t seed) {
                                                      return seed == 1   ? bleu(28)
                                                             : seed == 2 ? bleu(0.5)
                                                             : seed == 3 ? ended(RunState::kDiverged)
                                                             : seed == 4 ? ended(RunState::kFailed)
                                                             : seed == 5 ? ended(RunState::kQueued)
                                                                         : done({});
                                                    })),
                                 TableFormat::kCsv);
  EXPECT_THAT(csv, testing::HasSubstr(",n,expected,diverged,below,failed,scoreless,missing,"));
  EXPECT_THAT(csv, testing::HasSubstr("\n1,test.bleu,28,,1,6,1,1,1,1,1,"));
}

TEST(Render, ColumnsOfCsvHaveUniqueNames) {
  const Grid grid = load_text("[axis]\nscore = [\"dot\"]\nmean = [0]\nruns = [7]\n");
  EXPECT_THAT(render(fill(grid, {}), TableFormat::kCsv),
              testing::StartsWith("score:2,mean:2,runs:2,score,mean,spread,n,expected,diverged,below,failed,scoreless,"
                                  "missing,stale,mixed,chosen,published,difference,runs\ndot,0,7,test.*,"));
}

TEST(Render, LatexSetsExponentsAsPowersOfTen) {
  const Grid grid = load_text("seeds = 2\n[axis]\na = [\"1.5e-08\"]\n[table]\nscores = \"s\"\n");
  const Table table = fill(grid, results(grid, [](uint32_t, uint32_t, int64_t seed) {
                             return done({{"s", seed == 1 ? -2.4e-8 : -2.6e-8}});
                           }));
  EXPECT_THAT(render(table, TableFormat::kLatex),
              testing::HasSubstr("1.5e-08 & $-2.50\\times10^{-8}$ $\\pm$ $1.4\\times10^{-9}$ \\\\"));
  EXPECT_THAT(render(table, TableFormat::kMarkdown), testing::HasSubstr("| −2.50e-08 ± 1.4e-09 |"));
}

TEST(Fill, TakesDigitsFromTheUsualSpreadOfEachScore) {
  const Grid grid =
      load_text("seeds = 2\n[axis]\na = [1, 2]\n[table]\nscores = [\"test.bleu\", \"test.ppl\", \"norm\"]\n");
  const Table table = fill(grid, results(grid, [](uint32_t row, uint32_t, int64_t seed) {
                             const auto x = static_cast<double>(seed + row);
                             return done({{"test.bleu", 20 + x}, {"test.ppl", 1000 + 100 * x}, {"norm", 0.001 * x}});
                           }));
  EXPECT_EQ(cell_text(table, table.columns[0], table.rows[0].cells[0]), "21.50 ± 0.71");
  EXPECT_EQ(cell_text(table, table.columns[1], table.rows[0].cells[1]), "1150 ± 71");
  EXPECT_EQ(cell_text(table, table.columns[2], table.rows[0].cells[2]), "0.00150 ± 0.00071");
}

TEST(Fill, ReplacesPatternsByTheScoresThereAre) {
  const Grid grid = load_text("[axis]\na = [1, 2]\n[table]\nscores = [\"test.bleu\", \"g.*.ffn\", \"dev.*\"]\n");
  const Table table = fill(
      grid, results(grid, [](uint32_t row, uint32_t, int64_t) {
        if (row == 0) return done({{"test.bleu", 1}});
        return done(
            {{"test.bleu", 2}, {"g.encoder.10.ffn", 3}, {"g.encoder.9.ffn", 4}, {"g.encoder.9.self_attention", 5}});
      }));
  std::vector<std::string> scores;
  for (const Table::Column& column : table.columns) scores.push_back(column.score);
  EXPECT_THAT(scores, testing::ElementsAre("test.bleu", "g.encoder.9.ffn", "g.encoder.10.ffn", "dev.*"));
  EXPECT_EQ(cell_text(table, table.columns[1], table.rows[0].cells[1]), "–");  // a norm without g has none
}

TEST(Fill, ReportsTheBestOfAnAxisAsChosenByAnotherScore) {
  const Grid grid = load_text(R"(
[axis]
norm = ["a", "b"]
lr = [0.1, 0.2, 0.3]
[table]
rows = "norm"
scores = ["test.bleu"]
select = { over = ["lr"], by = "dev.bleu" }
)");
  const Table table =
      fill(grid, results(grid, [](uint32_t norm, uint32_t lr, int64_t) {
             const double dev = norm == 0 ? std::vector<double>{5, 7, 6}[lr] : std::vector<double>{9, 8, 7}[lr];
             return done({{"dev.bleu", dev}, {"test.bleu", 100 - dev}});  // the best on test would be another one
           }));
  EXPECT_EQ(cell_text(table, table.columns[0], table.rows[0].cells[0]), "93.00 @0.2");
  EXPECT_EQ(cell_text(table, table.columns[0], table.rows[1].cells[0]), "91.00 @0.1");
  EXPECT_THAT(notes_of(table), testing::Contains("@: the value of lr with the highest mean dev.bleu."));
  EXPECT_THAT(notes_of(fill(grid, {results(grid, [](uint32_t, uint32_t, int64_t) { return RunResult{}; }).front()})),
              testing::Contains(
                  "@: the value of lr with the highest mean dev.bleu, which may still change: runs are missing."));
}

// Of each lr the dev score, or nullopt where the run has none; the test score is the number of the lr.
Table selected(const std::vector<std::optional<double>>& dev, RunState otherwise = RunState::kDone) {
  const Grid grid = load_text(R"(
[axis]
norm = ["a"]
lr = [1, 2, 3]
[table]
rows = "norm"
scores = ["test.bleu"]
select = { over = ["lr"], by = "dev.bleu" }
)");
  return fill(grid, results(grid, [&](uint32_t, uint32_t lr, int64_t) {
                if (!dev[lr] && otherwise != RunState::kDone) return ended(otherwise);
                std::map<std::string, double> scores = {{"test.bleu", lr + 1}};
                if (dev[lr]) scores["dev.bleu"] = *dev[lr];
                return done(scores);
              }));
}
std::string only_cell(const Table& table) { return cell_text(table, table.columns[0], table.rows[0].cells[0]); }

TEST(Fill, ChoosesNothingWhereNoRunHasTheScoreThatChooses) {
  const Table table = selected({std::nullopt, std::nullopt, std::nullopt});
  EXPECT_EQ(only_cell(table), "not chosen");
  EXPECT_THAT(notes_of(table), testing::Contains("not chosen: no run has dev.bleu."));
  EXPECT_EQ(only_cell(selected({std::nullopt, std::nullopt, std::nullopt}, RunState::kDiverged)), "div. (1/1)");
}

TEST(Fill, SaysThatOthersHaveTheBestMeanToo) {
  const Table table = selected({5, 7, 7});
  EXPECT_EQ(only_cell(table), "2.00 @2 (tied)");
  EXPECT_THAT(notes_of(table),
              testing::Contains("tied: others have the same mean dev.bleu; the first in the grid's order is shown."));
  EXPECT_EQ(only_cell(selected({5, 5, 7})), "3.00 @3") << "a tie of others is none";
  EXPECT_EQ(only_cell(selected({7, 5, 7})), "1.00 @1 (tied)");
}

TEST(Fill, SaysThatSomeOfWhatIsComparedLackTheScore) {
  constexpr const char* kNote = "@ compares what there is: some runs have no dev.bleu.";
  const Table table = selected({5, std::nullopt, 4});
  EXPECT_EQ(only_cell(table), "1.00 @1");
  EXPECT_THAT(notes_of(table), testing::Contains(kNote));
  EXPECT_THAT(notes_of(selected({5, 6, 4})), testing::Not(testing::Contains(kNote)));
}

TEST(Fill, NeedsNoRunAtAll) {
  const Grid grid = load_text("seeds = 2\n[axis]\na = [1, 2]\n");
  const Table table = fill(grid, {});
  ASSERT_EQ(table.columns.size(), 1u);
  EXPECT_EQ(table.columns[0].score, "test.*");
  EXPECT_EQ(cell_text(table, table.columns[0], table.rows[0].cells[0]), "– (0/2)");
}

// Everything that can happen in one table, with characters that each form must escape.
constexpr const char* kGolden = R"(
title = "50 % of A & B_c: <norm> | {x}"
seeds = 3
[axis]
"model.norm.kind" = ["layer_norm", "scale_norm", "none"]
"corpus" = ["gl→en", "日本→en", "a, \"b\""]
[[exclude]]
when = { "model.norm.kind" = "none", corpus = "a, \"b\"" }
why = "needs a norm & time"
[table]
scores = ["test.bleu", "g.decoder.final"]
published = { source = "Paper, Table 3", values = [[18.47, 29.5, ""], [20.91, "fail", 3], ["", "", ""]] }
)";

Table golden_table() {
  const Grid grid = load_text(kGolden);
  return fill(grid, results(grid, [](uint32_t row, uint32_t column, int64_t seed) {
                const double x = 0.25 * static_cast<double>(seed);
                if (row == 2) return ended(column == 0 ? RunState::kDiverged : RunState::kFailed);
                if (column == 2)
                  return row == 0    ? ended(RunState::kWaitingData)
                         : seed == 1 ? ended(RunState::kRunning)
                                     : done({{"test.bleu", 9 + x}});
                if (row == 0) return done({{"test.bleu", 18 + column * 10 + x}});
                RunResult result = done({{"test.bleu", 20 + x}, {"g.decoder.final", 11 + x}});
                result.stale = column == 1 ? kStale : "";
                return result;
              }));
}

TEST(Render, TextGolden) { test::expect_golden("harness/table.txt", render(golden_table(), table_format("text"))); }
TEST(Render, MarkdownGolden) {
  test::expect_golden("harness/table.md", render(golden_table(), table_format("markdown")));
}
TEST(Render, LatexGolden) { test::expect_golden("harness/table.tex", render(golden_table(), table_format("latex"))); }
TEST(Render, HtmlGolden) { test::expect_golden("harness/table.html", render(golden_table(), table_format("html"))); }
TEST(Render, CsvGolden) { test::expect_golden("harness/table.csv", render(golden_table(), table_format("csv"))); }

TEST(Render, JsonGolden) { test::expect_golden("harness/table.json", render(golden_table(), table_format("json"))); }

TEST(Render, JsonHasTheStateOfACellThatOtherFormatsShowAsText) {
  const auto state_of = [](const RunResult& one, const RunResult& other, const std::string& table = "") {
    const Grid grid = load_text("seeds = 2\n[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\n" + table);
    const auto runs = results(grid, [&](uint32_t, uint32_t, int64_t seed) { return seed == 1 ? one : other; });
    const auto json = nlohmann::json::parse(render(fill(grid, runs), TableFormat::kJson));
    return json.at("rows").at(0).at("cells").at(0).at("state").get<std::string>();
  };
  const RunResult failed = ended(RunState::kFailed), diverged = ended(RunState::kDiverged);
  EXPECT_EQ(state_of(bleu(1), failed), "done");
  EXPECT_EQ(state_of(bleu(1), ended(RunState::kQueued)), "missing");
  EXPECT_EQ(state_of(failed, diverged), "diverged");
  EXPECT_EQ(state_of(failed, done({})), "failed");
  EXPECT_EQ(state_of(bleu(1), bleu(2), "fail_below = 3"), "below");
  EXPECT_EQ(state_of(done({}), done({})), "scoreless");
}

TEST(Render, AnEmptyTableInEveryFormGolden) {
  const Grid grid = load_text("title = \"nothing yet\"\nseeds = 2\n[axis]\na = [1, 2]\n");
  std::string text;
  for (const char* format : {"text", "markdown", "latex", "html", "csv"}) {
    text += render(fill(grid, results(grid, [](uint32_t, uint32_t, int64_t) { return RunResult{}; })),
                   table_format(format)) +
            "\n";
  }
  test::expect_golden("harness/table_empty.txt", text);
}

TEST(Render, SeveralTablesAreOneAfterAnotherAndOneIsAsByItself) {
  const Table one = golden_table();
  Table other = one;
  other.title = {"Another"};
  for (const char* name : {"text", "markdown", "latex", "html", "csv", "json"}) {
    const TableFormat format = table_format(name);
    EXPECT_EQ(render(std::vector{one}, format), render(one, format)) << name;
    if (format == TableFormat::kJson) continue;
    EXPECT_EQ(render(std::vector{one, other}, format), render(one, format) + "\n" + render(other, format)) << name;
  }
  using nlohmann::json;
  EXPECT_EQ(
      json::parse(render(std::vector{one, other}, TableFormat::kJson)),
      json::array({json::parse(render(one, TableFormat::kJson)), json::parse(render(other, TableFormat::kJson))}));
}

/// A table of one row and one column with all its words given.
Table table_of(const std::string& title, const std::string& label, const std::string& note, const std::string& run) {
  Table table;
  table.title = {title};
  table.row_axes = {"axis"};
  table.columns = {{.labels = {}, .score = "test.bleu"}};
  Cell cell;
  cell.expected = 1;
  cell.values = {{.seed = 1, .value = -0.5}};
  cell.runs = {run};
  table.rows = {{.labels = {label}, .cells = {{.cell = cell}}}};
  table.notes = {{note}};
  return table;
}

TEST(Render, EscapesControlCharacters) {
  const Table table = table_of("title\n\x1b[31m", "la\nbel\r", "note\u0085\u202E", "0123\n");
  for (const char* format : {"text", "markdown", "latex", "html", "csv"}) {
    const std::string text = render(table, table_format(format));
    const Table plain = table_of("title", "label", "note", "0123");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), [&] {
      const std::string other = render(plain, table_format(format));
      return std::count(other.begin(), other.end(), '\n');
    }()) << text;
    for (const char* bad : {"\x1b", "\r", "\u0085", "\u202E"}) EXPECT_EQ(text.find(bad), std::string::npos) << text;
  }
  EXPECT_THAT(render(table, TableFormat::kText), testing::HasSubstr("title\\n\\x1b[31m\n"));
}

TEST(Render, EscapesLabelsInMarkdown) {
  const std::string text =
      render(table_of("t", "a|b `c` \\| &lt; <i> ~~x~~ $y$ [z](u)", "n", "r"), TableFormat::kMarkdown);
  EXPECT_THAT(text, testing::HasSubstr(R"(| a\|b \`c\` \\\| &amp;lt; &lt;i> \~\~x\~\~ \$y\$ \[z\](u) | −0.50 |)"));
}

TEST(Render, EscapesLabelsInLatex) {
  const std::string text =
      render(table_of("t", R"(\input{x} a&b 5% $y$ #1 _ ^ ~ "q" | `c` --retry)", "n", "r"), TableFormat::kLatex);
  EXPECT_THAT(text, testing::HasSubstr(R"(\textbackslash{}input\{x\} a\&b 5\% \$y\$ \#1 \_ \textasciicircum{} )"
                                       R"(\textasciitilde{} \symbol{34}q\symbol{34} \textbar{} )"
                                       R"(\symbol{96}c\symbol{96} -{}-{}retry)"));
}

TEST(Render, EscapesLabelsAndRunNamesInHtml) {
  const std::string text = render(table_of("t", "<script>'&\"", "n", "\"><script>"), TableFormat::kHtml);
  EXPECT_EQ(text.find("<script>"), std::string::npos) << text;
  EXPECT_THAT(text,
              testing::HasSubstr("<th>&lt;script&gt;&#39;&amp;&quot;</th><td title=\"&quot;&gt;&lt;script&gt;\">"));
}

std::string first_cell(const std::string& label, Formulas formulas) {
  const std::string text = render(table_of("t", label, "n", "r"), TableFormat::kCsv, formulas);
  const std::string row = text.substr(text.find('\n') + 1);
  return row.substr(0, row.find(",test.bleu,"));
}

TEST(Render, LabelsInCsvAreWhatTheyAre) {
  for (const char* label : {"- warm-up", "+ FixNorm", "-FixNorm", "=1+1", "@k", "'x", "−1", "-0.5"}) {
    EXPECT_EQ(first_cell(label, Formulas::kAsTheyAre), label);
  }
  EXPECT_EQ(first_cell("- a, \"b\"", Formulas::kAsTheyAre), "\"- a, \"\"b\"\"\"");
}

TEST(Render, FormulasInCsvBecomeTextOnRequestAndNumbersStay) {
  const auto first_cell = [](const std::string& label) { return table_test::first_cell(label, Formulas::kMadeText); };
  EXPECT_EQ(first_cell("- warm-up"), "'- warm-up");
  EXPECT_EQ(first_cell("=1+1"), "'=1+1");
  EXPECT_EQ(first_cell("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(first_cell("+cmd"), "'+cmd");
  EXPECT_EQ(first_cell("-2+3"), "'-2+3");
  EXPECT_EQ(first_cell("=HYPERLINK(\"x\",\"y\")"), "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
  EXPECT_EQ(first_cell("a;=1"), "\"a;=1\"");
  for (const char* number : {"-0.5", "+3", "-1e-05", "-inf"}) EXPECT_EQ(first_cell(number), number);
  EXPECT_THAT(render(table_of("t", "x", "n", "r"), TableFormat::kCsv, Formulas::kMadeText),
              testing::HasSubstr(",test.bleu,-0.5,"));
}

TEST(Render, NamesTheNearestFormat) {
  try {
    table_format("latx");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "--format latx is not known (did you mean \"latex\"?); it must be one of: text, markdown, latex, "
                 "html, csv, json");
  }
}

TEST(Render, TakesTheFormatFromTheEndingOfAFile) {
  const std::pair<const char*, TableFormat> kCases[] = {
      {"t.txt", TableFormat::kText},  {"t.md", TableFormat::kMarkdown}, {"t.markdown", TableFormat::kMarkdown},
      {"t.tex", TableFormat::kLatex}, {"t.html", TableFormat::kHtml},   {"t.htm", TableFormat::kHtml},
      {"t.csv", TableFormat::kCsv},   {"t.json", TableFormat::kJson},   {"folder.tex/table", TableFormat::kText},
      {"tex", TableFormat::kText},    {"", TableFormat::kText}};
  for (const auto& [file, format] : kCases) EXPECT_EQ(table_format_of(file), format) << file;
}

TEST(Header, ACellSpansTheColumnsThatShareItsLabelUnderOneCellAbove) {
  const Grid grid = load_text(R"(
[axis]
lr = [0.1]
model = ["a", "b"]
norm = ["x", "y"]
[table]
rows = "lr"
columns = ["model", "norm"]
scores = ["test.bleu", "dev.bleu"]
)");
  std::vector<std::string> lines;
  for (const HeaderLine& line : sheet_of(fill(grid, {})).header) {
    lines.emplace_back();
    for (const HeaderCell& cell : line.cells) lines.back() += fmt::format("{}:{} ", cell.text, cell.span);
  }
  EXPECT_THAT(lines, testing::ElementsAre("model:1 a:4 b:4 ", "norm:1 x:2 y:2 x:2 y:2 ",
                                          "lr:1 test.bleu:1 dev.bleu:1 test.bleu:1 dev.bleu:1 test.bleu:1 dev.bleu:1 "
                                          "test.bleu:1 dev.bleu:1 "));
}

TEST(CellFields, AreInEveryFormWithTheValuesBySeedBehindThem) {
  const Grid grid = load_text("seeds = [5, 3]\n[axis]\na = [1]\n[table]\nscores = \"test.bleu\"\n");
  const Table table = fill(grid, results(grid, [](uint32_t, uint32_t, int64_t seed) { return around_28(seed); }));
  const TableCell& cell = table.rows[0].cells[0];
  const std::vector<SeedValue>& values = cell.cell.values;
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].seed, 5);
  EXPECT_EQ(values[0].value, 28.5);
  EXPECT_EQ(values[1].seed, 3);
  const auto json = nlohmann::json::parse(render(table, TableFormat::kJson)).at("rows").at(0).at("cells").at(0);
  const std::string csv = render(table, TableFormat::kCsv), header = "," + csv.substr(0, csv.find('\n')) + ",";
  for (const CellField& field : cell_fields(table)) {
    EXPECT_EQ(json.at(field.name), field.value(cell)) << field.name;
    EXPECT_EQ(header.find(fmt::format(",{},", field.name)) != std::string::npos, field.in_csv) << field.name;
  }
  EXPECT_EQ(json.size(), cell_fields(table).size());
}

std::vector<std::string> resume_notes(const std::vector<RunResult>& runs, ResumeNote note,
                                      const std::string& table = "") {
  const Grid grid = load_text("seeds = " + std::to_string(runs.size()) + "\n[axis]\na = [1]\n" + table);
  const Table filled = fill(
      grid, results(grid, [&](uint32_t, uint32_t, int64_t seed) { return runs.at(static_cast<size_t>(seed - 1)); }),
      " --workspace w", note);
  std::vector<std::string> notes;
  for (const std::string& line : notes_of(filled)) {
    if (line.find("Resume") == 0 || line.find("NOT") == 0) notes.push_back(line);
  }
  return notes;
}

RunResult checked(const std::string& id, size_t stops, bool equal) {
  RunResult result = bleu(20);
  result.id = id;
  result.resume = ResumeCheck{};
  result.resume->stops.resize(stops);
  result.resume->outcome = equal ? "equal" : "different";
  return result;
}

TEST(Notes, SayOnRequestHowManyRunsWereVerifiedAndAlwaysWhichDiffer) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  const auto asked = [](const std::vector<RunResult>& runs) { return resume_notes(runs, ResumeNote::kAlways); };
  const auto unasked = [](const std::vector<RunResult>& runs) { return resume_notes(runs, ResumeNote::kIfDifferent); };
  EXPECT_THAT(asked({bleu(20), bleu(21)}), ElementsAre("Resume verified: 0 of 2 runs."));
  EXPECT_THAT(asked({checked("a", 3, true), checked("b", 3, true), bleu(21)}),
              ElementsAre("Resume verified: 2 of 3 runs (byte-equal after 3 stops each)."));
  EXPECT_THAT(asked({checked("a", 1, true), checked("b", 3, true)}),
              ElementsAre("Resume verified: 2 of 2 runs (byte-equal after 1 to 3 stops each)."));
  EXPECT_THAT(unasked({checked("a", 3, true), checked("b", 3, true), bleu(21)}), IsEmpty());
  EXPECT_THAT(unasked({checked("a", 3, false), checked("b", 3, true)}),
              ElementsAre("NOT the same result after stops: run a. To see how: tearless explain a --workspace w"));
  EXPECT_THAT(resume_notes({checked("a", 3, false)}, ResumeNote::kAlways, "[table]\nnotes = [\"cells\"]\n"),
              ElementsAre(testing::HasSubstr("NOT the same result after stops: run a")))
      << "which is not chosen away";
  EXPECT_THAT(asked({checked("b", 3, false), checked("a", 3, false)}),
              ElementsAre("Resume verified: 0 of 2 runs.",
                          "NOT the same result after stops: runs a, b. To see how: tearless explain a --workspace w"));
}

TEST(Notes, SayWhyResultsAreStaleAndWhoMadeThem) {
  const Grid grid = load_text("seeds = 3\n[axis]\na = [1, 2]\n[table]\nscores = \"test.bleu\"\n");
  const Table table = fill(grid, results(grid, [](uint32_t row, uint32_t, int64_t seed) {
                             RunResult result = around_28(seed);
                             if (row == 0 && seed == 1) result.stale = "of old numerics";
                             if (row == 1 && seed < 3) result.stale = "of an old file";
                             result.trained_by = {row == 0 || seed == 1 ? "version 1" : "version 2"};
                             return result;
                           }));
  EXPECT_THAT(notes_of(table), testing::Contains("*: stale: of an old file; of old numerics."));
  EXPECT_THAT(notes_of(table), testing::Contains("Trained by: version 1; version 2."));
  EXPECT_EQ(cell_text(table, table.columns[0], table.rows[0].cells[0]), "28.20 ± 0.10*") << "one program";
  EXPECT_EQ(cell_text(table, table.columns[0], table.rows[1].cells[0]), "28.20 ± 0.10*°") << "two programs";
}

}  // namespace
}  // namespace tearless::harness::table_test
