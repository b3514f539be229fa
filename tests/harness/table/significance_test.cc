// Marks and bold numbers of [table.test], the statistics of differences that `show` composes, and the notes on power
// and failures.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "harness/table/table.h"
#include "tests/harness/notes_of.h"
#include "tests/harness/table/example_table.h"
#include "tests/support/error_of.h"

namespace tearless::harness::significance_test {
namespace {

using example::done;
using example::ended;
using example::load_text;
using example::rows_of;
using example::table_of;
using example::texts_of;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Norms in rows: each has a value of "s" for each seed.
std::string grid_of(int seeds, const std::string& norms, const std::string& table) {
  return fmt::format(
      "seeds = {}\n[axis]\nnorm = [{}]\n[table]\nrows = \"norm\"\nscores = \"s\"\nshow = \"{{mean:.1f}}\"\n{}", seeds,
      norms, table);
}

using Values = std::map<std::string, std::vector<double>>;  // by norm, of each seed; NaN: it diverged
Table filled(const std::string& grid, const Values& values) {
  return table_of(grid, [&](auto labels, int64_t seed) {
    const double value = values.at(labels["norm"])[static_cast<size_t>(seed - 1)];
    return std::isnan(value) ? ended(RunState::kDiverged) : done({{"s", value}});
  });
}
std::vector<std::string> column_of(const Table& table, size_t column = 0) {
  std::vector<std::string> texts;
  for (const auto& line : texts_of(table)) texts.push_back(line.at(1 + column));
  return texts;
}
std::vector<bool> bold_of(const Table& table, size_t column = 0) {
  std::vector<bool> bold;
  for (const Table::Row& row : table.rows) bold.push_back(row.cells.at(column).is_bold);
  return bold;
}
std::string note_with(const Table& table, const std::string& part) {
  for (const std::string& note : notes_of(table)) {
    if (note.find(part) != std::string::npos) return note;
  }
  return "";
}

/// Rows a to f, of two seeds, with these values of "s" and ten times as many "seconds".
Table of_six(const std::string& keys, const std::map<std::string, double>& values) {
  return table_of(
      "seeds = 2\n[axis]\nnorm = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]\n[table]\nrows = \"norm\"\n"
      "scores = [\"s\", \"seconds\"]\nbest = { seconds = \"lowest\" }\ndecimals = 1\n" +
          keys,
      [&](auto labels, int64_t seed) {
        const double value = values.at(labels["norm"]) + (seed == 1 ? -1 : 1);
        return done({{"s", value}, {"seconds", 10 * value}});
      });
}
const std::map<std::string, double> kSix = {{"a", 4}, {"b", 6}, {"c", 3}, {"d", 5}, {"e", 8}, {"f", 2}};

// --- over seeds
// --------------------------------------------------------------------------------------------------------

// All six differences have one sign: p = 2 / 2^6 = 0.03125.
const Values kSixSeeds = {{"a", {1, 2, 3, 4, 5, 6}}, {"b", {2, 3, 4, 5, 6, 7.5}}, {"c", {1, 2, 3, 4, 5, 6.5}}};

TEST(Marks, AreOfThePCorrectedForTheFamily) {
  const std::string two = "baseline = \"a\"\n[table.test]\nmethod = \"sign-flip\"\nlevel = [0.05, 0.04]\n";
  const Table alone = filled(grid_of(6, "\"a\", \"b\"", two), kSixSeeds);
  EXPECT_THAT(column_of(alone), ElementsAre("3.5", "4.6‡"));
  EXPECT_DOUBLE_EQ(*alone.rows[1].cells[0].comparison.p, 0.03125);
  EXPECT_DOUBLE_EQ(*alone.rows[1].cells[0].comparison.corrected_p, 0.03125);
  EXPECT_FALSE(alone.rows[0].cells[0].comparison.p) << "the baseline";
  EXPECT_THAT(note_with(alone, "‡"),
              AllOf(HasSubstr("‡ p ≤ 0.04: different from the baseline"), HasSubstr("sign-flip test over seeds"),
                    HasSubstr("corrected for 1 comparison (Holm)")));
  // c differs from a in one seed alone: p = 1. Of two comparisons the smallest p is doubled: 0.0625.
  const Table both = filled(grid_of(6, "\"a\", \"b\", \"c\"", two), kSixSeeds);
  EXPECT_THAT(column_of(both), ElementsAre("3.5", "4.6", "3.6"));
  EXPECT_DOUBLE_EQ(*both.rows[1].cells[0].comparison.corrected_p, 0.0625);
  EXPECT_THAT(note_with(both, "No cell"),
              "No cell is different from the baseline with p ≤ 0.05, sign-flip test over seeds, corrected for 2 "
              "comparisons (Holm).");
  EXPECT_EQ(note_with(both, "†") + note_with(both, "‡"), "") << "there are none";
  const Table uncorrected = filled(grid_of(6, "\"a\", \"b\", \"c\"", two + "correction = \"none\"\n"), kSixSeeds);
  EXPECT_THAT(column_of(uncorrected), ElementsAre("3.5", "4.6‡", "3.6"));
  EXPECT_THAT(note_with(uncorrected, "‡ p"), HasSubstr("not corrected for 2 comparisons"));
  const Table one_level =
      filled(grid_of(6, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\nmethod = \"sign-flip\"\n"), kSixSeeds);
  EXPECT_THAT(column_of(one_level), ElementsAre("3.5", "4.6†"));
}

TEST(Marks, OfFewSeedsSayThatTheseCannotDecide) {
  const Values values = {{"a", {1, 2, 3}}, {"b", {11, 12, 13}}};
  const Table table =
      filled(grid_of(3, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\nmethod = \"sign-flip\"\n"), values);
  EXPECT_THAT(column_of(table), ElementsAre("2.0", "12.0"));
  EXPECT_THAT(note_with(table, "cannot decide"), HasSubstr("3 seeds cannot decide (the least p is 0.25)"));
  EXPECT_THAT(note_with(table, "No cell"), HasSubstr("sign-flip test over seeds, corrected")) << "nothing is drawn";
}

// Welch's t of 1, 2, 3, 4, 5, 6 and 4, 5, 6, 7, 8, 10: means 3.5 and 6.6667, variances 3.5 and 4.6667, t = 2.714,
// ν = 9.80, p = 0.0222 (scipy 1.15: ttest_ind(…, equal_var=False)). Paired, all differences are 3 or 4: p is tiny.
TEST(Marks, OfTheTTestPairBySeedUnlessToldNotTo) {
  const Values values = {{"a", {1, 2, 3, 4, 5, 6}}, {"b", {4, 5, 6, 7, 8, 10}}};
  const auto p_of = [&](const std::string& paired) {
    const std::string test = "baseline = \"a\"\n[table.test]\nmethod = \"t\"\nlevel = [0.05, 0.001]\n" + paired;
    return filled(grid_of(6, "\"a\", \"b\"", test), values);
  };
  EXPECT_THAT(column_of(p_of("")), ElementsAre("3.5", "6.7‡"));
  EXPECT_THAT(column_of(p_of("paired = false\n")), ElementsAre("3.5", "6.7†"));
  EXPECT_NEAR(*p_of("paired = false\n").rows[1].cells[0].comparison.p, 0.0222, 0.0002);
  EXPECT_THAT(notes_of(p_of("paired = false\n")), Contains(HasSubstr("Welch's t test over seeds")));
}

TEST(Marks, AreOverSeedsWithoutAMethodWhereTheGridHasSeveral) {
  const Values values = {{"a", {1, 2, 3, 4, 5, 6}}, {"b", {4, 5, 6, 7, 8, 10}}};
  EXPECT_THAT(notes_of(filled(grid_of(6, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\n"), values)),
              Contains(HasSubstr("paired t test over seeds")));
  // One seed has no spread; and samples and a seed are of tests that draw.
  EXPECT_THAT(
      notes_of(filled(grid_of(1, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\n"), values)),
      Contains("Comparisons that are not decided (approximate randomisation over sentences (10000 samples, seed "
               "1)): no statistics of sentences (1)."));
  EXPECT_THAT(notes_of(filled(grid_of(6, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\nsamples = 200\n"), values)),
              Contains(HasSubstr("(approximate randomisation over sentences (200 samples, seed 1))")));
}

TEST(Marks, OfSeedsThatDifferByTheSameAmountAreNotDecided) {
  const std::string test = "baseline = \"a\"\n[table.test]\n";
  const Table table =
      filled(grid_of(2, "\"a\", \"b\", \"c\"", test), {{"a", {20.0, 30.0}}, {"b", {20.1, 30.1}}, {"c", {20.0, 30.2}}});
  EXPECT_FALSE(table.rows[1].cells[0].comparison.p);
  EXPECT_TRUE(table.rows[2].cells[0].comparison.p);
  EXPECT_THAT(note_with(table, "not decided"), HasSubstr("the seeds differ by the same amount (1)"));
  EXPECT_FALSE(table.rows[0].cells[0].is_bold || table.rows[1].cells[0].is_bold) << "the best cannot be told from a";
  const auto shown = [&](const std::string& score) {
    std::string grid = grid_of(2, "\"a\", \"b\"", "baseline = \"a\"\n");
    for (const auto& [from, to] : {std::pair<std::string, std::string>("scores = \"s\"", "scores = \"" + score + "\""),
                                   {"show = \"{mean:.1f}\"", "show = \"{delta:.1f} ± {delta_ci95:.1f}\""}})
      grid.replace(grid.find(from), from.size(), to);
    const Grid own = load_text(grid);
    return column_of(
               harness::fill(
                   own, {"t"}, views_of(own)[0].table(),
                   rows_of(own,
                           [&](auto labels, int64_t seed) {
                             return done({{score, 10.0 * static_cast<double>(seed) + (labels["norm"] == "b" ? 1 : 0)}});
                           })))
        .at(1);
  };
  EXPECT_EQ(shown("s"), "+1.0");
  EXPECT_EQ(shown("parameters"), "+1.0 ± 0.0") << "known before a run is trained";
}

// LN 28.1 ± 1.9, SN 25.1 ± 1.4: p = 0.016 by itself, 0.064 as one of four comparisons.
TEST(Marks, AndBoldNumbersOfOnePairHaveOneP) {
  const Values values = {
      {"ln", {26.2, 28.1, 30.0}}, {"sn", {23.6, 25.1, 26.6}}, {"x", {26, 29, 29.2}}, {"y", {27, 26, 31}}};
  const std::string names = "\"ln\", \"sn\", \"x\", \"y\"";
  const auto sn = [&](const std::string& lines) {
    return filled(grid_of(3, names, lines + "[table.test]\nmethod = \"t\"\n"), values);
  };
  const Table with = sn("baseline = \"ln\"\n");
  const TableCell& marked = with.rows[1].cells[0];
  EXPECT_LE(*marked.comparison.p, 0.05);
  EXPECT_EQ(marked.is_bold, *marked.comparison.corrected_p > 0.05);
  EXPECT_EQ(marked.comparison.level > 0, !marked.is_bold);
  EXPECT_THAT(note_with(with, "Bold"), HasSubstr("where the best is the baseline, with the p of the marks"));
  // The best is another row: its column is a family of its own.
  EXPECT_THAT(note_with(sn("baseline = \"sn\"\n"), "Bold"), Not(HasSubstr("with the p of the marks")));
}

// Differences from a within seeds: 90 % intervals of b −0.0019 to 0.3019, of c 0.2662 to 0.3838, of d −1.03 to 1.23;
// Welch's of b −0.5673 to 0.8673 (scipy 1.17: t.interval(0.9), ttest_ind(…, equal_var=False)).
const Values kNear = {{"a", {27.0, 27.4, 27.9, 28.1}},
                      {"b", {27.1, 27.6, 27.9, 28.4}},
                      {"c", {27.3, 27.7, 28.2, 28.5}},
                      {"d", {26.0, 28.4, 27.5, 28.9}}};

Table near(const std::string& test, const Values& values = kNear, const std::string& keys = "") {
  return filled(grid_of(4, "\"a\", \"b\", \"c\", \"d\"", keys + "baseline = \"a\"\n[table.test]\n" + test), values);
}

TEST(Equivalence, IsMarkedWhereThe90PercentIntervalIsWithinTheLimit) {
  EXPECT_THAT(column_of(near("")), ElementsAre("27.6", "27.8", "27.9†", "27.7"));
  EXPECT_THAT(column_of(near("within = \"0.301 s\"\n")), ElementsAre("27.6", "27.8", "27.9†", "27.7"));
  EXPECT_THAT(column_of(near("within = \"0.302 s\"\n")), ElementsAre("27.6", "27.8≈", "27.9†", "27.7"));
  EXPECT_THAT(column_of(near("within = \"0.384 s\"\n")), ElementsAre("27.6", "27.8≈", "27.9†≈", "27.7"))
      << "different, and by no more than the limit";
  EXPECT_THAT(column_of(near("paired = false\nwithin = \"0.867 s\"\n")), ElementsAre("27.6", "27.8", "27.9", "27.7"));
  EXPECT_THAT(column_of(near("paired = false\nwithin = \"0.868 s\"\n")), ElementsAre("27.6", "27.8≈", "27.9", "27.7"));
}

TEST(Equivalence, HasALimitInTheUnitOfTheTableOrInPercentOfTheBaseline) {
  EXPECT_THAT(column_of(near("within = \"1.1 %\"\n")).at(1), "27.8≈") << "of 27.6: 0.3036";
  EXPECT_THAT(column_of(near("within = \"1.09 %\"\n")).at(1), "27.8") << "of 27.6: 0.3008";
  EXPECT_THAT(column_of(near("within = \"3.02 s\"\n", kNear, "factor = 10\n")).at(1), "277.5≈");
  EXPECT_THAT(column_of(near("within = \"3.01 s\"\n", kNear, "factor = 10\n")).at(1), "277.5");
  const auto six = [](const std::string& within) {
    return of_six("baseline = \"a\"\nshow = \"{mean}\"\n[table.test]\nwithin = " + within + "\n",
                  {{"a", 4}, {"b", 4}, {"c", 3}, {"d", 5}, {"e", 8}, {"f", 2}});
  };
  const Table both = six("{ s = \"0.5 s\", \"sec*\" = \"5 seconds\" }"), one = six("{ seconds = \"5 seconds\" }");
  EXPECT_THAT(std::vector({column_of(both).at(1), column_of(both, 1).at(1)}), ElementsAre("4.0≈", "40.0≈"));
  EXPECT_THAT(std::vector({column_of(one).at(1), column_of(one, 1).at(1)}), ElementsAre("4.0", "40.0≈"));
  EXPECT_THAT(note_with(both, "≈"),
              HasSubstr("≈: equivalent to the baseline within 0.5 s (s), 5 seconds (seconds): two"));
  EXPECT_THAT(note_with(one, "≈"), HasSubstr("≈: equivalent to the baseline within 5 seconds (seconds): two"));
}

TEST(Equivalence, IsNotOfCellsThatAreNotCompared) {
  Values values = kNear;
  values["b"] = {28.0, 28.4, 28.9, 29.1};  // each seed is better by 1
  values["c"][3] = NAN;                    // another share failed
  const Table table = near("within = \"5 s\"\n[[table.row]]\nlabel = \"gain\"\ndifference = [\"d\", \"a\"]\n", values);
  EXPECT_THAT(column_of(table), ElementsAre("27.6", "28.6", "27.7, 1/4 div.", "27.7≈", "+0.1"));
}

TEST(Equivalence, IsSaidByANoteAndEveryFormat) {
  const Table table = near("within = \"0.384 s\"\nbold = false\n");
  EXPECT_EQ(note_with(table, "≈"),
            "≈: equivalent to the baseline within 0.384 s: two one-sided tests at 5 %, by the 90 % interval, paired t "
            "test over seeds, not corrected.");
  EXPECT_EQ(note_with(near("within = \"1 %\"\npaired = false\n"), "equivalent"),
            "No cell is equivalent to the baseline within 1 % of its mean: two one-sided tests at 5 %, by the 90 % "
            "interval, Welch's t test over seeds, not corrected.");
  EXPECT_EQ(note_with(near(""), "equivalent"), "");
  EXPECT_THAT(render(table, TableFormat::kText), AllOf(HasSubstr("b      27.8≈\n"), HasSubstr("c      27.9†≈\n")));
  EXPECT_THAT(render(table, TableFormat::kMarkdown), HasSubstr("| c | 27.9†≈ |"));
  EXPECT_THAT(render(table, TableFormat::kHtml), HasSubstr(">27.9†≈</td>"));
  EXPECT_THAT(render(table, TableFormat::kLatex),
              AllOf(HasSubstr("c & 27.9$^{\\dagger}$$\\approx$ \\\\"), HasSubstr("$\\approx$: equivalent")));
  const auto rows = nlohmann::json::parse(render(table, TableFormat::kJson)).at("rows");
  EXPECT_EQ(rows.at(1).at("cells").at(0).at("equivalent"), true);
  EXPECT_EQ(rows.at(3).at("cells").at(0).at("equivalent"), false);
  EXPECT_THAT(render(table, TableFormat::kCsv),
              AllOf(HasSubstr(",equivalent\na,"), testing::ContainsRegex("\nb,.*,true\nc,.*,true\nd,.*,false\n")));
  EXPECT_THAT(render(near(""), TableFormat::kCsv), Not(HasSubstr("equivalent")));
}

TEST(Bold, IsTheBestMeanOfEachColumnWhereTheTableAsksForIt) {
  const Values values = {{"a", {1, 2}}, {"b", {2, 2.5}}, {"c", {2.5, 2}}};
  const std::string names = "\"a\", \"b\", \"c\"";
  const auto table = [&](const std::string& lines) { return filled(grid_of(2, names, lines), values); };
  EXPECT_THAT(bold_of(table("")), ElementsAre(false, false, false));
  EXPECT_THAT(bold_of(table("bold = \"best\"\n")), ElementsAre(false, true, true)) << "two of one mean";
  EXPECT_THAT(bold_of(table("bold = \"best\"\nbest = \"lowest\"\n")), ElementsAre(true, false, false));
  EXPECT_THAT(notes_of(table("bold = \"best\"\n")), Contains("Bold: the best mean of the column."));
  EXPECT_THAT(bold_of(table("bold = \"best\"\nbaseline = \"a\"\n[table.test]\n")), ElementsAre(false, true, true));
  EXPECT_THAT(bold_of(table("bold = false\nbaseline = \"a\"\n[table.test]\n")), ElementsAre(false, false, false));
  const auto refused = [&](const std::string& lines) { return test::error_of([&] { table(lines); }); };
  EXPECT_THAT(refused("bold = \"worst\"\n"), HasSubstr("grid.toml:8: bold must be \"best\", \"not_worse\" or false"));
  EXPECT_THAT(refused("bold = true\n"), HasSubstr("grid.toml:8: bold must be"));
  EXPECT_THAT(refused("bold = \"not_worse\"\n"), HasSubstr("grid.toml:8: bold = \"not_worse\" is by a test"));
  EXPECT_THAT(refused("bold = \"best\"\n[table.test]\n"), HasSubstr("[table.test] compares rows with baseline"));
}

TEST(Marks, AreLeftOutWhereOtherSharesOfRunsFailed) {
  const Values values = {{"a", {1, 2, 3, 4, 5, 6, 7}}, {"b", {2, 3, 4, 5, 6, 7.5, NAN}}};
  const Table table =
      filled(grid_of(7, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\nmethod = \"sign-flip\"\n"), values);
  EXPECT_THAT(column_of(table), ElementsAre("4.0", "4.6, 1/7 div."));
  EXPECT_THAT(note_with(table, "other shares"), HasSubstr("other shares of runs failed (1)"));
  EXPECT_THAT(bold_of(table), ElementsAre(false, false)) << "that b is not bold would read as a difference";
  // Wilson's interval of 1 of 7: centre (1/7 + 1.9208/7) / (1 + 3.8415/7), half-width by the formula.
  const double z2 = 3.8414588, p = 1.0 / 7;
  const double centre = (p + z2 / 14) / (1 + z2 / 7),
               half = std::sqrt(z2 * (p * (1 - p) / 7 + z2 / 196)) / (1 + z2 / 7);
  EXPECT_THAT(note_with(table, "Wilson"),
              HasSubstr(fmt::format("1/7 is {:.0f} to {:.0f} %", 100 * (centre - half), 100 * (centre + half))));
}

// --- over sentences
// ------------------------------------------------------------------------------------------------------

/// Accuracy of 100 sentences, the first `correct` of them right.
std::shared_ptr<const SentenceStats> first_right(int64_t correct, int64_t sentences = 100) {
  SentenceStats stats{.columns = accuracy_columns()};
  for (int64_t i = 0; i < sentences; ++i) stats.rows.push_back({i < correct ? 1 : 0, 1});
  return std::make_shared<const SentenceStats>(stats);
}

/// Norms in rows and data sets in columns, two seeds: correct answers of 100.
Table of_sentences(const std::string& test, const std::map<std::string, std::map<std::string, int64_t>>& correct,
                   const std::string& more = "", bool has_sentences = true) {
  const Grid grid = load_text(fmt::format(
      "seeds = 2\n[axis]\nnorm = [\"a\", \"b\", \"c\"]\nset = [\"x\", \"y\"]\n[table]\nrows = \"norm\"\ncolumns = "
      "\"set\"\n"
      "scores = \"test.accuracy\"\nbaseline = \"a\"\n{}\n[table.test]\n{}{}",
      more.empty() ? "show = \"{mean:.0f}\"" : more, test, "\n[[table.column]]\nlabel = \"all\"\nmean = true\n"));
  std::vector<Row> rows = rows_of(grid, [&](auto labels, int64_t) {
    return done({{"test.accuracy", static_cast<double>(correct.at(labels["norm"]).at(labels["set"]))}});
  });
  for (Row& row : rows) {
    const std::string norm = row.run.coordinates[0].second, set = row.run.coordinates[1].second;
    if (has_sentences) row.sentences["test.accuracy"] = first_right(correct.at(norm).at(set));
  }
  return fill(grid, {"t"}, views_of(grid)[0].table(), rows);
}

// b is right on 30 sentences more than a on both sets, c on one of two: 30 swapped the same way by chance has the
// probability 2^-59 with two seeds, so no sample does, and p = 1 / (R + 1).
TEST(SentenceMarks, AreOfThePOverSentencesAndOfAMeanTheLargest) {
  const std::map<std::string, std::map<std::string, int64_t>> correct = {
      {"a", {{"x", 40}, {"y", 40}}}, {"b", {{"x", 70}, {"y", 70}}}, {"c", {{"x", 70}, {"y", 40}}}};
  const Table table = of_sentences("samples = 1000\nlevel = [0.05, 0.01]", correct);
  EXPECT_THAT(column_of(table, 0), ElementsAre("40", "70‡", "70‡"));
  EXPECT_THAT(column_of(table, 1), ElementsAre("40", "70‡", "40"));
  EXPECT_THAT(column_of(table, 2), ElementsAre("40", "70‡", "55"));
  EXPECT_DOUBLE_EQ(*table.rows[1].cells[0].comparison.p, 1.0 / 1001);
  EXPECT_DOUBLE_EQ(*table.rows[1].cells[2].comparison.p, 1.0 / 1001) << "the largest of its columns";
  EXPECT_DOUBLE_EQ(*table.rows[2].cells[1].comparison.p, 1) << "equal";
  EXPECT_DOUBLE_EQ(*table.rows[2].cells[2].comparison.p, 1);
  EXPECT_DOUBLE_EQ(*table.rows[1].cells[0].comparison.corrected_p, 6.0 / 1001) << "the least of a family of six";
  EXPECT_THAT(
      note_with(table, "‡ p"),
      HasSubstr("approximate randomisation over sentences (1000 samples, seed 1), corrected for 6 comparisons"));
  const Table few = of_sentences("samples = 100", correct);
  EXPECT_THAT(column_of(few, 0), ElementsAre("40", "70", "70")) << "6 / 101 is above 0.05";
  EXPECT_THAT(note_with(few, "not decided"), HasSubstr("corrected for 6 comparisons, the least p is 0.0594 (6)"));
  EXPECT_THAT(column_of(of_sentences("method = \"bootstrap\"\nsamples = 1000", correct), 0),
              ElementsAre("40", "70†", "70†"));
  EXPECT_THAT(notes_of(of_sentences("method = \"bootstrap\"\ncompat = \"sacrebleu\"", correct)),
              Contains(AllOf(HasSubstr("as sacreBLEU does it"), HasSubstr("1000 samples"), HasSubstr("too often"))));
}

TEST(SentenceMarks, OfAMeanSayNothingWhereItsColumnsDisagree) {
  const std::map<std::string, std::map<std::string, int64_t>> correct = {
      {"a", {{"x", 40}, {"y", 70}}}, {"b", {{"x", 70}, {"y", 40}}}, {"c", {{"x", 70}, {"y", 99}}}};
  const Table table = of_sentences("samples = 1000", correct);
  EXPECT_DOUBLE_EQ(*table.rows[1].cells[2].comparison.p, 1) << "better on x, worse on y";
  EXPECT_DOUBLE_EQ(*table.rows[2].cells[2].comparison.p, 1.0 / 1001) << "better on both";
}

TEST(SentenceMarks, DependOnTheSeedOfTheTestAlone) {
  const std::map<std::string, std::map<std::string, int64_t>> correct = {
      {"a", {{"x", 40}, {"y", 40}}}, {"b", {{"x", 44}, {"y", 70}}}, {"c", {{"x", 41}, {"y", 40}}}};
  const auto p_of = [&](const char* seed) { return *of_sentences(seed, correct).rows[1].cells[0].comparison.p; };
  EXPECT_EQ(p_of("seed = 3"), p_of("seed = 3"));
  EXPECT_NE(p_of("seed = 3"), p_of("seed = 4"));
  // Of 8 signs (4 sentences, 2 seeds) all alike: 2 / 2^8.
  EXPECT_NEAR(p_of("seed = 3"), 2.0 / 256, 0.003);
}

TEST(SentenceMarks, NeedStatisticsOfSentences) {
  const Table table =
      of_sentences("method = \"randomisation\"",
                   {{"a", {{"x", 40}, {"y", 40}}}, {"b", {{"x", 70}, {"y", 70}}}, {"c", {{"x", 7}, {"y", 4}}}}, "",
                   /*has_sentences=*/false);
  EXPECT_THAT(column_of(table, 0), ElementsAre("40", "70", "7"));
  EXPECT_EQ(note_with(table, "† p") + note_with(table, "No cell"), "") << "nothing is compared";
  EXPECT_THAT(note_with(table, "no statistics"), HasSubstr("no statistics of sentences (4)"));
}

// a and b have 40 and 70 right of the same 100 sentences, both seeds alike. The difference of a sentence is 1 with the
// share 0.3: its variance over test sets is 0.3 · 0.7 / 100, in percent points √(0.0021) · 100 = 4.58.
TEST(SentenceMarks, ShowBothSourcesOfSpread) {
  const Table table =
      of_sentences("method = \"randomisation\"",
                   {{"a", {{"x", 40}, {"y", 40}}}, {"b", {{"x", 70}, {"y", 70}}}, {"c", {{"x", 40}, {"y", 40}}}},
                   "show = \"{delta:.0f} {se:.1f} {se_seeds:.1f} {se_sentences:.1f}\"");
  EXPECT_THAT(column_of(table, 0),
              ElementsAre(testing::_, testing::MatchesRegex(R"(\+30 4\.[4-8] 0\.0 4\.[4-8]†)"), "+0 0.0 0.0 0.0"));
}

// A score of which the lowest is best: b is lower in all pairs.
TEST(Better, IsByTheDirectionOfTheScoreWithItsInterval) {
  const Values values = {{"a", {4, 5, 6, 7}}, {"b", {0, 1, 2, 3}}};
  const auto shown = [&](const char* best) {
    std::string grid = grid_of(4, "\"a\", \"b\"", fmt::format("baseline = \"a\"\nbest = \"{}\"\n", best));
    const std::string mean = "show = \"{mean:.1f}\"";
    grid.replace(grid.find(mean), mean.size(), "show = \"{better:.2f} {better_low:.2f} {better_high:.2f}\"");
    return column_of(filled(grid, values)).at(1);
  };
  // Of four runs each the exact interval of P = 1 ends at 1; that of P = 0 begins at 0.
  EXPECT_THAT(shown("lowest"), testing::MatchesRegex("1\\.00 0\\.[5-9][0-9] 1\\.00"));
  EXPECT_THAT(shown("highest"), testing::MatchesRegex("0\\.00 0\\.00 0\\.[0-4][0-9]"));
}

TEST(SentenceMarks, ShowSpreadInTheUnitsOfTheTable) {
  const std::map<std::string, std::map<std::string, int64_t>> correct = {
      {"a", {{"x", 40}, {"y", 40}}}, {"b", {{"x", 70}, {"y", 70}}}, {"c", {{"x", 40}, {"y", 40}}}};
  const Table table = of_sentences("seed = 1", correct, "factor = 10\nshow = \"{delta:.0f} {se_sentences:.0f}\"");
  EXPECT_THAT(column_of(table, 0).at(1), testing::MatchesRegex("\\+300 4[4-8]†"));
  EXPECT_NE(of_sentences("seed = 5", correct, "show = \"{se}\"").rows[1].cells[0].comparison.sources->sentences,
            of_sentences("seed = 6", correct, "show = \"{se}\"").rows[1].cells[0].comparison.sources->sentences)
      << "the seed of the test";
}

TEST(Marks, LeaveOutCellsWithTheRunsOfTheBaseline) {
  const Grid grid =
      load_text(grid_of(6, "\"a\", \"b\", \"c\"", "baseline = \"a\"\n[table.test]\nmethod = \"sign-flip\"\n"));
  std::vector<Row> rows = rows_of(grid, [](auto labels, int64_t seed) {
    return done({{"s", 1.0 * static_cast<double>(seed) + (labels["norm"] == "b" ? 1.0 : 0.0)}});
  });
  for (Row& row : rows) {
    if (row.run.coordinates[0].second == "c")
      row.run.id = row.result.id = rows[static_cast<size_t>(row.run.seed - 1)].run.id;
  }
  const Table table = fill(grid, {"t"}, views_of(grid)[0].table(), rows);
  EXPECT_THAT(column_of(table), ElementsAre("3.5", "4.5†", "3.5 ≡"));
  EXPECT_THAT(note_with(table, "† p"), HasSubstr("corrected for 1 comparison"));
}

// --- bold ------------------------------------------------------------------------------------------------------------

TEST(Bold, IsTheBestAndWhatCannotBeToldFromIt) {
  const Values values = {
      {"a", {10, 11, 12, 13, 14, 15}}, {"b", {11, 12, 13, 14, 15, 16.5}}, {"c", {11, 12, 13, 14, 15, 16}}};
  const std::string test = "[table.test]\nmethod = \"sign-flip\"\ncorrection = \"none\"\n";
  EXPECT_THAT(bold_of(filled(grid_of(6, "\"a\", \"b\", \"c\"", test), values)), ElementsAre(false, true, true));
  EXPECT_THAT(bold_of(filled(grid_of(6, "\"a\", \"b\", \"c\"", "best = \"lowest\"\n" + test), values)),
              ElementsAre(true, false, false));
  EXPECT_THAT(bold_of(filled(grid_of(6, "\"a\", \"b\"", "baseline = \"a\"\n" + test + "bold = false\n"), values)),
              ElementsAre(false, false));
  // Of two comparisons in the column the least p, 0.03125, is doubled: nothing can be told from the best.
  EXPECT_THAT(bold_of(filled(grid_of(6, "\"a\", \"b\", \"c\"", "[table.test]\nmethod = \"sign-flip\"\n"), values)),
              ElementsAre(true, true, true));
  const Table table = filled(grid_of(6, "\"a\", \"b\", \"c\"", test), values);
  EXPECT_THAT(notes_of(table),
              Contains(AllOf(HasSubstr("Bold: the best of the column"), HasSubstr("sign-flip test over seeds"))));
}

TEST(Bold, StandsInEveryFormatThatHasIt) {
  const Values values = {{"a", {10, 11, 12, 13, 14, 15}}, {"b", {11, 12, 13, 14, 15, 16.5}}};
  const Table table =
      filled(grid_of(6, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\nmethod = \"sign-flip\"\n"), values);
  EXPECT_THAT(render(table, TableFormat::kMarkdown), AllOf(HasSubstr("| a | 12.5 |"), HasSubstr("| b | **13.6†** |")));
  EXPECT_THAT(render(table, TableFormat::kHtml), AllOf(HasSubstr(">12.5</td>"), HasSubstr("<b>13.6†</b></td>")));
  EXPECT_THAT(render(table, TableFormat::kLatex),
              AllOf(HasSubstr("a & 12.5 \\\\"), HasSubstr("b & \\textbf{13.6$^{\\dagger}$} \\\\")));
  EXPECT_THAT(render(table, TableFormat::kText),
              AllOf(HasSubstr("b      13.6† ●\n"), HasSubstr("\n●: bold in other formats\n")));
  const auto cells = nlohmann::json::parse(render(table, TableFormat::kJson)).at("rows").at(1).at("cells").at(0);
  EXPECT_EQ(cells.at("bold"), true);
  EXPECT_EQ(cells.at("p"), 0.03125);
  EXPECT_EQ(cells.at("corrected_p"), 0.03125);
  EXPECT_NEAR(cells.at("delta"), 13.5833333 - 12.5, 1e-6);
}

// --- statistics of a difference
// ------------------------------------------------------------------------------------------

// b − a: 1, 1, 4 of the seeds 1 to 3: mean 2, deviation √3, half-width 4.302653 · √3 / √3 = 4.3027. The correlation of
// 1, 2, 3 with 2, 3, 7: covariance 2.5, deviations 1 and √7: 0.9449. Of nine pairs b is higher in 6, equal in 2 (2 and
// 2, 3 and 3): 7 / 9. Welch: means 2 and 4, variances 1 and 7, ν = (8/3)² / ((1/9 + 49/9) / 2) = 2.56.
TEST(Differences, OfACellFromItsBaselineAreStatisticsOfShow) {
  const Values values = {{"a", {1, 2, 3}}, {"b", {2, 3, 7}}};
  const auto shown = [&](const std::string& show, const std::string& test = "") {
    const std::string grid = fmt::format(
        "seeds = 3\n[axis]\nnorm = [\"a\", \"b\"]\n[table]\nrows = \"norm\"\nscores = \"s\"\nbaseline = \"a\"\nshow = "
        "\"{}\"\n{}",
        show, test);
    return column_of(filled(grid, values)).at(1);
  };
  EXPECT_EQ(shown("{delta:.2f} ± {delta_ci95:.4f}"), "+2.00 ± 4.3027");
  EXPECT_EQ(shown("{r:.4f}"), "0.9449");
  const std::string deltas = "baseline = \"a\"\n", show = "show = \"{mean:.1f}\"";
  std::string grid = grid_of(3, "\"a\", \"b\"", deltas);
  grid.replace(grid.find(show), show.size(), "show = \"{delta:.0f} (p = {delta_ci95:.1f}, {r:.1f})\"");
  EXPECT_EQ(column_of(filled(grid, values)).at(0), "–") << "the baseline itself";
  EXPECT_EQ(shown("{better:.4f}"), "0.7778");
  // t of all three differences: 2 / (√3 / √3) = 2, two degrees: p = 0.1835.
  EXPECT_EQ(shown("{p}", "[table.test]\nmethod = \"t\"\n"), "0.184");
  // Welch's: standard error √(8/3) = 1.633, t(0.975, 2.56) = 3.517.
  EXPECT_EQ(shown("{delta:.1f} ± {delta_ci95:.1f}", "[table.test]\nmethod = \"t\"\npaired = false\n"), "+2.0 ± 5.7");
}

TEST(Ratio, IsOfMeansAndAboveOneWhereTheCellIsBetterThanItsBaseline) {
  const Table table = of_six("baseline = \"a\"\nshow = \"{mean}/{ratio}\"\n", kSix);
  EXPECT_THAT(column_of(table), ElementsAre("4.0/1.00", "6.0/1.50", "3.0/0.75", "5.0/1.25", "8.0/2.00", "2.0/0.50"));
  EXPECT_THAT(column_of(table, 1),
              ElementsAre("40.0/1.00", "60.0/0.67", "30.0/1.33", "50.0/0.80", "80.0/0.50", "20.0/2.00"))
      << "baseline ÷ cell, where the lowest is best";
  EXPECT_EQ(notes_of(table).at(0), "Mean/ratio to the baseline (above 1 is better) over 2 seeds (1, 2).");
  EXPECT_EQ(notes_of(table).at(1), "The baseline is a.");
  const nlohmann::json json = nlohmann::json::parse(render(table, table_format("json")));
  EXPECT_EQ(json.at("rows").at(1).at("cells").at(0).at("ratio"), 1.5);
  EXPECT_EQ(json.at("rows").at(0).at("cells").at(0).at("ratio"), 1);
  EXPECT_TRUE(json.at("rows").at(0).at("cells").at(0).at("delta").is_null());
}

TEST(Ratio, IsOfTheSeedsThatBothHaveAndOfNumbersAboveZero) {
  const auto ratio = [](const std::string& keys, double first) {
    const std::string grid =
        "seeds = 2\n[axis]\nnorm = [\"a\", \"b\"]\n[table]\nrows = \"norm\"\nscores = \"s\"\n"
        "baseline = \"a\"\nshow = \"{mean:.1f} {ratio:.3f}\"\n" +
        keys;
    return column_of(table_of(grid,
                              [&](auto labels, int64_t seed) {
                                if (labels["norm"] == "a") return done({{"s", seed == 1 ? first : 20}});
                                return seed == 1 ? done({{"s", 15}}) : ended(RunState::kFailed);
                              }))
        .at(1);
  };
  EXPECT_EQ(ratio("", 10), "15.0 1.500, 1/2 failed");
  EXPECT_EQ(ratio("[table.test]\nmethod = \"t\"\npaired = false\n", 10), "15.0 1.000, 1/2 failed");
  EXPECT_EQ(ratio("", 0), "15.0, 1/2 failed");
  EXPECT_EQ(ratio("", -10), "15.0, 1/2 failed");
}

TEST(Baselines, OfARowAreTheLastAboveIt) {
  const std::string show = "show = \"{ratio} {delta}\"\n";
  const Table table = of_six("baseline = [\"e\", \"b\", \"c\"]\n" + show, kSix);
  EXPECT_THAT(column_of(table), ElementsAre("0.67 −2.0", "1.00", "1.00", "1.67 +2.0", "1.00", "0.25 −6.0"));
  EXPECT_EQ(notes_of(table).at(1),
            "The baseline of a row is the last above it of: b; c; e; differences are of the same seed.");
  const Table added = of_six("baseline = [\"a\", \"e\"]\n" + show +
                                 "row = { label = \"mean\", mean = [\"a\", \"b\"], "
                                 "before = \"f\" }\n",
                             kSix);
  EXPECT_EQ(added.rows.at(5).labels.at(0), "mean");
  EXPECT_EQ(column_of(added).at(5), "0.62 −3.0") << "of e, which stands above it";
}

TEST(Baselines, OfSeveralAxesAreListsOfLabels) {
  const Table table = table_of(R"--(
[axis]
corpus = ["x", "y"]
model = ["base", "deep"]
[table]
rows = ["corpus", "model"]
scores = "s"
baseline = [["x", "base"], ["y", "base"]]
show = "{mean:.0f}/{ratio}"
)--",
                               [](auto labels, int64_t) {
                                 const double base = labels["corpus"] == "x" ? 10 : 40;
                                 return done({{"s", base + (labels["model"] == "deep" ? 10 : 0)}});
                               });
  std::vector<std::string> texts;
  for (const auto& line : texts_of(table)) texts.push_back(line.at(2));
  EXPECT_THAT(texts, ElementsAre("10/1.00", "20/2.00", "40/1.00", "50/1.25"));
  EXPECT_THAT(notes_of(table), Contains("The baseline of a row is the last above it of: x, base; y, base."));
}

TEST(Baselines, AreThoseOfTheTestToo) {
  const Values values = {{"a", {1, 1, 1, 1, 1, 1}},
                         {"b", {2, 3, 2, 3, 2, 3}},
                         {"c", {9, 9, 9, 9, 9.1, 9}},
                         {"d", {9.1, 8.9, 9, 9.1, 8.9, 9}},
                         {"e", {1, 1.5, 1, 1, 1.5, 1}}};
  const auto marks = [&](const std::string& baseline) {
    const Table table = filled(
        grid_of(6, "\"a\", \"b\", \"c\", \"d\", \"e\"", "baseline = " + baseline + "\n[table.test]\nmethod = \"t\"\n"),
        values);
    std::vector<int> levels;
    for (const Table::Row& row : table.rows) levels.push_back(row.cells[0].comparison.level);
    EXPECT_THAT(note_with(table, "† p"), HasSubstr(baseline == "\"a\"" ? "for 4 comparisons" : "for 3 comparisons"));
    return levels;
  };
  EXPECT_THAT(marks("\"a\""), ElementsAre(0, 1, 1, 1, 0));
  EXPECT_THAT(marks("[\"a\", \"c\"]"), ElementsAre(0, 1, 0, 0, 1));
}

TEST(Show, OfAScoreIsItsOwnAndANoteSaysOfEachWhatItIs) {
  const Table table =
      of_six("baseline = \"a\"\nshow = { \"sec*\" = \"{mean}/{ratio}\", \"*\" = \"{mean} [{min}]\" }\n", kSix);
  EXPECT_EQ(column_of(table).at(1), "6.0 [5.0]");
  EXPECT_EQ(column_of(table, 1).at(1), "60.0/0.67");
  EXPECT_THAT(notes_of(table).at(0), HasSubstr("s: mean [least] over 2 seeds"));
  EXPECT_THAT(notes_of(table).at(1), HasSubstr("seconds: mean/ratio to the baseline"));
  const Table others = of_six("baseline = \"a\"\nshow = { seconds = \"{ratio}\" }\n", kSix);
  EXPECT_EQ(column_of(others).at(1), "6.0 ± 1.4") << "others have the default";
}

TEST(Show, OfOneSeedSpeaksOfNoSpread) {
  const auto note = [](const std::string& seeds, const std::string& show) {
    return notes_of(table_of("seeds = " + seeds + "\n[axis]\na = [1]\n[table]\nscores = \"s\"\n" + show,
                             [](auto, int64_t) {
                               return done({{"s", 1}});
                             }))
        .at(0);
  };
  EXPECT_EQ(note("1", ""), "s: mean over 1 seed (1).");
  EXPECT_EQ(note("2", ""), "s: mean ± sample standard deviation over 2 seeds (1, 2).");
  EXPECT_EQ(note("1", "show = \"{mean} {max} {ci95}\"\n"), "s: mean, greatest over 1 seed (1).");
  EXPECT_EQ(note("1", "show = \"{std}\"\n"), "s: sample standard deviation over 1 seed (1).");
}

TEST(Differences, AreLeftOutTogetherWithTheirBracketWhereACellHasNone) {
  const Values values = {{"a", {1, 2, 3}}, {"b", {2, 3, 7}}};
  const auto of_baseline = [&](const std::string& show) {
    std::string grid = grid_of(3, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\nmethod = \"t\"\n");
    const std::string mean = "show = \"{mean:.1f}\"";
    grid.replace(grid.find(mean), mean.size(), "show = \"" + show + "\"");
    return column_of(filled(grid, values)).at(0);
  };
  EXPECT_EQ(of_baseline("{mean:.1f} ({delta} ± {delta_ci95})"), "2.0");
  EXPECT_EQ(of_baseline("{mean:.1f} [{better_low}, {better_high}]"), "2.0");
  EXPECT_EQ(of_baseline("({delta}, p = {p}) {mean:.1f}"), "2.0");
  EXPECT_EQ(of_baseline("({mean:.1f}, p = {p})"), "(2.0, p = –)") << "a part of it has a value";
}

TEST(Shares, AreRoundedAndOnlyAPIsSmallerThanItsLastDigit) {
  const Values values = {{"a", {1, 2, 3, 4}}, {"b", {4, 1, 3.1, 2}}};  // correlation −0.386
  const auto shown = [&](const std::string& show) {
    std::string grid = grid_of(4, "\"a\", \"b\"", "baseline = \"a\"\n[table.test]\nmethod = \"t\"\n");
    const std::string mean = "show = \"{mean:.1f}\"";
    grid.replace(grid.find(mean), mean.size(), "show = \"" + show + "\"");
    return column_of(filled(grid, values)).at(1);
  };
  EXPECT_EQ(shown("{r:.1f}"), "−0.4");
  EXPECT_EQ(shown("{r:.0f}"), "0");
  EXPECT_EQ(shown("{better:.0f}"), "1");
  EXPECT_EQ(shown("{better:+.1f}"), "+0.5");
  EXPECT_EQ(shown("{p:.0f}"), "<1");
}

// --- notes -----------------------------------------------------------------------------------------------------------

// Pooled: (4 + 16) / 2 → s = √10 with n = 3: (t(0.975, 4) + t(0.8, 4)) s √(2/3) = (2.776445 + 0.940965) · 3.162278 ·
// 0.816497 = 9.598.
TEST(Power, IsTheDifferenceThatSoManySeedsCouldHaveFound) {
  const Table table = filled(grid_of(3, "\"a\", \"b\"", "decimals = 2\n"), {{"a", {0, 2, 4}}, {"b", {0, 4, 8}}});
  EXPECT_THAT(note_with(table, "Power"), AllOf(HasSubstr("3 seeds"), HasSubstr(": 9.60")));
  // Of the column's cells with two seeds or more the fewest: t(0.975, 2) + t(0.8, 2) = 4.302653 + 1.060660, times
  // √((8 + 2) / (2 + 1)) · √(2 / 2).
  const Table uneven = filled(grid_of(3, "\"a\", \"b\", \"c\"", "decimals = 2\n"),
                              {{"a", {0, 2, 4}}, {"b", {0, NAN, 2}}, {"c", {5, NAN, NAN}}});
  EXPECT_THAT(note_with(uneven, "Power"), AllOf(HasSubstr("2 to 3 seeds"), HasSubstr(": 9.79")));
  EXPECT_EQ(note_with(filled(grid_of(1, "\"a\", \"b\"", ""), {{"a", {0}}, {"b", {4}}}), "Power"), "")
      << "one seed has no spread";
  EXPECT_EQ(note_with(filled(grid_of(3, "\"a\"", ""), {{"a", {0, 2, 4}}}), "Power"), "") << "one cell";
  EXPECT_EQ(note_with(filled(grid_of(3, "\"a\", \"b\"", ""), {{"a", {1, 1, 1}}, {"b", {2, 2, 2}}}), "Power"), "")
      << "without spread any difference would be found";
}

// Two seeds were submitted on the first day and done on the second; a third was submitted on day `third`.
Table with_third_seed(const std::string& third, const std::string& of_b = "", bool has_first = true) {
  const Grid grid = load_text(grid_of(3, "\"a\", \"b\"", ""));
  std::vector<Row> rows = rows_of(grid, [](auto, int64_t seed) { return done({{"s", 1.0 * seed}}); });
  for (Row& row : rows) {
    row.known_since = row.run.seed == 3 ? third : "2026-01-01T10:00:00Z";
    row.sweeps = {"second"};
    if (row.run.seed != 3 && has_first) row.sweeps.insert("first");
    if (!of_b.empty() && row.run.coordinates[0].second == "b") row.known_since = of_b;
    row.result.attempts.resize(1);
    row.result.attempts[0].ended_at = row.run.seed == 3 ? "2026-01-09T10:00:00Z" : "2026-01-02T10:00:00Z";
  }
  return fill(grid, {"t"}, views_of(grid)[0].table(), rows);
}

TEST(Seeds, ThatWereAddedWhenOthersHadResultsAreNamed) {
  EXPECT_EQ(
      note_with(with_third_seed("2026-01-03T10:00:00Z"), "added"),
      "Seed 3 was added on 2026-01-03, after results with 2 existed: the true level of a comparison at 5 % is up to "
      "8.7 %.");
  EXPECT_EQ(note_with(with_third_seed("2026-01-01T10:00:00Z"), "added"), "") << "all at once";
  EXPECT_EQ(note_with(with_third_seed("2026-01-02T09:00:00Z"), "added"), "") << "before the first result";
  EXPECT_EQ(note_with(with_third_seed(""), "added"), "") << "not known";
  EXPECT_NE(note_with(with_third_seed("2026-01-03T10:00:00Z", "2026-01-10T10:00:00Z"), "added"), "")
      << "another row of all seeds later changes nothing";
  EXPECT_EQ(note_with(with_third_seed("2026-01-03T10:00:00Z", "", /*has_first=*/false), "added"), "")
      << "made again, in the only sweep that there was";
}

}  // namespace
}  // namespace tearless::harness::significance_test
