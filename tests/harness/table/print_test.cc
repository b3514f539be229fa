// What a paper's table needs beside the cells of the grid: names in print, statistics that `show` composes, rows and
// columns that are made of others, published numbers with marks, and a layout that fits where it stands.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/utf8.h"
#include "base/words.h"
#include "harness/table/latex.h"
#include "harness/table/sheet.h"
#include "harness/table/table.h"
#include "tests/harness/notes_of.h"
#include "tests/harness/table/example_table.h"

namespace tearless::harness::print_test {
namespace {

using nlohmann::json;
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

std::string only_text(std::string_view table, const std::vector<double>& of_seeds) {
  const std::string grid =
      fmt::format("seeds = {}\n[axis]\na = [1]\n[table]\nscores = \"s\"\n{}", of_seeds.size(), table);
  const Table filled = table_of(grid, [&](const auto&, int64_t seed) {
    return done({{"s", of_seeds[static_cast<size_t>(seed - 1)]}});
  });
  return texts_of(filled).at(0).at(1);
}

// --- show ------------------------------------------------------------------------------------------------------------

// Of 1, 2, 4, 9: mean 4, squares 9 + 4 + 0 + 25 = 38, deviation √(38/3) = 3.559026, t(0.975, 3) = 3.182446,
// 3.182446 · 3.559026 / 2 = 5.663203, median 3.
TEST(Show, ComposesStatisticsWithTextAroundThem) {
  const auto shown = [](const std::string& show, const std::string& more = "") {
    return only_text(fmt::format("show = \"{}\"\n{}", show, more), {9, 1, 4, 2});
  };
  EXPECT_EQ(shown("{mean:.2f} ± {std:.3f} ({n})"), "4.00 ± 3.559 (4)");
  EXPECT_EQ(shown("{mean:.1f} ± {ci95:.4f}"), "4.0 ± 5.6632");
  EXPECT_EQ(shown("{median:.1f} [{min:.0f}, {max:.0f}]"), "3.0 [1, 9]");
  EXPECT_EQ(shown("{best:.0f}"), "9");
  EXPECT_EQ(shown("{best:.0f}", "best = \"lowest\"\n"), "1");
  EXPECT_EQ(shown("{best:.0f}", "best = { \"s*\" = \"lowest\" }\n"), "1");
  EXPECT_EQ(shown("{mean:+.1f}"), "+4.0");
  EXPECT_EQ(shown("M={mean:.0f}%, n={n}."), "M=4%, n=4.");
  EXPECT_EQ(shown("{mean}"), "4.0") << "digits of the spread";
  EXPECT_EQ(shown("{mean}", "decimals = 3\n"), "4.000");
}

TEST(Show, LeavesOutAStatisticWithoutValueWithItsText) {
  EXPECT_EQ(only_text("show = \"{mean:.1f} ± {std:.1f} ({n})\"\n", {2}), "2.0 (1)");
  EXPECT_EQ(only_text("show = \"{mean:.1f} (±{ci95:.1f}) max {max:.1f}\"\n", {2}), "2.0 max 2.0");
}

TEST(Show, MedianOfAnOddNumberIsTheMiddleOne) { EXPECT_EQ(only_text("show = \"{median:.1f}\"\n", {5, 1, 100}), "5.0"); }

TEST(Show, TheCountSaysWhatIsMissing) {
  const Table table = table_of("seeds = 3\n[axis]\na = [1]\n[table]\nscores = \"s\"\nshow = \"{mean:.0f} ({n})\"\n",
                               [](const auto&, int64_t seed) {
                                 return seed == 2 ? ended(RunState::kQueued) : done({{"s", 7}});
                               });
  EXPECT_EQ(texts_of(table), (std::vector<std::vector<std::string>>{{"1", "7 (2/3)"}}));
}

TEST(Show, IsExplainedInANote) {
  const auto note = [](const std::string& show) {
    return notes_of(table_of("seeds = 2\n[axis]\na = [1]\n[table]\nscores = \"s\"\n" + show,
                             [](const auto&, int64_t) {
                               return done({{"s", 7}});
                             }))
        .front();
  };
  EXPECT_EQ(note(""), "s: mean ± sample standard deviation over 2 seeds (1, 2).");
  EXPECT_EQ(note("show = \"{median} ({n})\"\n"), "s: median (number of seeds) over 2 seeds (1, 2).");
  EXPECT_EQ(note("show = \"{min} {max}\"\n"), "s: least, greatest over 2 seeds (1, 2).");
}

TEST(Cell, SaysTheNumberOfSeedsOnlyWhereItIsNotThatOfTheNote) {
  const auto texts = [](bool all) {
    const Table table =
        table_of("seeds = 2\n[axis]\na = [1, 2]\n[table]\nscores = \"s\"\n", [&](auto labels, int64_t seed) {
          return !all && labels["a"] == "2" && seed == 2 ? ended(RunState::kRunning) : done({{"s", 3.0 + 1.0 * seed}});
        });
    return texts_of(table);
  };
  using Texts = std::vector<std::vector<std::string>>;
  EXPECT_EQ(texts(true), (Texts{{"1", "4.50 ± 0.71"}, {"2", "4.50 ± 0.71"}}));
  EXPECT_EQ(texts(false), (Texts{{"1", "4.50 ± 0.71"}, {"2", "4.00 (1/2)"}}));
}

TEST(Cell, HasATrueMinusForPeopleAndAHyphenForPrograms) {
  const Table table = table_of(
      "seeds = 1\n[axis]\na = [1]\n[table]\nscores = \"s\"\npublished = { source = \"P\", values = [[-1.5]] }\n",
      [](const auto&, int64_t) {
        return done({{"s", -2.25}});
      });
  EXPECT_THAT(render(table, TableFormat::kText), HasSubstr("−2.25 [−1.5, −0.75]"));
  EXPECT_THAT(render(table, TableFormat::kMarkdown), HasSubstr("−2.25 \\[−1.5, −0.75\\]"));
  EXPECT_THAT(render(table, TableFormat::kHtml), HasSubstr("−2.25 [−1.5, −0.75]"));
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("$-$2.25 {[}$-$1.5, $-$0.75{]}"));
  EXPECT_THAT(render(table, TableFormat::kCsv), HasSubstr(",-2.25,"));
}

// --- names -----------------------------------------------------------------------------------------------------------

constexpr const char* kNamed = R"--(
seeds = 1
[axis]
norm = ["ln", "sn"]
depth = [2, 6]
[names]
norm = "Norm"
depth = { text = "Depth L", latex = "Depth $L$" }
ln = "LayerNorm"
sn = { text = "ScaleNorm (√d)", latex = "ScaleNorm ($\\sqrt{d}$)" }
"depth=2" = "two"
2 = "not this one"
"test.bleu" = "BLEU_4"
)--";
RunResult one_score(const std::map<std::string, std::string>&, int64_t) { return done({{"test.bleu", 7}}); }

TEST(Labels, OfANumberOrATruthValueSayWhatTheyAreOfInNotes) {
  const Names names = {{"tied", {"Tied", "$T$"}}, {"2", {"two"}}};
  EXPECT_EQ(labels_in_print(names, {"norm", "tied", "depth"}, {"ln", "true", "6"}),
            (Name{"ln, Tied = true, depth = 6", "ln, $T$ = true, depth = 6"}));
  EXPECT_EQ(labels_in_print(names, {"norm", "depth"}, {"ln", "2"}).text, "ln, two");
}

TEST(Names, AreInFormatsForPeopleAndWordsOfTheGridInOthers) {
  const Table table = table_of(kNamed, one_score);
  const std::string text = render(table, TableFormat::kText), latex = render(table, TableFormat::kLatex);
  EXPECT_THAT(text, HasSubstr("                 Depth L\nNorm             two    6\n"));
  EXPECT_THAT(text, HasSubstr("LayerNorm        7.00   7.00\nScaleNorm (√d)   7.00   7.00\n"));
  EXPECT_THAT(text, HasSubstr("BLEU_4: mean"));
  EXPECT_THAT(latex, HasSubstr(" & \\multicolumn{2}{c}{Depth $L$} \\\\ \\cmidrule(lr){2-3}\nNorm & two & 6 \\\\"));
  EXPECT_THAT(latex, HasSubstr("ScaleNorm ($\\sqrt{d}$) & 7.00"));
  EXPECT_THAT(latex, HasSubstr("BLEU\\_4: mean"));
  EXPECT_THAT(render(table, TableFormat::kHtml), HasSubstr("<th>LayerNorm</th>"));
  EXPECT_THAT(render(table, TableFormat::kCsv), HasSubstr("ln,2,test.bleu,7"));
  EXPECT_EQ(json::parse(render(table, TableFormat::kJson)).at("rows").at(1).at("labels"), (json{{"norm", "sn"}}));
}

TEST(Names, ThatAreEmptyAreNotPrinted) {
  const Table table =
      table_of("seeds = 1\n[axis]\nnorm = [\"ln\"]\ndepth = [2, 6]\n[names]\ndepth = \"\"\n", one_score);
  EXPECT_THAT(render(table, TableFormat::kText), HasSubstr("\n\nnorm   2      6\n"));
}

TEST(Names, OfBaseFilesHoldUnlessTheGridHasItsOwn) {
  const test::TempFolder folder;
  test::write_text(folder / "deep.toml", "x = 1\n[names]\nln = \"deep\"\nsn = \"deep\"\nnorm = \"deep\"\n");
  test::write_text(folder / "base.toml", "base = \"deep.toml\"\n[names]\nln = \"base\"\nsn = \"base\"\n");
  test::write_text(folder / "grid.toml",
                   "base = \"base.toml\"\n[axis]\nnorm = [\"ln\", \"sn\"]\n[names]\nsn = \"own\"\n");
  const Grid grid = load_grid(folder / "grid.toml");
  EXPECT_EQ(name_of(grid.names, "norm").text, "deep");
  EXPECT_EQ(name_of(grid.names, "norm", "ln").text, "base");
  EXPECT_EQ(name_of(grid.names, "norm", "sn").text, "own");
  EXPECT_EQ(grid.base.count("x"), 1u);
  EXPECT_EQ(grid.base.size(), 1u) << "a name is no setting";
}

// "1e-3" in a grid file is the label that tables print as 0.001, wherever it stands.
TEST(Names, AndEveryKeyThatNamesALabelTakeItsNumberInAnotherSpelling) {
  const Grid grid = load_text(R"--(
seeds = 1
[axis]
norm = ["ln", "sn"]
lr = [1e-3, 0.5, 2.0]
[names]
"1e-3" = "small"
"lr=.5" = "large"
2 = "huge"
[[table]]
rows = "lr"
columns = "norm"
where = { lr = ["1e-3", "5e-1"] }
baseline = "1e-3"
show = "{delta}"
[[table.row]]
label = "gain"
difference = ["5e-1", "1e-3"]
before = ".5"
[[table]]
caption = "turned"
rows = "norm"
columns = "lr"
scores.lr = { "1e-3" = "a", "5e-1" = "b", 2 = "a" }
[[table.header]]
name = "Layers"
texts = { "1e-3" = "four", 2 = "six" }
[[claim]]
text = "t"
table = "turned"
better = [{ lr = "1e-3" }, "2"]
)--");
  EXPECT_EQ(name_of(grid.names, "lr", "0.001").text, "small");
  EXPECT_EQ(name_of(grid.names, "lr", "0.5").text, "large");
  EXPECT_EQ(name_of(grid.names, "lr", "2.0").text, "huge");
  EXPECT_THAT(grid.named, testing::IsEmpty()) << "none is a score";
  const std::vector<View> views = views_of(grid);
  const TableSpec &first = views.at(0).table(), &turned = views.at(1).table();
  EXPECT_THAT(first.arrangement.where.labels.at("lr"), ElementsAre("0.001", "0.5"));
  EXPECT_THAT(first.baselines, ElementsAre(0));
  EXPECT_THAT(first.added_rows.at(0).sum, ElementsAre(std::pair(1, 1), std::pair(0, -1)));
  EXPECT_EQ(first.added_rows.at(0).before, 1u);
  EXPECT_THAT(turned.scores_of_label.at("0.001"), ElementsAre("a"));
  EXPECT_THAT(turned.scores_of_label.at("0.5"), ElementsAre("b"));
  EXPECT_EQ(turned.header.at(0).texts.at("0.001").text, "four");
  EXPECT_EQ(turned.header.at(0).texts.at("2.0").text, "six");
  const auto& claim = std::get<ClaimSpec>(views.at(2).spec);
  EXPECT_EQ(claim.cells.at(0).at("lr"), "0.001");
  EXPECT_EQ(claim.cells.at(1).at("lr"), "2.0");
}

TEST(Names, ThatTwoRowsOrColumnsShareAreNoted) {
  const auto notes = [](const std::string& names) {
    const Grid grid = load_text(
        "[axis]\nnorm = [\"ln\", \"ln_b\", \"sn\"]\ndepth = [2, 6]\n[table]\nrows = \"norm\"\ncolumns = "
        "\"depth\"\nscores = \"s\"\n[names]\n" +
        names);
    return notes_of(fill(grid, {"t"}, views_of(grid).at(0).table(), rows_of(grid, one_score)));
  };
  EXPECT_THAT(notes("ln = \"LayerNorm\"\nln_b = \"LayerNorm\"\n"),
              testing::Contains("2 rows are called \"LayerNorm\": ln; ln_b."));
  EXPECT_THAT(notes("\"depth=2\" = \"deep\"\n\"depth=6\" = \"deep\"\n"),
              testing::Contains("2 columns are called \"deep\": depth = 2, s; depth = 6, s."));
  EXPECT_THAT(notes("ln = \"LayerNorm\"\n"), testing::Not(testing::Contains(HasSubstr(" are called "))));
  const Grid scores = load_text(
      "[axis]\nnorm = [\"ln\"]\n[table]\nrows = \"norm\"\nscores = [\"s\", \"t\"]\n[names]\ns = \"BLEU\"\nt = "
      "\"BLEU\"\n");
  EXPECT_THAT(notes_of(fill(scores, {"t"}, views_of(scores).at(0).table(), rows_of(scores, one_score))),
              testing::Contains("2 columns are called \"BLEU\": s; t."));
}

TEST(Names, OfABaseFileYieldToThoseOfTheGridInWhateverSpelling) {
  const test::TempFolder folder;
  test::write_text(folder / "base.toml", "[names]\n\"1e-3\" = \"base\"\n\"5e-1\" = \"base\"\n");
  test::write_text(folder / "grid.toml",
                   "base = \"base.toml\"\n[axis]\nlr = [0.001, 0.5]\n[names]\n\"0.0010\" = \"own\"\n");
  const Grid grid = load_grid(folder / "grid.toml");
  EXPECT_EQ(name_of(grid.names, "lr", "0.001").text, "own");
  EXPECT_EQ(name_of(grid.names, "lr", "0.5").text, "base");
}

TEST(Names, AndViewsAreTheSameInWhatASweepKeeps) {
  const std::string text = std::string(kNamed) + R"--(
[table]
rows = "norm"
columns = "depth"
where = { depth = [2] }
show = "{mean:.1f} {delta}"
baseline = "ln"
[[table.row]]
label = { text = "Δ", latex = "$\\Delta$" }
difference = ["sn", "ln"]
[[table.column]]
label = "mean"
mean = true
[[table.header]]
name = "Sizes"
texts = { 2 = "small", 6 = "large" }
[[table.header]]
name = "Batch"
texts = { 2 = 4096 }
[[table.published]]
source = "P"
values = [["1.5†"], [{ value = 2, source = "Q" }]]
)--";
  const Grid grid = load_text(text);
  const Grid again = parse_grid(grid.merged, "merged.toml");
  EXPECT_EQ(again.names, grid.names);
  const auto printed = [&](const Grid& one) {
    return render(fill(one, {"t"}, views_of(one).at(0).table(), rows_of(one, one_score)), TableFormat::kLatex);
  };
  EXPECT_EQ(printed(again), printed(grid));
  EXPECT_THAT(printed(grid), HasSubstr("$\\Delta$ & "));
}

// --- added rows and columns
// --------------------------------------------------------------------------------------------

constexpr const char* kAdded = R"--(
seeds = 2
[axis]
norm = ["none", "ln", "ada"]
task = ["A", "B"]
[table]
rows = "norm"
columns = "task"
scores = "s"
show = "{mean:.2f} ± {std:.2f}"
published = { source = "P", values = [[1, 2], [4, 8], ["Div", 9]] }
[[table.row]]
label = "gain"
difference = ["ada", "ln"]
[[table.row]]
label = "mean"
mean = ["none", "ln"]
before = "ada"
[[table.column]]
label = "Δavg"
mean = true
baseline = "none"
)--";
// Of seeds 1 and 2:     A        B
//   none             1,  2   10, 20
//   ln               3,  7   30, 40
//   ada              4, 10   35, 43
double value_at(const std::string& norm, const std::string& task, int64_t seed) {
  static const std::map<std::pair<std::string, std::string>, std::pair<double, double>> kValues = {
      {{"none", "A"}, {1, 2}}, {{"none", "B"}, {10, 20}}, {{"ln", "A"}, {3, 7}},
      {{"ln", "B"}, {30, 40}}, {{"ada", "A"}, {4, 10}},   {{"ada", "B"}, {35, 43}}};
  const auto& [first, second] = kValues.at({norm, task});
  return seed == 1 ? first : second;
}
RunResult of_values(std::map<std::string, std::string> labels, int64_t seed) {
  return done({{"s", value_at(labels["norm"], labels["task"], seed)}});
}

TEST(AddedLines, AreSumsOfTheValuesOfEachSeed) {
  // gain of A: 1, 3; of B: 5, 3. mean of none and ln: 2, 4.5 and 20, 30.
  // Δavg: ln (3 + 30)/2 - (1 + 10)/2 = 11, (7 + 40)/2 - (2 + 20)/2 = 12.5; ada 14, 15.5; gain 3 and 3, the
  // baseline is in both of its rows.
  const auto texts = texts_of(table_of(kAdded, of_values));
  using testing::StartsWith;
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_THAT(texts[0],
              ElementsAre("none", "1.50 ± 0.71 [1, +0.50]", "15.00 ± 7.07 [2, +13.00]", "+0.00 ± 0.00 [+0, +0.00]"));
  EXPECT_THAT(texts[1],
              ElementsAre("ln", "5.00 ± 2.83 [4, +1.00]", "35.00 ± 7.07 [8, +27.00]", "+11.75 ± 1.06 [+4, +7.25]"))
      << "published: (4 + 8)/2 - (1 + 2)/2 = 4.5, without decimals as the others";
  EXPECT_THAT(texts[2],
              ElementsAre("mean", StartsWith("3.25 ± 1.77"), StartsWith("25.00 ± 7.07"), StartsWith("+5.88 ± 0.53")));
  EXPECT_THAT(texts[3], ElementsAre("ada", "7.00 ± 4.24 [Div]", StartsWith("39.00 ± 5.66"), "+14.75 ± 1.06"));
  EXPECT_THAT(texts[4], ElementsAre("gain", "+2.00 ± 1.41", "+4.00 ± 1.41 [+1, +3.00]", "+3.00 ± 0.00"));
}

TEST(AddedLines, WithoutASeedOfOneOfTheirCellsLackIt) {
  const Table table = table_of(kAdded, [](auto labels, int64_t seed) {
    if (labels["norm"] == "ada" && labels["task"] == "A" && seed == 2) return ended(RunState::kQueued);
    if (labels["norm"] == "ada" && labels["task"] == "B") return ended(RunState::kDiverged);
    return of_values(labels, seed);
  });
  const auto texts = texts_of(table);
  EXPECT_EQ(texts[4][1], "+1.00 (1/2)") << "3 of ln's second seed has no partner";
  EXPECT_EQ(texts[4][2], "– [+1]") << "diverged";
  EXPECT_EQ(texts[3][3], "– (0/2), 1/2 div.") << "no seed has both tasks, and one is still to come";
}

TEST(AddedLines, OfPublishedNumbersAloneAreInBracketsAndSummedToo) {
  const std::string text = std::string(kAdded) + R"--(
[[table.row]]
label = "published"
published = { source = "Qi", values = [16.2, "24.0‡"] }
before = "none"
)--";
  const Table table = table_of(text, of_values);
  EXPECT_THAT(texts_of(table)[0], ElementsAre("published", "[16.2]", "[24.0‡]", "[+18.6]")) << "20.1 - 1.5";
  EXPECT_THAT(notes_of(table), testing::Contains("[in brackets]: P; Qi, then ours minus that."));
  const json cell = json::parse(render(table, TableFormat::kJson)).at("rows").at(0).at("cells").at(0);
  EXPECT_EQ(cell.at("state"), "published");
  EXPECT_EQ(cell.at("mean"), nullptr) << "a published number is no measured one";
}

TEST(AddedLines, OfSeveralRowAxesHaveALabelOfEach) {
  const Table table =
      table_of(R"--(
seeds = 1
[axis]
init = ["x", "s"]
place = ["post", "pre"]
[table]
rows = ["init", "place"]
scores = "s"
show = "{mean:.0f}"
[[table.row]]
label = "s − x"
difference = [["s", "pre"], ["x", "pre"]]
)--",
               [](auto labels, int64_t) {
                 return done({{"s", (labels["init"] == "s" ? 50 : 20) + (labels["place"] == "pre" ? 3 : 0)}});
               });
  EXPECT_THAT(texts_of(table).back(), ElementsAre("s − x", "", "+30"));
  const std::string text = render(table, TableFormat::kText);
  EXPECT_THAT(text, HasSubstr("x       post     20\n        pre      23\ns       post     50\n        pre      53\n"));
  EXPECT_THAT(render(table, TableFormat::kLatex),
              HasSubstr("x & post & \\phantom{$-$}20 \\\\\n & pre & \\phantom{$-$}23 \\\\\n\\addlinespace\ns & post"));
}

TEST(Delta, IsTheMeanDifferenceFromTheBaselineOfTheSeedsThatBothHave) {
  const std::string text = R"--(
seeds = 3
[axis]
norm = ["ln", "ada"]
[table]
rows = "norm"
scores = "s"
baseline = "ln"
show = "{mean:.1f} ({delta:.1f})"
)--";
  const Table table = table_of(text, [](auto labels, int64_t seed) {
    if (labels["norm"] == "ln") return seed == 3 ? ended(RunState::kQueued) : done({{"s", 10.0 * seed}});
    return done({{"s", 10.0 * seed + seed}});
  });
  // ada: 11, 22, 33; less 10 and 20: 1 and 2.
  EXPECT_EQ(texts_of(table)[0][1], "15.0 (2/3)");
  EXPECT_EQ(texts_of(table)[1][1], "22.0 (+1.5)");
  EXPECT_THAT(notes_of(table), testing::Contains("The baseline is ln; differences are of the same seed."));
}

// --- which runs are where
// ----------------------------------------------------------------------------------------------

TEST(Average, IsOfEachSeedTheMeanOverTheAxis) {
  const Table table = table_of(R"--(
seeds = 2
[axis]
init = ["x", "s"]
place = ["post", "pre"]
[table]
rows = "place"
average = "init"
scores = "s"
show = "{mean:.1f} ± {std:.2f}"
)--",
                               [](auto labels, int64_t seed) {
                                 if (labels["place"] == "pre" && labels["init"] == "s" && seed == 2)
                                   return ended(RunState::kDiverged);
                                 return done({{"s", (labels["init"] == "s" ? 30.0 : 10.0) + 4.0 * seed}});
                               });
  // post: (14 + 34)/2 = 24, (18 + 38)/2 = 28; pre: 24 alone.
  EXPECT_EQ(texts_of(table)[0][1], "26.0 ± 2.83");
  EXPECT_EQ(texts_of(table)[1][1], "24.0, 1/2 div.");
  EXPECT_THAT(notes_of(table), testing::Contains("Of each seed the mean over the values of init."));
}

TEST(Where, RestrictsTheTableItsNotesAndItsAxes) {
  const Table table =
      table_of(R"--(
seeds = 1
[axis]
norm = ["a", "b", "c"]
corpus = ["x", "y"]
[[exclude]]
when = { norm = "c", corpus = "y" }
why = "too slow"
[table]
rows = "norm"
columns = []
where = { norm = ["b", "c"], corpus = "x" }
scores = "s"
show = "{mean:.0f}"
)--",
               [](auto labels, int64_t) {
                 return labels["corpus"] == "x" && labels["norm"] != "c" ? done({{"s", 5}}) : ended(RunState::kQueued);
               });
  EXPECT_EQ(texts_of(table), (std::vector<std::vector<std::string>>{{"b", "5"}, {"c", "– (0/1)"}}));
  EXPECT_THAT(notes_of(table), testing::Contains(HasSubstr("1 of 2 runs have no result yet")));
  EXPECT_THAT(notes_of(table), Not(testing::Contains(HasSubstr("left out"))));
  EXPECT_THAT(notes_of(table), testing::Contains("corpus: x."));
}

TEST(Scores, MayBeOthersForEachLabelOfAColumn) {
  const Table table = table_of(
      R"--(
seeds = 1
[axis]
norm = ["a"]
task = ["MT", "LM"]
[table]
rows = "norm"
columns = "task"
scores.task = { MT = ["test.bleu", "dev.bleu"], LM = "test.bpc" }
show = "{mean:.2f}"
decimals = { "test.bpc" = 3 }
)--",
      [](auto labels, int64_t) {
        return labels["task"] == "LM" ? done({{"test.bpc", 1.0625}}) : done({{"test.bleu", 30}, {"dev.bleu", 31}});
      });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("a", "30.00", "31.00", "1.06"));
  std::vector<std::string> scores;
  for (const Table::Column& column : table.columns) scores.push_back(column.score);
  EXPECT_THAT(scores, ElementsAre("test.bleu", "dev.bleu", "test.bpc"));
  EXPECT_THAT(render(table, TableFormat::kLatex),
              HasSubstr("task & \\multicolumn{2}{c}{MT} & LM \\\\ \\cmidrule(lr){2-3}\nnorm & test.bleu & dev.bleu & "
                        "test.bpc \\\\"));
  EXPECT_THAT(render(table, TableFormat::kHtml),
              HasSubstr("<tr><th>task</th><th colspan=\"2\">MT</th><th>LM</th></tr>"));
}

TEST(HeaderLine, HasATextForLabelsOfTheColumns) {
  const Table table = table_of(R"--(
seeds = 1
[axis]
norm = ["a"]
task = ["MT", "LM", "RT"]
[names]
task = ""
[table]
rows = "norm"
columns = "task"
scores = "s"
show = "{mean:.0f}"
[[table.header]]
name = "Layers"
texts = { MT = 12, LM = 12, RT = { text = "four", latex = "$4$" } }
)--",
                               [](const auto&, int64_t) {
                                 return done({{"s", 5}});
                               });
  EXPECT_THAT(render(table, TableFormat::kText), HasSubstr("         MT   LM   RT\nLayers   12   12   four\nnorm\n"));
  EXPECT_THAT(
      render(table, TableFormat::kMarkdown),
      HasSubstr("| norm | MT | LM | RT |\n| --- | ---: | ---: | ---: |\n| Layers | 12 | 12 | four |\n| a | 5 |"));
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("Layers & 12 & 12 & $4$ \\\\\n"));
}

TEST(Select, SaysInANoteWhatIsChosenEverywhere) {
  const auto filled = [](double b_of_large) {
    return table_of(
        R"--(
seeds = 1
[axis]
norm = ["a", "b"]
lr = [0.1, 0.2]
[table]
rows = "norm"
scores = "test"
show = "{mean:.0f}"
select = { over = ["lr"], by = "dev" }
)--",
        [&](auto labels, int64_t) {
          const bool large = labels["lr"] == "0.2";
          return done({{"test", large ? 8 : 4}, {"dev", !large ? 1 : labels["norm"] == "a" ? 2 : b_of_large}});
        });
  };
  const Table same = filled(3), other = filled(0.5);
  EXPECT_EQ(texts_of(same), (std::vector<std::vector<std::string>>{{"a", "8"}, {"b", "8"}}));
  EXPECT_THAT(notes_of(same), testing::Contains("The value of lr with the highest mean dev: 0.2 in every cell."));
  EXPECT_EQ(texts_of(other), (std::vector<std::vector<std::string>>{{"a", "8 @0.2"}, {"b", "4 @0.1"}}));
  EXPECT_THAT(notes_of(other), testing::Contains("@: the value of lr with the highest mean dev."));
}

// --- published
// ---------------------------------------------------------------------------------------------------------

TEST(Published, HasMarksSourcesAndSeveralScores) {
  const Table table = table_of(R"--(
seeds = 1
[axis]
system = ["a", "b", "c"]
[table]
rows = "system"
scores = ["test", "sacre"]
show = "{mean:.1f}"
[[table.published]]
source = "P"
values = [["20.50‡*"], [{ value = "19.0*", source = "Q 2017" }], ["fails"]]
[[table.published]]
source = "P, in brackets"
score = "sacre"
values = [[18.5], [""], [18]]
)--",
                               [](const auto&, int64_t) {
                                 return done({{"test", 21}, {"sacre", 19}});
                               });
  EXPECT_THAT(texts_of(table)[0], ElementsAre("a", "21.0 [20.50‡*, +0.5]", "19.0 [18.5, +0.5]"));
  EXPECT_THAT(texts_of(table)[1], ElementsAre("b", "21.0 [19.0* (a), +2.0]", "19.0"));
  EXPECT_THAT(texts_of(table)[2], ElementsAre("c", "21.0 [fails]", "19.0 [18.0, +1.0]"));
  EXPECT_THAT(notes_of(table), testing::Contains("[in brackets]: P; P, in brackets, then ours minus that."));
  EXPECT_THAT(notes_of(table), testing::Contains("(a): Q 2017."));
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("{[}20.50$^{\\ddagger}$$^{*}$, +0.5{]}"));
}

// --- notes -----------------------------------------------------------------------------------------------------------

constexpr const char* kNoted = "seeds = 2\n[axis]\na = [1, 2]\n[table]\nscores = \"s\"\nbaseline = \"1\"\n";

Table noted(const std::string& keys) {
  return table_of(kNoted + keys, [](auto labels, int64_t seed) {
    if (labels["a"] == "2" && seed == 2) return ended(RunState::kDiverged);
    return done({{"s", 2.0 + 1.0 * seed}});
  });
}

TEST(Notes, AreThoseThatTheTableChooses) {
  const std::vector<std::string> all = notes_of(noted(""));
  ASSERT_THAT(all, ElementsAre(HasSubstr("over 2 seeds"), HasSubstr("div.: "), HasSubstr("Share of runs that fail")));
  EXPECT_THAT(notes_of(noted("notes = [\"failures\", \"cells\"]\n")), ElementsAre(all[0], all[2])) << "in their order";
  EXPECT_THAT(notes_of(noted("notes = [\"marks\"]\n")), ElementsAre(all[1]));
  EXPECT_THAT(notes_of(noted("notes = [\"select\"]\n")), testing::IsEmpty()) << "it has none of this name";
  EXPECT_THAT(notes_of(noted("notes = []\n")), testing::IsEmpty());
}

TEST(Notes, OfEveryNameAreTogetherAllNotes) {
  std::string names;
  for (const char* name : TableSpec::kNotes) names += fmt::format("\"{}\", ", name);
  EXPECT_EQ(notes_of(noted("notes = [" + names + "]\n")), notes_of(noted("")));
}

TEST(Notes, AreSentencesOfWhichACommandHasNoPointBehindIt) {
  std::vector<Name> notes = {{"a"}, {"b."}, {"c: too slow!"}, {"To see why: tearless explain ab"}, {"d", "\\cite{d}."}};
  end_sentences(notes);
  EXPECT_EQ(notes, (std::vector<Name>{
                       {"a."}, {"b."}, {"c: too slow!"}, {"To see why: tearless explain ab"}, {"d.", "\\cite{d}."}}));
}

TEST(Notes, OfOnesOwnFollowAndAreAsTheyAreWritten) {
  const std::string own = "{ text = \"as in [3]\", latex = \"as in \\\\cite{them}\" }";
  const Table table = noted("notes = [\"marks\", " + own + "]\n");
  EXPECT_THAT(notes_of(table), ElementsAre(HasSubstr("div.: "), "as in [3]"));
  EXPECT_THAT(notes_of(noted("notes = [" + own + "]\n")), testing::SizeIs(4)) << "it chooses none of the others";
  EXPECT_THAT(render(table, TableFormat::kLatex), HasSubstr("\nas in \\cite{them}\\par\n"));
  EXPECT_THAT(render(table, TableFormat::kMarkdown), HasSubstr("\n- as in \\[3\\]\n"));
}

TEST(Latex, HasCaptionAndSourcesAsTheGridFileSetsThem) {
  const auto latex = [](const std::string& keys) {
    return render(table_of("seeds = 1\n[axis]\na = [1]\n[table]\nscores = \"s\"\n" + keys, one_score),
                  TableFormat::kLatex);
  };
  const std::string caption = "caption = { text = \"g = √d\", latex = \"$g=\\\\sqrt{d}$, \\\\cite{a}\" }\n";
  EXPECT_THAT(latex(caption), HasSubstr("\\caption{$g=\\sqrt{d}$, \\cite{a}}\n"));
  EXPECT_THAT(latex("caption = \"$g$ \\\\cite{a}\"\n"), HasSubstr("\\caption{\\$g\\$ \\textbackslash{}cite\\{a\\}}"));
  const std::string source = "{ text = \"Q & A\", latex = \"\\\\citet{q}\" }";
  EXPECT_THAT(latex("published = { source = " + source + ", values = [[1]] }\n"),
              HasSubstr("{[}in brackets{]}: \\citet{q}, then ours minus that.\\par"));
  EXPECT_THAT(latex("published = { source = \"P & Q\", values = [[{ value = 1, source = " + source + " }]] }\n"),
              testing::AllOf(HasSubstr("{[}in brackets{]}: P \\& Q, then"), HasSubstr("(a): \\citet{q}.\\par")));
  const Table table = table_of("seeds = 1\n[axis]\na = [1]\n[table]\n" + caption, one_score);
  EXPECT_THAT(render(table, TableFormat::kHtml), HasSubstr("<caption>g = √d</caption>"));
  EXPECT_EQ(json::parse(render(table, TableFormat::kJson)).at("title"), "g = √d");
}

// --- where it is printed
// -----------------------------------------------------------------------------------------------

Table wide_table() {
  std::string text = "seeds = 1\n[axis]\nnorm = [\"layer_norm\", \"none\"]\ntask = [";
  for (int i = 0; i < 12; ++i) text += fmt::format("\"task {}\", ", i);
  text += "]\n[table]\nrows = \"norm\"\ncolumns = \"task\"\nscores = [\"test.bleu\", \"dev.bleu\"]\n";
  return table_of(text, [](auto labels, int64_t) {
    const double task = std::stod(labels["task"].substr(5));
    return done({{"test.bleu", 20 + task}, {"dev.bleu", 40 + task}});
  });
}

TEST(Text, WiderThanTheTerminalIsInPartsWithTheLabelsOfTheRows) {
  const Table table = wide_table();
  const std::string text = render(table, TableFormat::kText, Formulas::kAsTheyAre, 60);
  size_t rules = 0, labels = 0, cells = 0;
  for (const std::string_view line : split_lines(text)) {
    const bool is_note = line.find("seed (") != std::string::npos;
    EXPECT_TRUE(is_note || display_width(std::string(line)) <= 60) << line;
    rules += line.starts_with("─");
    labels += line.starts_with("layer_norm");
    cells += static_cast<size_t>(std::ranges::count(line, '.'));
  }
  EXPECT_GT(labels, 2u) << text;
  EXPECT_EQ(rules, 2 * labels);
  for (int task = 0; task < 12; ++task) {
    EXPECT_THAT(text, HasSubstr(fmt::format("task {}", task)));
    EXPECT_THAT(text, HasSubstr(fmt::format("{}.00", 20 + task)));
    EXPECT_THAT(text, HasSubstr(fmt::format("{}.00", 40 + task)));
  }
  const std::string whole = render(table, TableFormat::kText);
  EXPECT_EQ(whole.find("layer_norm"), whole.rfind("layer_norm")) << "in one part";
  EXPECT_EQ(render(table, TableFormat::kText, Formulas::kAsTheyAre, 2000), whole);
}

TEST(Text, BreaksNotesBetweenWordsAndNoCommandToType) {
  const Table table = table_of("seeds = 3\n[axis]\na = [1]\n[table]\nscores = \"s\"\ncaption = \"" +
                                   std::string(30, 'x') + " and more words than fit\"\n",
                               [](const auto&, int64_t seed) {
                                 return seed == 1 ? ended(RunState::kRunning) : done({{"s", 1.0 * seed}});
                               });
  const std::string text = render(table, TableFormat::kText, Formulas::kAsTheyAre, 40);
  const std::string command = "To continue: tearless run grids/example.toml";
  for (const std::string_view line : split_lines(text))
    EXPECT_TRUE(display_width(std::string(line)) <= 40 || line == command) << line;
  EXPECT_THAT(text, testing::StartsWith(std::string(30, 'x') + " and more\nwords than fit\n"));
  EXPECT_THAT(text, HasSubstr("s: mean ± sample standard deviation over\n3 seeds (1, 2, 3).\n"));
  EXPECT_THAT(text, HasSubstr("\ntearless run grids/example.toml\n"));
}

TEST(Points, AlignBehindBracketsAndSigns) {
  const auto form = [](TableFormat format) {
    return render(table_of(R"--(
seeds = 1
[axis]
a = [1, 2, 3]
[table]
scores = "s"
decimals = 1
[[table.row]]
label = "d"
difference = [2, 1]
[[table.row]]
label = "p"
published = { source = "P", values = [4.5] }
)--",
                           [](auto labels, int64_t) {
                             return done({{"s", labels["a"] == "1" ? -2.5 : labels["a"] == "2" ? 10.5 : 3}});
                           }),
                  format);
  };
  EXPECT_THAT(form(TableFormat::kText), HasSubstr("1    −2.5\n2    10.5\n3     3.0\nd   +13.0\np    [4.5]\n"));
  EXPECT_THAT(form(TableFormat::kLatex),
              testing::AllOf(HasSubstr("1 & \\phantom{[0}$-$2.5 \\\\"), HasSubstr("2 & \\phantom{[$-$}10.5 \\\\"),
                             HasSubstr("3 & \\phantom{[$-$0}3.0 \\\\"), HasSubstr("d & \\phantom{[}+13.0 \\\\"),
                             HasSubstr("p & \\phantom{$-$0}{[}4.5{]} \\\\")));
}

TEST(Latex, IsAFloatWithCaptionAndLabelAsWideAsItsContent) {
  const auto latex = [](const std::string& keys) {
    return render(table_of("title = \"T\"\nseeds = 1\n[axis]\na = [1]\n[table]\nscores = \"s\"\n" + keys, one_score),
                  TableFormat::kLatex);
  };
  EXPECT_THAT(latex("label = \"tab:x_1\"\n"),
              HasSubstr("\\begin{table}\n\\centering\n\\caption{T}\n\\label{tab:x_1}\n\\vspace{3pt}\n\\small\n"));
  EXPECT_THAT(latex(""), Not(HasSubstr("\\label")));
  EXPECT_THAT(latex("width = \"page\"\n"), HasSubstr("\\begin{table*}"));
  EXPECT_THAT(latex("width = \"column\"\n"), HasSubstr("\\begin{table}"));
}

TEST(Latex, ThatIsTooWideSaysSoInItsTextAndInASentence) {
  Table table = wide_table();
  EXPECT_THAT(
      too_wide_in_latex(sheet_of(table)),
      testing::ContainsRegex("^in LaTeX the table \"grid\" is about [0-9]+ points wider than a page: show fewer "
                             "columns, or rows as columns$"));
  std::string text = render(table, TableFormat::kLatex);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("\\begin{table*}"), HasSubstr("points wider than a page: show fewer"),
                                   HasSubstr("{booktabs}"), Not(HasSubstr("raggedright\\arraybackslash"))));
  table.width = TableSpec::Width::kColumn;
  EXPECT_THAT(too_wide_in_latex(sheet_of(table)), HasSubstr("points wider than a column"));
  text = render(table, TableFormat::kLatex);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("\\begin{table}\n"), HasSubstr("points wider than a column")));
  table.columns.resize(1);
  for (Table::Row& row : table.rows) row.cells.resize(1);
  EXPECT_EQ(too_wide_in_latex(sheet_of(table)), "") << "it fits";
}

TEST(Formats, ThatHaveNoSheetsAreRefusedForThem) {
  for (const TableFormat format : {TableFormat::kCsv, TableFormat::kJson})
    EXPECT_THROW(render(std::vector<Sheet>(1), format, 0), UserError);
}

TEST(Final, HasNoNoteOfWhatRemainsToBeDoneAndKeepsWhatCellsMean) {
  const OutcomeOf outcome = [](auto labels, int64_t seed) {
    if (labels["a"] == "1") return seed == 1 ? done({{"s", 5}}) : ended(RunState::kQueued);
    return ended(seed == 1 ? RunState::kDiverged : RunState::kFailed);
  };
  const std::string grid =
      "seeds = 2\n[axis]\na = [1, 2, 3]\n[[exclude]]\nwhen = { a = 3 }\nwhy = \"too slow\"\n[table]\nscores = \"s\"\n";
  const Table all = table_of(grid, outcome), final = table_of(grid, outcome, Notes::kFinal);
  EXPECT_THAT(notes_of(all), testing::Contains(HasSubstr("tearless run")));
  EXPECT_THAT(notes_of(final),
              ElementsAre("s: mean ± sample standard deviation over 2 seeds (1, 2).",
                          "div.: diverged, the loss or a gradient was no longer finite.", "2 runs left out: too slow.",
                          "(k/n): k of n seeds; the others have no result."));
  EXPECT_EQ(texts_of(final), texts_of(all));
}

}  // namespace
}  // namespace tearless::harness::print_test
