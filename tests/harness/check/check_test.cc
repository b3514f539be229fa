// Claims in a grid file, over tables with known values: which cells and places they are about, what is printed of them
// in each format, and cells with a tolerance.
#include "harness/check/check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/grid/expand.h"
#include "tests/support/paths.h"

namespace tearless::harness::check_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

using Coordinates = std::map<std::string, std::string>;  // axis → label, and "seed"
using Fill = std::function<void(const Coordinates& at, Row& row)>;

constexpr const char* kGrid = R"(
title = "T"
seeds = 5
[axis]
norm = ["a", "b", "c"]
task = ["p", "q", "r"]
depth = [1, 2, 4]
[names]
a = "Alpha"
[table]
rows = ["norm", "depth"]
columns = "task"
scores = ["bleu", "ter"]
best = { ter = "lowest" }
fail_below = 1
[[table.row]]
label = ["gain", "1"]
difference = [["a", 1], ["b", 1]]
[[table.row]]
label = ["loss", "1"]
difference = [["b", 1], ["c", 1]]
[[table.column]]
label = "mean"
mean = true
)";

/// a is above b by 1, 2, 3, 4, 5 on p, by as much below on q, and equal on r; depth adds 10 to each, by seed a little
/// more or less; ter is minus bleu.
double score_of(const Coordinates& at) {
  const int seed = std::stoi(at.at("seed"));
  const double own = at.at("norm") == "a" ? seed : 0;
  const double sign = at.at("task") == "p" ? 1 : at.at("task") == "q" ? -1 : 0;
  const double depth = std::stod(at.at("depth"));
  return 100 + 10 * seed + sign * own + 10 * depth + 0.001 * (seed - 3) * depth * depth;
}

class Checks : public testing::Test {
 protected:
  GridChecks check(
      const std::string& claims, const Fill& fill_row = [](const Coordinates&, Row&) {},
      const std::string& grid_text = kGrid) {
    test::write_text(folder_ / "grid.toml", grid_text + claims);
    const Grid grid = load_grid(folder_ / "grid.toml");
    std::vector<Row> rows;
    for (const Combination& point : runs_of(grid)) {
      Row& row = rows.emplace_back();
      Coordinates at = {{"seed", std::to_string(point.seed)}};
      for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
        row.run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[point.index[axis]].label);
        at.insert(row.run.coordinates.back());
      }
      row.run.id = row.trained = row.result.id = describe_combination(grid, point);
      row.run.seed = point.seed;
      row.result.state = RunState::kDone;
      row.result.scores = {{"bleu", score_of(at)}, {"ter", -score_of(at)}};
      fill_row(at, row);
    }
    std::erase_if(rows, [](const Row& row) { return row.run.id.empty(); });  // the sweep has no such run
    const std::vector<View> views = views_of(grid);
    const ResultSet results{.rows = rows};
    return check_grid(grid, views, tables_of(grid, views, rows), results, recorded_);
  }

  /// "p, 2: held".
  static std::vector<std::string> verdicts(const GridChecks& checks) {
    std::vector<std::string> all;
    for (const Check& one : checks.claims) {
      std::string place;
      for (const auto& [axis, label] : one.place) place += (place.empty() ? "" : ", ") + label;
      all.push_back(place + ": " + name_of(one.finding.verdict));
    }
    return all;
  }

  static std::string text(const GridChecks& checks, TableFormat format) {
    return render(sheets_of({checks}), format, 0);
  }

  test::TempFolder folder_;
  std::vector<RecordedLook> recorded_;
};

std::string claim(const std::string& lines, const std::string& text = "t") {
  return "[[claim]]\ntext = \"" + text + "\"\n" + lines;
}

TEST_F(Checks, HaveAVerdictAtEachPlaceThatTheCellsLeaveOpen) {
  EXPECT_THAT(verdicts(check(claim("better = [\"a\", \"b\"]\nwhere = { depth = 2 }\n"))),
              ElementsAre("2, p: held", "2, q: contradicted", "2, r: cannot tell"));
  EXPECT_THAT(verdicts(check(claim("better = [\"a\", \"b\"]\nwhere = { task = [\"q\", \"p\"], depth = [1, 4] }\n"))),
              ElementsAre("1, p: held", "1, q: contradicted", "4, p: held", "4, q: contradicted"));
  EXPECT_THAT(verdicts(check(claim("better = [[\"a\", 1], [\"b\", 1]]\n"))),
              ElementsAre("p: held", "q: contradicted", "r: cannot tell"));
  EXPECT_THAT(verdicts(check(claim("better = [[\"a\", 2, \"p\"], [\"a\", 1, \"p\"]]\n"))), ElementsAre(": held"));
}

TEST_F(Checks, NameCellsByLabelsByNamesInPrintAndByAxes) {
  const std::vector<std::string> one = verdicts(check(claim("better = [\"a\", \"b\"]\n")));
  EXPECT_EQ(verdicts(check(claim("better = [\"Alpha\", \"b\"]\n"))), one);
  EXPECT_EQ(verdicts(check(claim("better = [{ norm = \"a\" }, { norm = \"b\" }]\n"))), one);
  EXPECT_EQ(verdicts(check(claim("better = [{ depth = 2, norm = \"a\" }, { depth = 2, norm = \"b\" }]\n"))),
            verdicts(check(claim("better = [[2, \"a\"], [\"b\", \"2\"]]\n"))));
}

TEST_F(Checks, AreAboutAddedLinesOnlyWhereTheClaimSpeaksOfThem) {
  EXPECT_THAT(verdicts(check(claim("better = [[\"a\", 1], [\"b\", 1]]\nwhere = { task = [\"p\", \"mean\"] }\n"))),
              ElementsAre("p: held", "mean: cannot tell"));
  EXPECT_THAT(verdicts(check(claim("better = [\"p\", \"r\"]\nwhere = { depth = 1 }\n"))),
              ElementsAre("a, 1: held", "b, 1: cannot tell", "c, 1: cannot tell"));
  // gain − loss is 1 … 5 on p: b and c are equal.
  const GridChecks gains = check(claim("better = [[\"gain\", 1], [\"loss\", 1]]\npaired = false\n"));
  EXPECT_THAT(verdicts(gains), ElementsAre("p: held", "q: contradicted", "r: cannot tell"));
  EXPECT_TRUE(gains.claims[0].is_paired) << "both have runs of b";
  EXPECT_THAT(gains.claims[0].finding.n, ElementsAre(5));
}

TEST_F(Checks, AreAboutTheScoreAndTheTableThatTheClaimNames) {
  const std::string where = "where = { task = \"p\", depth = 1 }\n";
  EXPECT_EQ(check(claim("better = [\"a\", \"b\"]\n" + where)).claims[0].score, "bleu");
  const GridChecks lowest = check(claim("score = \"ter\"\nbetter = [\"a\", \"b\"]\n" + where));
  EXPECT_EQ(lowest.claims[0].score, "ter");
  EXPECT_EQ(lowest.claims[0].finding.verdict, ClaimVerdict::kHeld) << "a has the lower ter";
  const std::string turned =
      "[[table]]\ncaption = \"first\"\nrows = \"task\"\nscores = \"ter\"\n"
      "[[table]]\ncaption = \"second\"\nrows = \"norm\"\nscores = \"bleu\"\n";
  const std::string axes = "seeds = 5\n[axis]\nnorm = [\"a\", \"b\"]\ntask = [\"p\"]\ndepth = [1]\n";
  const GridChecks second = check(
      claim("table = \"second\"\nbetter = [\"a\", \"b\"]\n"), [](const Coordinates&, Row&) {}, axes + turned);
  EXPECT_EQ(second.claims[0].score, "bleu");
  EXPECT_EQ(second.claims[0].finding.verdict, ClaimVerdict::kHeld);
}

TEST_F(Checks, CompareCellsOfScoresOfTheirOwn) {
  const auto with_acc = [](const Coordinates& at, Row& row) {
    // Half of bleu, and one more for each seed.
    row.result.scores["acc"] = score_of(at) / 2 + std::stod(at.at("seed"));
  };
  const std::string grid = std::string(kGrid).replace(std::string(kGrid).find("\"ter\"]"), 6, "\"ter\", \"acc\"]");
  const auto checks = [&](const std::string& claim) {
    return check("[[claim]]\ntext = \"c\"\nwhere = { task = \"r\", depth = 1 }\n" + claim, with_acc, grid);
  };
  // bleu of row a, task r, depth 1 is 110 + 10 seed, acc 55 + 6 seed.
  const GridChecks better = checks("better = [\"a\", \"a\"]\nscores = [\"bleu\", \"acc\"]\n");
  EXPECT_THAT(verdicts(better), ElementsAre("1, r: held"));
  EXPECT_NEAR(*better.claims[0].finding.estimate, 55 + 4 * 3, 1e-9);
  EXPECT_EQ(better.claims[0].score, "bleu, acc");
  EXPECT_TRUE(better.claims[0].is_paired);
  EXPECT_THAT(verdicts(checks("worse = [\"a\", \"a\"]\nscores = [\"bleu\", \"acc\"]\n")),
              ElementsAre("1, r: contradicted"));
  EXPECT_THAT(verdicts(checks("ratio = [\"a\", \"a\"]\nbetween = [1.8, 2.0]\nscores = [\"bleu\", \"acc\"]\n")),
              ElementsAre("1, r: held"));
  const GridChecks three = checks("better = [\"a\", \"a\", \"b\"]\nscores = [\"bleu\", \"acc\", \"bleu\"]\n");
  EXPECT_THAT(verdicts(three), ElementsAre("1, r: contradicted"));
  EXPECT_THAT(three.claims[0].finding.reason, HasSubstr("Alpha, acc and b, bleu"));
  try {
    checks("better = [\"a\", \"a\"]\nscores = [\"bleu\", \"ter\"]\n");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("the claim \"c\" compares bleu and ter, of which the highest is best of one and "
                          "the lowest of another"));
  }
  EXPECT_THAT(verdicts(checks("equivalent = [\"a\", \"a\"]\nwithin = \"300 %\"\nscores = [\"bleu\", \"ter\"]\n")),
              ElementsAre("1, r: held"))
      << "which says no order";
}

TEST_F(Checks, ArePairedBySeedUnlessTheClaimSaysWhereNot) {
  // Seeds differ by 10: only within them does the difference show.
  EXPECT_THAT(verdicts(check(claim("better = [[\"a\", 1], [\"b\", 1]]\npaired = false\n"))),
              ElementsAre("p: cannot tell", "q: cannot tell", "r: cannot tell"));
  const GridChecks some = check(claim("better = [[\"a\", 1], [\"b\", 1]]\npaired = { task = \"p\" }\n"));
  EXPECT_THAT(verdicts(some), ElementsAre("p: held", "q: cannot tell", "r: cannot tell"));
  EXPECT_THAT(some.claims[1].finding.n, ElementsAre(5, 5));
  EXPECT_THAT(
      text(some, TableFormat::kText),
      HasSubstr("Intervals are of the differences within seeds; on q, r they are Welch's, of independent means.\n"));
}

TEST_F(Checks, ShowNumbersWhereNothingIsClaimed) {
  const GridChecks checks =
      check(claim("better = [[\"a\", 1], [\"b\", 1]]\nnot_claimed = { task = [\"q\", \"r\"] }\n"));
  EXPECT_THAT(verdicts(checks), ElementsAre("p: held", "q: not claimed", "r: not claimed"));
  EXPECT_EQ(checks.claims[1].shown, "−3.0 (−5.0 … −1.0)");
  EXPECT_THAT(verdicts(check(claim("better = [[\"a\", 1], [\"b\", 1]]\nnot_claimed = true\n"))),
              ElementsAre("p: not claimed", "q: not claimed", "r: not claimed"));
}

TEST_F(Checks, HaveTheDigitsThatTheTableGivesAndMoreWhereAnEndWouldReadAsZero) {
  std::string grid = kGrid;
  grid.insert(grid.find("fail_below"), "decimals = 0\n");
  const std::string of = claim("better = [[\"a\", 1], [\"b\", 1]]\nwhere = { task = \"p\" }\n");
  EXPECT_EQ(check(
                of, [](const Coordinates&, Row&) {}, grid)
                .claims[0]
                .shown,
            "+3 (+1 … +5)");
  const auto raise = [](const Coordinates& at, Row& row) {
    if (at.at("norm") == "b") row.result.scores["bleu"] += 1.3;
  };
  EXPECT_EQ(check(of, raise, grid).claims[0].shown, "+1.7 (−0.3 … +3.7)");
}

TEST_F(Checks, CountFailedRunsAndSayWhichAreMissing) {
  const auto behave = [](const Coordinates& at, Row& row) {
    if (at.at("norm") != "b" || at.at("depth") != "1") return;
    if (at.at("task") == "p") row.result.scores["bleu"] = 0;  // below fail_below
    if (at.at("task") == "q") row.result.state = RunState::kDiverged;
    if (at.at("task") == "r" && at.at("seed") == "3") row.result.state.reset();
  };
  EXPECT_THAT(verdicts(check(claim("fails = [[\"b\", 1]]\n"), behave)),
              ElementsAre("p: held", "q: held", "r: not tested"));
  EXPECT_THAT(verdicts(check(claim("trains = [[\"a\", 1]]\n"), behave)), ElementsAre("p: held", "q: held", "r: held"));
  const GridChecks order = check(claim("better = [[\"a\", 1], [\"b\", 1]]\n"), behave);
  EXPECT_THAT(verdicts(order), ElementsAre("p: held", "q: held", "r: not tested"));
  EXPECT_EQ(order.claims[0].finding.reason, "0/5 of Alpha, depth = 1 and 5/5 of b, depth = 1 failed");
  EXPECT_EQ(order.claims[2].finding.reason, "1/5 of b, depth = 1 missing");
  const auto crash = [](const Coordinates& at, Row& row) {
    if (at.at("norm") == "b") row.result.state = RunState::kFailed;
  };
  EXPECT_THAT(verdicts(check(claim("fails = [[\"b\", 1]]\n"), crash)),
              ElementsAre("p: not tested", "q: not tested", "r: not tested"))
      << "a run that crashed says nothing of the network";
}

TEST_F(Checks, OfTheBestCompareAllRowsOrSome) {
  const auto raise = [](const Coordinates& at, Row& row) {
    if (at.at("norm") == "c") row.result.scores["bleu"] += 50 + 0.1 * static_cast<double>(row.run.seed);
  };
  EXPECT_THAT(verdicts(check(claim("best = \"a\"\nwhere = { depth = 1, task = \"p\" }\n"), raise)),
              ElementsAre("1, p: contradicted"));
  EXPECT_THAT(verdicts(check(claim("best = \"a\"\nof = [\"b\"]\nwhere = { depth = 1, task = \"p\" }\n"), raise)),
              ElementsAre("1, p: held"));
  EXPECT_THAT(verdicts(check(claim("best = \"c\"\nwhere = { depth = 1, task = \"p\" }\n"), raise)),
              ElementsAre("1, p: held"));
}

TEST_F(Checks, OfTheBestAndOfALineSkipWhatTheGridLeavesOut) {
  const std::string exclude =
      "[[exclude]]\nwhen = { norm = \"c\", task = \"p\" }\nwhy = \"w\"\n"
      "[[exclude]]\nwhen = { depth = 4, task = \"p\" }\nwhy = \"w\"\n";
  EXPECT_THAT(verdicts(check(exclude + claim("best = \"a\"\nwhere = { depth = 1, task = \"p\" }\n"))),
              ElementsAre("1, p: held"));
  const GridChecks slope =
      check(exclude + claim("slope = \"a\"\nover = \"depth\"\ndirection = \"up\"\nwhere = { task = \"p\" }\n"));
  EXPECT_THAT(verdicts(slope), ElementsAre("p: held"));
  // Cells that the claim itself names are another matter.
  const GridChecks order = check(exclude + claim("better = [\"a\", \"c\"]\nwhere = { depth = 1, task = \"p\" }\n"));
  EXPECT_THAT(verdicts(order), ElementsAre("1, p: not tested"));
  EXPECT_EQ(order.claims[0].finding.reason, "the grid has no run of c");
}

TEST_F(Checks, OfALineTakeTheLabelsOfAnAxisAsNumbers) {
  const GridChecks slope = check(claim("slope = \"a\"\nover = \"depth\"\ndirection = \"up\"\n"));
  EXPECT_THAT(verdicts(slope), ElementsAre("p: held", "q: held", "r: held"));
  EXPECT_NEAR(*slope.claims[0].finding.estimate, 10, 1e-9);
  EXPECT_THAT(verdicts(check(claim("slope = \"a\"\nover = \"depth\"\ndirection = \"down\"\n"))),
              ElementsAre("p: contradicted", "q: contradicted", "r: contradicted"));
  EXPECT_THAT(verdicts(check(claim("linear = \"a\"\nover = \"depth\"\nr2 = 0.99\n"))),
              ElementsAre("p: held", "q: held", "r: held"));
  const auto jump = [](const Coordinates& at, Row& row) {
    if (at.at("depth") == "2") row.result.scores["bleu"] += 1000;
  };
  EXPECT_THAT(verdicts(check(claim("linear = \"a\"\nover = \"depth\"\nr2 = 0.99\n"), jump)),
              ElementsAre("p: contradicted", "q: contradicted", "r: contradicted"));
  EXPECT_EQ(verdicts(check(claim("ratio = [[\"a\", 1], [\"b\", 1]]\nbetween = [0.9, 1.1]\n"))).front(), "p: held");
}

TEST_F(Checks, ARatioThatIsNot0IsNotPrintedAs0) {
  const auto shown = [&](double factor) {
    const auto tiny = [=](const Coordinates& at, Row& row) {
      row.result.scores["ter"] = (at.at("norm") == "a" ? factor : 1.0) * 8;
    };
    return check(claim("score = \"ter\"\nratio = [[\"a\", 1], [\"b\", 1]]\nbetween = [0, 0.1]\n"), tiny)
        .claims[0]
        .shown;
  };
  EXPECT_THAT(shown(0.04), testing::StartsWith("0.040"));
  EXPECT_THAT(shown(4e-5), testing::StartsWith("0.00004"));
  EXPECT_THAT(shown(4e-6), testing::StartsWith("0.000004"));
}

TEST_F(Checks, AreBrokenIntoLinesThatTheTerminalHas) {
  const GridChecks checks =
      check(claim("source = { text = \"Q 2017, 3.2\", latex = \"\\\\cite{q}\" }\nbetter = [[\"a\", 1], [\"b\", 1]]\n",
                  "a norm of this kind is better than one of that kind wherever it stands"));
  const std::string text = render(sheets_of({checks}), TableFormat::kText, 80);
  for (const std::string_view line : split_lines(text)) EXPECT_LE(display_width(line), 80u) << line;
  EXPECT_THAT(text, HasSubstr("\na norm of this       held: +3.0 (+1.0   contradicted:"));
  EXPECT_THAT(text, HasSubstr("\n  kind is better"));
  EXPECT_THAT(text, HasSubstr("Sources: Q 2017, 3.2.\n"));
  EXPECT_THAT(this->text(checks, TableFormat::kLatex), HasSubstr("Sources: \\cite{q}.\\par"));
}

TEST_F(Checks, ArePrintedAsAMatrixOfClaimsAndPlaces) {
  const GridChecks checks =
      check(claim("name = \"K1\"\nsource = \"paper, 2\"\nbetter = [[\"a\", 1], [\"b\", 1]]\n", "a is better") +
            claim("worse = [[\"a\", 1], [\"b\", 1]]\nwhere = { task = [\"r\", \"q\"] }\n", "a is worse") +
            claim("equivalent = [[\"a\", 2, \"p\"], [\"b\", 2, \"p\"]]\nwithin = \"0.5 BLEU\"\n", "a_b *same*"));
  EXPECT_EQ(text(checks, TableFormat::kText), R"(Claims: T, by task

Claim                                   p                          q                                  r
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
K1 a is better (bleu): held at 1 of 3   held: +3.0 (+1.0 … +5.0)   contradicted: −3.0 (−5.0 … −1.0)   cannot tell: +0 (+0 … +0)
a is worse (bleu): held at 1 of 2                                  held: +3.0 (+1.0 … +5.0)           cannot tell: +0 (+0 … +0)
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
better: by how much it is better, with its 95 % interval.
worse: by how much it is worse, with its 95 % interval.
Intervals are of the differences within seeds.
n = 5: the seeds of each verdict.
Of 5 verdicts at 5 % each, about 0.25 would be wrong if all cells were equal.
Sources: K1: paper, 2.

Claims: T

Claim                          Verdict
───────────────────────────────────────────────────────────────
a_b *same* (within 0.5 bleu)   contradicted: +3.0 (+1.5 … +4.5)
───────────────────────────────────────────────────────────────
equivalent: the difference with its 90 % interval, which must be inside the claim's limits.
Intervals are of the differences within seeds.
n = 5: the seeds of each verdict.

Verdicts

         held   contradicted   cannot tell   not tested   not claimed
─────────────────────────────────────────────────────────────────────
claims   2      2              2             0            0
─────────────────────────────────────────────────────────────────────
)");
}

TEST_F(Checks, OfANumberOfParametersAreExactOnlyAmongSuchNumbers) {
  const auto grid = [](const std::string& scores) {
    return "title = \"T\"\nseeds = 2\n[axis]\nnorm = [\"a\", \"b\"]\ntask = [\"p\"]\ndepth = [1]\n[table]\nrows = "
           "\"norm\"\n"
           "scores = [\"parameters\", \"bleu\"]\n" +
           claim("better = [\"a\", \"b\"]\nscores = " + scores + "\n");
  };
  const auto constant = [](const Coordinates& at, Row& row) {
    row.result.scores = {{"parameters", at.at("norm") == "a" ? 200 : 100}, {"bleu", 50}};
  };
  EXPECT_THAT(verdicts(check("", constant, grid("[\"parameters\", \"parameters\"]"))), ElementsAre("p, 1: held"));
  EXPECT_THAT(verdicts(check("", constant, grid("[\"parameters\", \"bleu\"]"))), ElementsAre("p, 1: cannot tell"));
}

TEST_F(Checks, SayOfHowManySeedsTheyAreWhereThatIsNotTheSame) {
  const GridChecks checks = check(claim("better = [[\"a\", 1], [\"b\", 1]]\n"), [](const Coordinates& at, Row& row) {
    if (at.at("task") == "p" && at.at("norm") == "b" && at.at("seed") == "5") row.result.state = RunState::kDiverged;
    if (at.at("task") == "p" && at.at("norm") == "a" && at.at("seed") == "4") row.result.state = RunState::kDiverged;
  });
  const std::string text = this->text(checks, TableFormat::kText);
  EXPECT_THAT(text, HasSubstr(", n = 3   contradicted: −3.0 (−5.0 … −1.0), n = 5   "));
  EXPECT_THAT(text, Not(HasSubstr("the seeds of each verdict")));
}

TEST_F(Checks, HaveBoldVerdictsWhereTheFormatHasBoldText) {
  const GridChecks checks = check(claim("better = [[\"a\", 1], [\"b\", 1]]\n"));
  EXPECT_THAT(text(checks, TableFormat::kMarkdown),
              HasSubstr("| t (bleu): held at 1 of 3 | **held**: +3.0 (+1.0 … +5.0) | **contradicted**: −3.0"));
  EXPECT_THAT(text(checks, TableFormat::kMarkdown), HasSubstr(" | cannot tell: +0 (+0 … +0) |"));
  EXPECT_THAT(
      text(checks, TableFormat::kLatex),
      HasSubstr(
          "t (bleu): held at 1 of 3 & \\textbf{held}: +3.0 (+1.0 \\dots{} +5.0) & \\textbf{contradicted}: $-$3.0"));
  EXPECT_THAT(text(checks, TableFormat::kHtml), HasSubstr("<td title=\"\"><b>held</b>: +3.0 (+1.0 … +5.0)</td>"));
  EXPECT_THAT(text(checks, TableFormat::kText), Not(HasSubstr("*")));
}

TEST_F(Checks, AreARecordForEachClaimAndPlaceInCsvAndJson) {
  const GridChecks checks = check(claim("name = \"K1\"\nbetter = [[\"a\", 1], [\"b\", 1]]\n", "a is better, by far"));
  const std::string csv = render_csv({checks}, Formulas::kAsTheyAre);
  EXPECT_THAT(csv, HasSubstr("grid,name,text,source,kind,score,limit,place,verdict,estimate,low,high,n,level,look,"
                             "looks,seeds,reason,unit,caveats,declared,hash\n"
                             "T,K1,\"a is better, by far\",,better,bleu,,task=p,held,3,1.03"));
  const json all = json_of({checks});
  ASSERT_EQ(all.at("claims").size(), 3u);
  const json& first = all.at("claims").at(0);
  EXPECT_EQ(first.at("place"), json({{"task", "p"}}));
  EXPECT_EQ(first.at("verdict"), "held");
  EXPECT_NEAR(first.at("low"), 3 - 1.9632, 1e-3);
  EXPECT_EQ(first.at("n"), json({5}));
  EXPECT_EQ(all.at("counts").at("claims"),
            json({{"held", 1}, {"contradicted", 1}, {"cannot tell", 1}, {"not tested", 0}, {"not claimed", 0}}));
}

/// The words of the caveats of the first claim.
std::vector<std::string> caveats_of(const GridChecks& checks) {
  std::vector<std::string> words;
  for (const Caveat& caveat : checks.claims.at(0).caveats) words.push_back(caveat.word);
  return words;
}

TEST_F(Checks, CarryWhatTheTableSaysOfTheirCells) {
  const std::string better = claim("better = [[\"a\", 1], [\"b\", 1]]\nwhere = { task = \"p\" }\n");
  EXPECT_THAT(caveats_of(check(better)), IsEmpty());
  const auto only_b = [](const Coordinates& at) { return at.at("norm") == "b" && at.at("depth") == "1"; };
  const GridChecks stale = check(better, [&](const Coordinates& at, Row& row) {
    if (only_b(at)) row.result.stale = "of numerics 1";
  });
  EXPECT_THAT(caveats_of(stale), ElementsAre("stale"));
  EXPECT_THAT(text(stale, TableFormat::kText),
              AllOf(HasSubstr("held: +3.0 (+1.0 … +5.0); stale"), HasSubstr("\nstale: of numerics 1.\n")));
  EXPECT_EQ(json_of({stale}).at("claims").at(0).at("caveats"), json({"stale"}));
  EXPECT_THAT(render_csv({stale}, Formulas::kAsTheyAre), HasSubstr(",bleu,stale,,"));
  // Each cell is of one machine, and the two are not.
  EXPECT_THAT(caveats_of(check(better,
                               [&](const Coordinates& at, Row& row) {
                                 row.result.trained_on = {at.at("norm") == "a" ? "cpu, Zen" : "cpu, Skylake"};
                               })),
              ElementsAre("mixed"));
  EXPECT_THAT(caveats_of(check(better,
                               [&](const Coordinates& at, Row& row) {
                                 if (only_b(at)) row.result.trained_by = {row.run.seed == 1 ? "one" : "two"};
                               })),
              ElementsAre("mixed"));
  const GridChecks added = check(better, [&](const Coordinates& at, Row& row) {
    row.known_since = "2026-01-01T10:00:00Z";
    row.sweeps = {"second"};
    row.result.attempts.resize(1);
    row.result.attempts[0].ended_at = "2026-01-02T10:00:00Z";
    if (at.at("seed") == "5") {
      row.known_since = "2026-01-03T10:00:00Z";
    } else {
      row.sweeps.insert("first");
    }
  });
  EXPECT_THAT(caveats_of(added), ElementsAre("added seeds"));
  EXPECT_THAT(text(added, TableFormat::kText),
              HasSubstr("added seeds: seed 5 was added on 2026-01-03, after results with 4 existed: the true "
                        "level of a comparison at 5 % is up to 7.4 %"));
}

TEST_F(Checks, OfCellsThatWereChosenOrAveragedSayHow) {
  const auto grid = [](const std::string& table) {
    return "title = \"T\"\nseeds = 3\n[axis]\nnorm = [\"a\", \"b\"]\ntask = [\"p\", \"q\"]\ndepth = [1, 2]\n"
           "[[exclude]]\nwhen = { norm = \"b\", task = \"q\" }\nwhy = \"w\"\n[table]\nrows = \"norm\"\ncolumns = "
           "\"depth\"\n" +
           table;
  };
  const auto nothing = [](const Coordinates&, Row&) {};
  const std::string better = claim("better = [\"a\", \"b\"]\nwhere = { depth = 1 }\n");
  EXPECT_THAT(caveats_of(check(better, nothing, grid("average = \"task\"\nscores = \"bleu\"\n"))),
              ElementsAre("unequal averages"));
  EXPECT_THAT(caveats_of(check(claim("better = [[\"a\", 2], [\"a\", 1]]\n"), nothing,
                               grid("average = \"task\"\nscores = \"bleu\"\n"))),
              IsEmpty());
  const auto select = [](const std::string& by) {
    return "select = { over = \"task\", by = \"" + by + "\" }\nscores = \"bleu\"\n";
  };
  EXPECT_THAT(caveats_of(check(better, nothing, grid(select("bleu")))), ElementsAre("chosen by a reported score"));
  EXPECT_THAT(caveats_of(check(better, nothing, grid(select("ter")))), IsEmpty());
  const auto with_test = [](const Coordinates&, Row& row) { row.result.scores["test.acc"] = 1; };
  EXPECT_THAT(caveats_of(check(better, with_test, grid(select("test.acc")))),
              ElementsAre("chosen by a reported score"));
}

TEST_F(Checks, HaveNoPlaceWhereTheGridLeavesOutACellThatTheClaimNames) {
  const std::string exclude = "[[exclude]]\nwhen = { norm = \"b\", task = \"q\" }\nwhy = \"w\"\n";
  const std::string where = "where = { depth = 1 }\n";
  EXPECT_THAT(verdicts(check(exclude + claim("better = [\"a\", \"b\"]\n" + where))),
              ElementsAre("1, p: held", "1, r: cannot tell"));
  EXPECT_THAT(verdicts(check(exclude + claim("trains = [\"a\", \"b\"]\n" + where))),
              ElementsAre("1, p: held", "1, r: held"));
  EXPECT_THAT(verdicts(check(exclude + claim("better = [\"b\", \"c\"]\nwhere = { depth = 1, task = \"q\" }\n"))),
              ElementsAre("1, q: not tested"))
      << "no claim is without a verdict";
}

TEST_F(Checks, NameCellsThatAreOutsideOfTheirTolerance) {
  // Means on p at depth 1: a 100 + 30 + 3 + 10, b 140.
  const std::string grid =
      "title = \"T\"\nseeds = 5\n[axis]\nnorm = [\"a\", \"b\"]\ntask = [\"p\"]\ndepth = [1]\n"
      "[table]\nrows = \"norm\"\nscores = [\"bleu\", \"ter\"]\n";
  const auto nothing = [](const Coordinates&, Row&) {};
  const auto published = [](const std::string& tolerance, const std::string& score, double sign) {
    return "[[table.published]]\nsource = \"s\"\nscore = \"" + score + "\"\ntolerance = " + tolerance +
           "\nvalues = [[" + std::to_string(sign * 143.5) + "], [" + std::to_string(sign * 141.5) + "]]\n";
  };
  const GridChecks checks = check(published("1", "bleu", 1), nothing, grid);
  EXPECT_EQ(counts_of({checks}).cells, (VerdictCounts{1, 1, 0, 0, 0}));
  EXPECT_THAT(text(checks, TableFormat::kText),
              HasSubstr("Outside of their tolerance: T\n\nCell         measured [published]   tolerance\n"));
  EXPECT_THAT(text(checks, TableFormat::kText), HasSubstr("T: b, p, 1   140 ± 16 [141.5, −2]   1\n"));
  EXPECT_THAT(text(checks, TableFormat::kText), Not(HasSubstr("T: a")));
  EXPECT_EQ(json_of({checks}).at("cells").at(1).at("estimate"), -1.5);
  EXPECT_EQ(counts_of({check(published("2", "bleu", 1), nothing, grid)}).cells, (VerdictCounts{2, 0, 0, 0, 0}));
  EXPECT_EQ(counts_of({check(published("{ ter = 0.6, bleu = 0.1 }", "ter", -1), nothing, grid)}).cells,
            (VerdictCounts{1, 1, 0, 0, 0}));
  EXPECT_EQ(counts_of({check(published("{ bleu = 0.1 }", "ter", -1), nothing, grid)}).cells, VerdictCounts{});
  const auto missing = [](const Coordinates& at, Row& row) {
    if (at.at("seed") == "1") row.result.state.reset();
  };
  EXPECT_EQ(counts_of({check(published("1", "bleu", 1), missing, grid)}).cells, (VerdictCounts{0, 0, 0, 2, 0}));
}

TEST_F(Checks, ACellExactlyAtItsToleranceIsInside) {
  for (const double sign : {1.0, -1.0}) {
    for (const auto& [measured, published, tolerance, is_inside] : {std::tuple(50.0, 49.9, 0.1, true),
                                                                    {49.9, 50.0, 0.1, true},
                                                                    {0.3, 0.1, 0.2, true},
                                                                    {28.4, 28.1, 0.3, true},
                                                                    {50.0, 49.9, 0.0999, false},
                                                                    {50.0, 49.8999, 0.1, false},
                                                                    {1e-3, 9e-4, 1e-4, true}}) {
      const auto scored = [value = sign * measured](const Coordinates&, Row& row) {
        row.result.scores["bleu"] = value;
      };
      const GridChecks checks =
          check(fmt::format("[[table.published]]\nsource = \"s\"\ntolerance = {}\nvalues = [[{}]]\n", tolerance,
                            sign * published),
                scored,
                "title = \"T\"\nseeds = 5\n[axis]\nnorm = [\"a\"]\ntask = [\"p\"]\ndepth = [1]\n"
                "[table]\nrows = \"norm\"\nscores = \"bleu\"\n");
      EXPECT_EQ(counts_of({checks}).cells, is_inside ? (VerdictCounts{1, 0, 0, 0, 0}) : (VerdictCounts{0, 1, 0, 0, 0}))
          << sign * measured << " beside " << sign * published << ", tolerance " << tolerance;
    }
  }
}

TEST_F(Checks, OfALineAreNotTestedWhereTheGridLeavesTooFewPoints) {
  // The first point is left out like any other.
  const auto exclude = [](const std::string& depths) {
    return "[[exclude]]\nwhen = { norm = \"a\", depth = [" + depths + "], task = \"p\" }\nwhy = \"w\"\n";
  };
  const auto line = [&](const std::string& depths, const std::string& kind) {
    const GridChecks checks = check(exclude(depths) + claim(kind + "where = { task = \"p\" }\n"));
    EXPECT_EQ(checks.claims.size(), 1u);
    const Finding& finding = checks.claims.at(0).finding;
    return std::string(name_of(finding.verdict)) + (finding.reason.empty() ? "" : ": " + finding.reason);
  };
  const std::string slope = "slope = \"a\"\nover = \"depth\"\ndirection = \"up\"\n";
  const std::string linear = "linear = \"a\"\nover = \"depth\"\nr2 = 0.9\n";
  EXPECT_EQ(line("1", slope), "held");
  EXPECT_EQ(line("4", slope), "held");
  EXPECT_EQ(line("1, 2", slope), "not tested: the grid has 1 point there, and slope needs 2");
  EXPECT_EQ(line("2, 4", slope), "not tested: the grid has 1 point there, and slope needs 2");
  EXPECT_EQ(line("1, 2, 4", slope), "not tested: the grid has no run there");
  EXPECT_EQ(line("1", linear), "not tested: the grid has 2 points there, and linear needs 3");
  EXPECT_EQ(line("2", linear), "not tested: the grid has 2 points there, and linear needs 3");
  EXPECT_EQ(line("1, 4", linear), "not tested: the grid has 1 point there, and linear needs 3");
}

TEST_F(Checks, OfTheBestAreNotTestedWhereTheGridHasNoOther) {
  const std::string exclude = "[[exclude]]\nwhen = { norm = [\"b\", \"c\"], task = \"p\" }\nwhy = \"w\"\n";
  const GridChecks best = check(exclude + claim("best = \"a\"\nwhere = { depth = 1, task = [\"p\", \"q\"] }\n"));
  EXPECT_THAT(verdicts(best), ElementsAre("1, p: not tested", "1, q: contradicted"));
  EXPECT_EQ(best.claims[0].finding.reason, "the grid has 1 cell there, and best needs 2");
  // The claimed cell is no such other.
  const GridChecks itself = check("[[exclude]]\nwhen = { norm = \"a\", task = \"p\" }\nwhy = \"w\"\n" +
                                  claim("best = \"a\"\nwhere = { depth = 1, task = \"p\" }\n"));
  EXPECT_EQ(itself.claims.at(0).finding.reason, "the grid has no run of Alpha");
}

TEST_F(Checks, AreNotTestedWhereTheGridHasNoRunAtAnyPlaceOfTheClaim) {
  const std::string exclude = "[[exclude]]\nwhen = { norm = [\"a\", \"b\"], task = [\"p\", \"q\"] }\nwhy = \"w\"\n";
  for (const std::string kind : {"better = [\"a\", \"b\"]\n", "fails = \"a\"\n", "best = \"a\"\nof = [\"b\"]\n"}) {
    const GridChecks none = check(exclude + claim(kind + "where = { depth = 1, task = [\"q\", \"p\"] }\n"));
    EXPECT_THAT(verdicts(none), ElementsAre("1, p: not tested", "1, q: not tested")) << kind;
    EXPECT_EQ(none.claims.at(0).finding.reason, "the grid has no run there");
    EXPECT_EQ(none.claims.at(0).score, "bleu");
    EXPECT_THAT(text(none, TableFormat::kText), HasSubstr("not tested: the grid has no run there"));
  }
  EXPECT_THAT(verdicts(check(exclude + claim("better = [\"a\", \"b\"]\nwhere = { depth = 1 }\n"))),
              ElementsAre("1, r: cannot tell"))
      << "what the grid leaves out is no place";
  const GridChecks some = check(exclude + claim("fails = [[\"a\", 1]]\nwhere = { task = [\"p\", \"q\"] }\n"
                                                "not_claimed = { task = \"q\" }\n"));
  EXPECT_THAT(verdicts(some), ElementsAre("p: not tested", "q: not claimed"));
  // The table has both labels, and no line with the two: no place at all.
  EXPECT_THAT(verdicts(check(claim("better = [\"p\", \"r\"]\nwhere = { norm = \"gain\", depth = 2 }\n"))),
              ElementsAre(": not tested"));
}

TEST_F(Checks, OfFailuresSayWhatTheirTableCountsAsOne) {
  const auto note = [&](const std::string& from, const std::string& to, const std::string& kind) {
    std::string grid = kGrid;
    if (!from.empty()) grid.replace(grid.find(from), from.size(), to);
    return text(check(
                    claim(kind + " = [[\"b\", 1]]\n"), [](const Coordinates&, Row&) {}, grid),
                TableFormat::kText);
  };
  EXPECT_THAT(note("", "", "fails"), HasSubstr("test at 5 %; failed: diverged or below 1.\n"));
  EXPECT_THAT(note("", "", "trains"), HasSubstr("test at 5 %; failed: diverged or below 1.\n"));
  EXPECT_THAT(note("fail_below = 1\n", "", "fails"), HasSubstr("test at 5 %; failed: diverged.\n"));
  EXPECT_THAT(note("fail_below = 1\n", "diverged = \"counted\"\nfail_below = 2.5\n", "trains"),
              HasSubstr("test at 5 %; failed: diverged without a score or below 2.5.\n"));
  EXPECT_THAT(text(check(claim("better = [\"a\", \"b\"]\n")), TableFormat::kText), Not(HasSubstr("failed:")));
}

// One column of two cells, whose means are 143 and 140.
constexpr const char* kTwoCells =
    "title = \"T\"\nseeds = 5\n[axis]\nnorm = [\"a\", \"b\"]\ntask = [\"p\"]\ndepth = [1]\n"
    "[table]\nrows = \"norm\"\nscores = \"bleu\"\nfail_below = 1\n";

TEST_F(Checks, OfToleranceCountFailedRunsAsTheClaimsDo) {
  const std::string published = "[[table.published]]\nsource = \"s\"\ntolerance = 20\nvalues = [[143], [140]]\n";
  const auto finding = [&](const std::function<bool(int seed)>& hits, const std::function<void(Row&)>& change) {
    const auto fill_row = [&](const Coordinates& at, Row& row) {
      if (at.at("norm") == "b" && hits(row.run.seed)) change(row);
    };
    const GridChecks checks = check(published, fill_row, kTwoCells);
    EXPECT_EQ(checks.cells.at(0).finding.verdict, ClaimVerdict::kHeld);
    const Finding& of = checks.cells.at(1).finding;
    return std::string(name_of(of.verdict)) + (of.reason.empty() ? "" : ": " + of.reason);
  };
  const auto all = [](int) { return true; };
  const auto two = [](int seed) { return seed <= 2; };
  const auto diverge = [](Row& row) { row.result.state = RunState::kDiverged; };
  const auto fall = [](Row& row) { row.result.scores["bleu"] = 0.5; };
  EXPECT_EQ(finding(all, diverge), "contradicted: 5/5 failed");
  EXPECT_EQ(finding(all, fall), "contradicted: 5/5 failed");
  EXPECT_EQ(finding(two, diverge), "cannot tell: 2/5 failed");
  EXPECT_EQ(finding(two, fall), "cannot tell: 2/5 failed");
  EXPECT_EQ(finding(two, [](Row& row) { row.result.state = RunState::kFailed; }), "not tested: 2/5 missing");
  EXPECT_EQ(finding(all, [](Row& row) { row.result.state = RunState::kFailed; }), "not tested: 5/5 missing");
  EXPECT_EQ(finding(two, [](Row& row) { row.result.scores.erase("bleu"); }), "not tested: 2/5 missing");
  EXPECT_EQ(finding(two, [](Row& row) { row.result.state.reset(); }), "not tested: 2/5 missing");
  EXPECT_EQ(finding(all,
                    [&](Row& row) {
                      diverge(row);
                      if (row.run.seed == 3) row.result.state.reset();
                    }),
            "not tested: 1/5 missing")
      << "it may train";
}

TEST_F(Checks, OfToleranceAreOneForEachSource) {
  const auto published = [](const std::string& source, const std::string& tolerance, const std::string& values) {
    return "[[table.published]]\nsource = \"" + source + "\"\n" + tolerance + "values = " + values + "\n";
  };
  const auto nothing = [](const Coordinates&, Row&) {};
  const GridChecks both = check(published("first", "tolerance = 1\n", "[[143.5], [140]]") +
                                    published("second", "tolerance = 2\n", "[[146], [141]]"),
                                nothing, kTwoCells);
  EXPECT_EQ(counts_of({both}).cells, (VerdictCounts{3, 1, 0, 0, 0}));
  EXPECT_EQ(both.cells.at(1).source.text, "second");
  EXPECT_DOUBLE_EQ(*both.cells.at(1).finding.estimate, -3);
  EXPECT_THAT(text(both, TableFormat::kText), HasSubstr("T: a, p, 1 (second)   143 ± 17 [146.0, −3]   2\n"));
  const GridChecks last =
      check(published("first", "", "[[0], [0]]") + published("second", "tolerance = 2\n", "[[144], [\"fail\"]]"),
            nothing, kTwoCells);
  EXPECT_EQ(counts_of({last}).cells, (VerdictCounts{1, 0, 0, 0, 0}));
  const GridChecks first =
      check(published("first", "tolerance = 2\n", "[[144], [144]]") + published("second", "", "[[0], [0]]"), nothing,
            kTwoCells);
  EXPECT_EQ(counts_of({first}).cells, (VerdictCounts{1, 1, 0, 0, 0}));
}

// a has the mean 143; five runs predict another one within 52.9032, the mean of three within 35.2688; b 140 within
// 48.0942 (scipy 1.17).
TEST_F(Checks, OfAPredictionAreBySpreadAndSeeds) {
  const auto nothing = [](const Coordinates&, Row&) {};
  const auto published = [](const std::string& tolerance, const std::string& values) {
    return "[[table.published]]\nsource = \"s\"\ntolerance = " + tolerance + "\nvalues = " + values + "\n";
  };
  const auto finding = [&](const std::string& keys, const std::string& value) {
    return check(published("{ prediction = true, " + keys + " }", "[[" + value + "], [\"\"]]"), nothing, kTwoCells)
        .cells.at(0)
        .finding;
  };
  const auto verdict = [&](const std::string& keys, const std::string& value) { return finding(keys, value).verdict; };
  EXPECT_EQ(verdict("at_most = 52.91", "195.90"), ClaimVerdict::kHeld);
  EXPECT_EQ(verdict("at_most = 52.91", "195.91"), ClaimVerdict::kContradicted);
  EXPECT_EQ(verdict("at_most = 52.91", "90.09"), ClaimVerdict::kContradicted);
  EXPECT_EQ(verdict("at_most = 0.5", "195.91"), ClaimVerdict::kContradicted) << "however wide the interval is";
  EXPECT_EQ(verdict("at_most = 52.90", "143"), ClaimVerdict::kCannotTell);
  EXPECT_EQ(finding("at_most = 52.90", "143").reason, "too few seeds");
  EXPECT_NEAR(finding("at_most = 52.90", "143").interval->second, 52.90319279690007, 1e-10);
  EXPECT_NEAR(finding("at_most = 52.90", "143").interval->first, -52.90319279690007, 1e-10);
  EXPECT_EQ(verdict("at_most = 35.27, runs = 3", "178.26"), ClaimVerdict::kHeld);
  EXPECT_EQ(verdict("at_most = 35.27, runs = 3", "178.27"), ClaimVerdict::kContradicted);
  EXPECT_EQ(verdict("at_most = 35.26, runs = 3", "178.26"), ClaimVerdict::kCannotTell);
}

TEST_F(Checks, OfAPredictionAreInTheUnitOfTheTable) {
  std::string grid = kTwoCells;
  grid.replace(grid.find("fail_below = 1\n"), 15, "factor = 0.1\n");
  const auto cells = [&](const std::string& at_most) {
    return counts_of({check(
                         "[[table.published]]\nsource = \"s\"\ntolerance = { prediction = true, at_most = " + at_most +
                             " }\nvalues = [[14.3], [14]]\n",
                         [](const Coordinates&, Row&) {}, grid)})
        .cells;
  };
  EXPECT_EQ(cells("5.291"), (VerdictCounts{2, 0, 0, 0, 0}));
  EXPECT_EQ(cells("5.289"), (VerdictCounts{1, 0, 1, 0, 0}));
}

TEST_F(Checks, OfAPredictionOfWhatIsKnownBeforeTrainingNeedNoSpread) {
  std::string grid = kTwoCells;
  grid.replace(grid.find("\"bleu\""), 6, "\"parameters\"");
  const GridChecks checks = check(
      "[[table.published]]\nsource = \"s\"\ntolerance = { prediction = true, at_most = 1 }\nvalues = [[100], [101]]\n",
      [](const Coordinates&, Row& row) { row.result.scores["parameters"] = 100; }, grid);
  EXPECT_EQ(counts_of({checks}).cells, (VerdictCounts{1, 1, 0, 0, 0}));
}

TEST_F(Checks, OfAPredictionStandBesideDistances) {
  const std::string both =
      "[[table.published]]\nsource = \"s\"\ntolerance = { \"*\" = 1, bleu = { prediction = true, "
      "at_most = 50, runs = 1 } }\nvalues = [[0], [140]]\n"
      "[[table.published]]\nsource = \"near\"\ntolerance = 2\nvalues = [[143], [150]]\n";
  const GridChecks checks = check(
      both, [](const Coordinates&, Row&) {}, kTwoCells);
  EXPECT_EQ(counts_of({checks}).cells, (VerdictCounts{2, 2, 0, 0, 0}));
  const std::string sheet = text(checks, TableFormat::kText);
  EXPECT_THAT(sheet,
              HasSubstr("Outside of their tolerance: T\n\nCell                measured [published]   tolerance\n"));
  EXPECT_THAT(sheet, HasSubstr("T: a, p, 1          143 ± 17 [0, +143]     ±53 (prediction of 1 run, at most 50)\n"));
  EXPECT_THAT(sheet, HasSubstr("T: b, p, 1 (near)   140 ± 16 [150, −10]    2\n"));
  EXPECT_THAT(sheet, HasSubstr("\nprediction: Student's 95 % interval of the mean of so many further runs.\n\n"));
  EXPECT_EQ(json_of({checks}).at("cells").at(0).at("limit"), "prediction of 1 run, at most 50");
  EXPECT_NEAR(json_of({checks}).at("cells").at(0).at("high").get<double>(), 52.90319279690007, 1e-10);
}

TEST_F(Checks, OfAPredictionThatCannotTellSayWhy) {
  const std::string published =
      "[[table.published]]\nsource = \"s\"\ntolerance = { prediction = true, at_most = 50, runs = 3 }\n"
      "values = [[143], [140]]\n";
  const auto of_b = [&](const std::function<void(Row&)>& change, const std::string& grid = kTwoCells) {
    return check(
        published,
        [&](const Coordinates& at, Row& row) {
          if (at.at("norm") == "b") change(row);
        },
        grid);
  };
  const auto shown = [&](const GridChecks& checks) {
    const Check& b = checks.cells.at(1);
    return fmt::format("{}: {}{}", name_of(b.finding.verdict), b.finding.reason,
                       b.finding.interval ? "" : ", no interval");
  };
  EXPECT_EQ(shown(of_b([](Row& row) { row.result.scores["bleu"] = 140; })),
            "cannot tell: the seeds have the same value, no interval");
  EXPECT_EQ(shown(of_b([](Row& row) { row.result.state = RunState::kDiverged; })),
            "contradicted: 5/5 failed, no interval");
  EXPECT_EQ(shown(of_b([](Row& row) {
              if (row.run.seed < 3) row.result.state = RunState::kDiverged;
            })),
            "cannot tell: 2/5 failed");
  EXPECT_EQ(shown(of_b([](Row& row) {
              if (row.run.seed < 3) row.result.state.reset();
            })),
            "not tested: 2/5 missing");
  std::string one = kTwoCells;
  one.replace(one.find("seeds = 5"), 9, "seeds = 1");
  EXPECT_EQ(shown(of_b([](Row&) {}, one)), "cannot tell: too few seeds, no interval");
  const GridChecks wide = of_b([](Row& row) { row.result.scores["bleu"] += 10 * (row.run.seed - 3); });
  EXPECT_THAT(text(wide, TableFormat::kText),
              testing::AllOf(HasSubstr("Undecided by their tolerance: T\n"),
                             HasSubstr("±64 (prediction of the mean of 3 runs, at most 50)   too few seeds\n")));
}

TEST(ChecksOfALargeTable, FindEachCellByItsLabels) {
  constexpr int kRows = 2000, kColumns = 20, kSeeds = 3;
  Grid grid;
  grid.title = "T";
  Table table;
  table.row_axes = {"r"};
  table.column_axes = {"c"};
  for (int c = 0; c < kColumns; ++c) {
    Table::Column& column = table.columns.emplace_back();
    column.labels = {std::to_string(c)};
    column.score = "bleu";
  }
  for (int r = 0; r < kRows; ++r) {
    Table::Row& row = table.rows.emplace_back();
    row.labels = {std::to_string(r)};
    for (int c = 0; c < kColumns; ++c) {
      Cell& cell = row.cells.emplace_back().cell;
      cell.expected = kSeeds;
      for (int seed = 1; seed <= kSeeds; ++seed)
        cell.values.push_back({seed, r * static_cast<double>(c) + 0.01 * seed * c});
    }
  }
  std::vector<View> views = {{.title = {}, .spec = TableSpec()}};
  const auto better = std::ranges::find(claim_kinds(), "better", &ClaimKind::name);
  for (int c = 0; c < kColumns; ++c) {  // each against the next, the last against the first
    ClaimSpec spec;
    spec.kind = &*better;
    spec.cells = {{{"c", std::to_string((c + 1) % kColumns)}}, {{"c", std::to_string(c)}}};
    views.push_back({.title = {"claim " + std::to_string(c)}, .spec = spec});
  }
  std::vector<Table> tables(views.size());
  tables.front() = table;
  const GridChecks checks = check_grid(grid, views, tables, {});
  ASSERT_EQ(checks.claims.size(), static_cast<size_t>(kRows) * kColumns);
  for (int c : {0, 7, kColumns - 1}) {
    for (int r : {0, 1, 1234, kRows - 1}) {
      const Check& one = checks.claims.at(static_cast<size_t>(c) * kRows + static_cast<size_t>(r));
      EXPECT_EQ(one.place, (Place{{"r", std::to_string(r)}}));
      EXPECT_NEAR(*one.finding.estimate, (r + 0.02) * (c + 1 < kColumns ? 1 : -c), 1e-6);
    }
  }
  const std::vector<Sheet> sheets = sheets_of({checks});
  ASSERT_EQ(sheets.size(), 2u);
  ASSERT_EQ(sheets[0].rows.size(), static_cast<size_t>(kColumns));
  EXPECT_EQ(sheets[0].rows[7].cells.size(), static_cast<size_t>(kRows));
  EXPECT_THAT(sheets[0].rows[7].cells[1234], HasSubstr("held: +1234.02"));
  EXPECT_EQ(counts_of({checks}).claims[0], static_cast<size_t>(kRows - 1) * (kColumns - 1)) << "not in row 0";
}

TEST_F(Checks, InLatexBreakWhereTheyAreWiderThanAPage) {
  const std::string better = "better = [\"a\", \"b\"]\nwhere = { task = \"p\", depth = 2 }\n";
  const std::string brief = text(check(claim(better)), TableFormat::kLatex);
  EXPECT_THAT(
      brief, testing::AllOf(HasSubstr("{booktabs}"), HasSubstr("\\begin{tabular}{@{}ll@{}}"), Not(HasSubstr("wider"))));
  std::string sentence = "the norm before each sublayer";
  for (int i = 0; i < 5; ++i) sentence += " is better than the one behind it";
  const std::string broken = text(check(claim(better, sentence)), TableFormat::kLatex);
  EXPECT_THAT(broken, testing::ContainsRegex("\\{array,booktabs\\}(.|\n)*"
                                             "@\\{\\}>\\{.raggedright.arraybackslash\\}p\\{[1-4][0-9][0-9]pt\\}l@"));
  EXPECT_THAT(broken, Not(HasSubstr("wider than")));
  const std::string everywhere = "better = [\"a\", \"b\"]\n";
  const std::string at_nine = text(check(claim(everywhere)), TableFormat::kLatex);
  EXPECT_THAT(at_nine, testing::ContainsRegex("(>\\{.raggedright.arraybackslash\\}p\\{40pt\\}){10}@")) << "verdicts";
  std::string grid = kGrid;
  const std::string depths = "[1, 2, 4]";
  grid.replace(grid.find(depths), depths.size(), "[1, 2, 4, 8, 16, 32]");
  const GridChecks checks = check(
      claim(everywhere), [](const Coordinates&, Row&) {}, grid);
  EXPECT_THAT(text(checks, TableFormat::kLatex), Not(HasSubstr("raggedright\\arraybackslash"))) << "no word fits";
  EXPECT_THAT(too_wide_in_latex(sheets_of({checks}).front()),
              HasSubstr("in LaTeX the table \"Claims: T, by depth, task\" is about"));
}

TEST_F(Checks, OfAFrozenGridAreThoseOfItsFile) {
  test::write_text(folder_ / "grid.toml",
                   kGrid + claim("better = [\"Alpha\", \"b\"]\nnot_claimed = { task = \"q\" }\nsource = \"§ 3\"\n"));
  const Grid grid = load_grid(folder_ / "grid.toml");
  const Grid again = parse_grid(grid.merged, folder_ / "grid.toml");
  const std::vector<View> ours = views_of(grid), theirs = views_of(again);
  ASSERT_EQ(theirs.size(), 2u);
  const auto &left = std::get<ClaimSpec>(ours[1].spec), &right = std::get<ClaimSpec>(theirs[1].spec);
  EXPECT_EQ(left.cells, right.cells);
  EXPECT_EQ(left.not_claimed.where.labels, right.not_claimed.where.labels);
  EXPECT_EQ(left.source, right.source);
  EXPECT_EQ(left.kind, right.kind);
}

// --- looks -----------------------------------------------------------------------------------------------------------

// Not in the order of their numbers: the first five have the places of 1 to 5 in `kAhead`.
constexpr const char* kLooks = R"(
title = "T"
seeds = [7, 3, 9, 1, 5, 2, 4, 6, 8, 10, 11, 12]
[claims]
looks = [3, 5, 8, 12]
[axis]
norm = ["a", "b"]
task = ["p", "q"]
depth = [1]
[table]
rows = "norm"
columns = ["task", "depth"]
scores = "bleu"
)";
const std::vector<int> kOrder = {7, 3, 9, 1, 5, 2, 4, 6, 8, 10, 11, 12};

/// Of the seed, from 0.
size_t place_of_seed(const Coordinates& at) {
  return static_cast<size_t>(std::ranges::find(kOrder, std::stoi(at.at("seed"))) - kOrder.begin());
}

// By how much a is above b on p: p is 0.074, 0.0034, 0.75 and 0.80 with 3, 5, 8 and 12 seeds. On q they are equal.
constexpr double kAhead[] = {1, 3, 2, 2.2, 1.8, -9, 9, -9, 9, -9, 9, -9};

void fill_looks(const Coordinates& at, Row& row) {
  const size_t place = place_of_seed(at);
  const double ahead =
      at.at("task") == "p" ? kAhead[place] : (place % 2 == 0 ? 1 : -1) + 0.01 * static_cast<double>(place);
  row.result.scores = {{"bleu", 100 + 10 * static_cast<double>(place) + (at.at("norm") == "a" ? ahead : 0)}};
}

/// "p: held at 2, 5 seeds".
std::vector<std::string> looks_of(const GridChecks& checks) {
  std::vector<std::string> all;
  for (const Check& one : checks.claims) {
    all.push_back(fmt::format("{}: {} at {}, {} seeds", one.place.at(0).second, name_of(one.finding.verdict),
                              one.look->number, one.look->seeds));
  }
  return all;
}

const std::string kBetter = claim("better = [\"a\", \"b\"]\n");

class LooksOfClaims : public Checks {
 protected:
  GridChecks looks(
      const Fill& change = [](const Coordinates&, Row&) {}, const std::string& claims = kBetter,
      const std::string& grid = kLooks) {
    return check(
        claims,
        [&](const Coordinates& at, Row& row) {
          fill_looks(at, row);
          change(at, row);
        },
        grid);
  }
};

TEST_F(LooksOfClaims, TakeTheFirstSeedsOfTheGridUntilOneDecides) {
  const GridChecks checks = looks();
  // The last look at p would not decide, and each place has its own.
  EXPECT_THAT(looks_of(checks), ElementsAre("p: held at 2, 5 seeds", "q: cannot tell at 4, 12 seeds"));
  const Finding& held = checks.claims[0].finding;
  EXPECT_NEAR(*held.estimate, 2, 1e-9);
  EXPECT_NEAR(*held.level, 0.01569, 0.02 * 0.01569);                // NumPy, as in looks_test.cc
  EXPECT_NEAR(held.interval->second - 2, 4.0321 * 0.322490, 2e-3);  // t(1 − level/2, 4) √(2.08/4/5)
  EXPECT_THAT(held.n, ElementsAre(5));
}

TEST_F(LooksOfClaims, SayTheSameHoweverManySeedsAreThere) {
  const Check all = looks().claims.at(0);
  const Check five = looks([](const Coordinates& at, Row& row) {
                       if (place_of_seed(at) >= 5) row.run.id.clear();
                     }).claims.at(0);
  EXPECT_EQ(five.finding.verdict, all.finding.verdict);
  EXPECT_EQ(five.look->number, all.look->number);
  EXPECT_EQ(five.finding.estimate, all.finding.estimate);
  EXPECT_EQ(five.finding.interval, all.finding.interval);
  EXPECT_EQ(five.finding.level, all.finding.level);
  EXPECT_EQ(five.shown, all.shown);
  EXPECT_EQ(five.runs, all.runs);
}

TEST_F(LooksOfClaims, WaitForTheRunsOfTheirSeeds) {
  const auto without = [&](int seed, RunState state) {
    return looks([=](const Coordinates& at, Row& row) {
      if (at.at("norm") != "b" || at.at("task") != "p" || at.at("seed") != std::to_string(seed)) return;
      row.result.state = state;
    });
  };
  for (const RunState state : {RunState::kQueued, RunState::kFailed}) {
    const GridChecks fourth = without(1, state);
    EXPECT_EQ(looks_of(fourth).at(0), "p: not tested at 2, 5 seeds") << name_of(state);
    EXPECT_EQ(fourth.claims[0].finding.reason, "1/5 of b missing");
    EXPECT_EQ(looks_of(without(7, state)).at(0), "p: not tested at 1, 3 seeds");
    EXPECT_EQ(looks_of(without(2, state)).at(0), "p: held at 2, 5 seeds") << "the sixth";
  }
  const GridChecks three = looks([](const Coordinates& at, Row& row) {
    if (place_of_seed(at) >= 3) row.run.id.clear();
  });
  EXPECT_THAT(looks_of(three), ElementsAre("p: cannot tell at 1, 3 seeds", "q: cannot tell at 1, 3 seeds"))
      << "nobody has asked for more";
}

TEST_F(LooksOfClaims, ChooseWhatSelectTakesAmongTheirSeeds) {
  std::string grid = kLooks;
  grid.replace(grid.find("depth = [1]"), 11, "depth = [1, 2]");
  grid.replace(grid.find("[\"task\", \"depth\"]"), 17, "\"task\"");
  grid += "select = { over = \"depth\", by = \"dev\" }\n";
  // With 5 seeds depth 1 is the best, with 8 and more depth 2.
  const auto dev = [](const Coordinates& at, Row& row) {
    row.result.scores["dev"] = at.at("depth") == "1" ? 1 : place_of_seed(at) < 5 ? 0 : 9;
  };
  const GridChecks checks = looks(dev, kBetter, grid);
  ASSERT_EQ(looks_of(checks).at(0), "p: held at 2, 5 seeds");
  ASSERT_EQ(checks.claims[0].runs.size(), 10u);
  EXPECT_THAT(checks.claims[0].runs, testing::Each(HasSubstr("depth=1")));
  ASSERT_EQ(checks.claims[1].look->number, 4u);
  EXPECT_THAT(checks.claims[1].runs, testing::Each(HasSubstr("depth=2")));
}

RecordedLook recorded(size_t look, const std::string& verdict, const std::string& hash) {
  return {.taken = {.claim = "t",
                    .hash = hash,
                    .place = {{"task", "p"}, {"depth", "1"}},
                    .look = look,
                    .seeds = look == 1 ? 3u : 5u,
                    .verdict = verdict,
                    .level = 0.015,
                    .estimate = 40,
                    .low = 30,
                    .high = 50,
                    .n = {3},
                    .shown = "+40 (+30 … +50)"}};
}

TEST_F(LooksOfClaims, StandAsTheyWereRecorded) {
  const std::string hash = looks().claims[0].hash;
  recorded_ = {recorded(1, "held", hash)};
  const GridChecks held = looks();
  EXPECT_EQ(looks_of(held).at(0), "p: held at 1, 3 seeds");
  EXPECT_EQ(held.claims[0].finding.interval, Interval(30, 50));
  EXPECT_EQ(held.claims[0].finding.level, 0.015);
  EXPECT_THAT(held.claims[0].caveats, IsEmpty());
  EXPECT_THAT(text(held, TableFormat::kText), HasSubstr("held at look 1 of 4, 3 seeds: +40 (+30 … +50)  "));
  const GridChecks deleted = looks([](const Coordinates& at, Row& row) {
    if (at.at("task") == "p") row.result = {};
  });
  EXPECT_EQ(looks_of(deleted).at(0), "p: held at 1, 3 seeds");
  recorded_ = {recorded(2, "cannot tell", hash)};
  EXPECT_EQ(looks_of(looks()).at(0), "p: cannot tell at 4, 12 seeds") << "its runs would decide it now";
  for (const auto change :
       {+[](LookTaken& taken) { taken.claim = "another"; }, +[](LookTaken& taken) { taken.hash = "another"; },
        +[](LookTaken& taken) { taken.seeds = 4; }}) {
    recorded_ = {recorded(2, "cannot tell", hash)};
    change(recorded_[0].taken);
    EXPECT_EQ(looks_of(looks()).at(0), "p: held at 2, 5 seeds") << "it is not of this claim at this look";
  }
}

TEST_F(LooksOfClaims, AreMarkedWhereARunHasChangedSince) {
  recorded_ = {recorded(1, "contradicted", looks().claims[0].hash)};
  recorded_[0].changed = "0badc0de";
  const GridChecks checks = looks();
  EXPECT_EQ(looks_of(checks).at(0), "p: contradicted at 1, 3 seeds");
  EXPECT_THAT(
      text(checks, TableFormat::kText),
      AllOf(HasSubstr("contradicted at look 1 of 4, 3 seeds: +40 (+30 … +50); changed since  "),
            HasSubstr("\nchanged since: run 0badc0de was deleted or trained again after a look had seen it: the "
                      "verdict is that of the look.\n")));
  EXPECT_EQ(json_of({checks}).at("claims").at(0).at("caveats"), json({"changed since"}));
}

TEST_F(LooksOfClaims, SayTheirNumberSeedsAndLevelInEachForm) {
  const GridChecks checks = looks();
  EXPECT_THAT(
      text(checks, TableFormat::kText),
      AllOf(HasSubstr("   held at look 2 of 4, 5 seeds: +2.0 (+0.7 … +3.3)   cannot tell at look 4 of 4, 12 seeds: "),
            HasSubstr("\nTested at 3, 5, 8 and 12 seeds at a constant level of 1.57 %, with which all looks together "
                      "are wrong in 5 % of cases without a difference; intervals are at this level, and an estimate "
                      "that ended early is too large on average.\n"),
            HasSubstr("\nbetter: by how much it is better, with its repeated confidence interval.\n"),
            HasSubstr("\nOf 2 verdicts at 5 % each, about 0.1 would be wrong if all cells were equal.\n")));
  const json first = json_of({checks}).at("claims").at(0), second = json_of({checks}).at("claims").at(1);
  EXPECT_EQ(first.at("look"), 2);
  EXPECT_EQ(first.at("looks"), 4);
  EXPECT_EQ(first.at("seeds"), 5);
  EXPECT_NEAR(first.at("level").get<double>(), 0.01569, 0.02 * 0.01569);
  EXPECT_EQ(second.at("look"), 4);
  EXPECT_EQ(second.at("seeds"), 12);
  const std::string csv = render_csv({checks}, Formulas::kAsTheyAre);
  EXPECT_THAT(csv, HasSubstr(",n,level,look,looks,seeds,reason,"));
  EXPECT_THAT(csv, testing::ContainsRegex(",held,2,0.69[0-9]*,3.30[0-9]*,5,0.0157[0-9]*,2,4,5,,"));
}

TEST_F(LooksOfClaims, SayBetweenWhichLevelsTheirKindsAre) {
  const std::string within = "[[claim]]\ntext = \"e\"\nequivalent = [\"a\", \"b\"]\nwithin = \"0.1 BLEU\"\n";
  EXPECT_THAT(text(looks([](const Coordinates&, Row&) {}, kBetter + within), TableFormat::kText),
              HasSubstr("at a constant level of 1.57 to 1.69 %, with which"));
}

TEST_F(Checks, AreAtTheLevelOfTheGrid) {
  const std::string one_percent = std::string("[claims]\nlevel = 0.01\n");
  std::string grid = kGrid;
  grid.insert(grid.find("[axis]"), one_percent);
  const GridChecks checks = check(
      claim("better = [[\"a\", 1], [\"b\", 1]]\n") + claim("fails = [[\"b\", 1]]\n", "f"),
      [](const Coordinates&, Row&) {}, grid);
  EXPECT_EQ(verdicts(checks).at(0), "p: cannot tell") << "3 ± 3.26";
  EXPECT_NEAR(checks.claims.at(0).finding.interval->second, 6.2556, 1e-4);  // t(0.995, 4) √0.5
  EXPECT_THAT(text(checks, TableFormat::kText),
              AllOf(HasSubstr("with its 99 % interval.\n"), HasSubstr("exact one-sided test at 1 %; failed"),
                    HasSubstr("\nOf 6 verdicts at 1 % each, about 0.06 would be wrong if all cells were equal.\n")));
}

}  // namespace
}  // namespace tearless::harness::check_test
