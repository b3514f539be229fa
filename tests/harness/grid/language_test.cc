// What the forms of a grid file mean: the runs that each of them makes, with their settings.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "harness/grid/expand.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::language_test {
namespace {

using nlohmann::json;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

class Language : public testing::Test {
 protected:
  Grid load(const std::string& text, const std::vector<std::string>& set = {}) const {
    test::write_text(folder_ / "grid.toml", text);
    return load_grid(folder_ / "grid.toml", set);
  }

  /// The settings of each run but its seed, as "a=1 b=2", in the grid's order.
  static std::vector<std::string> runs(const Grid& grid) {
    std::vector<std::string> all;
    for (const Combination& combination : runs_of(grid)) {
      std::vector<std::string> settings;
      for (const auto& [key, value] : materialise(grid, combination).settings) {
        if (key != grid.seed_key) settings.push_back(key + "=" + value.dump());
      }
      all.push_back(fmt::format("{}", fmt::join(settings, " ")));
    }
    return all;
  }
  std::vector<std::string> runs(const std::string& text) const { return runs(load(text)); }

  static std::vector<std::string> cells(const Grid& grid) {
    std::vector<std::string> all;
    for (const Combination& combination : runs_of(grid)) all.push_back(describe_cell(grid, combination));
    return all;
  }
  std::vector<std::string> cells(const std::string& text) const { return cells(load(text)); }

  test::TempFolder folder_;
};

TEST_F(Language, AValueMayBeAListOfAnything) {
  EXPECT_THAT(runs("[axis]\nsizes = [[16], [32, 16], []]\n"), ElementsAre("sizes=[16]", "sizes=[32,16]", "sizes=[]"));
  EXPECT_THAT(cells("[axis]\na = [[\"x\", 1.5, true], [[1], [2]]]\n"),
              ElementsAre("a=[\"x\",1.5,true]", "a=[[1],[2]]"));
}

TEST_F(Language, AValueMayHaveALabelOfItsOwn) {
  const Grid grid =
      load("[axis]\nlr = [{ value = 1e-3, label = \"small\" }, 0.5, { value = [1], label = \"list\" }]\n");
  EXPECT_THAT(cells(grid), ElementsAre("lr=small", "lr=0.5", "lr=list"));
  EXPECT_THAT(runs(grid), ElementsAre("lr=0.001", "lr=0.5", "lr=[1]"));
}

TEST_F(Language, ARangeWithAStepEndsAtItsLastStep) {
  EXPECT_THAT(runs("[axis]\na = { from = 1, to = 12, step = 2 }\n"),
              ElementsAre("a=1", "a=3", "a=5", "a=7", "a=9", "a=11"));
  EXPECT_THAT(runs("[axis]\na = { from = 3, to = 1, step = -1 }\n"), ElementsAre("a=3", "a=2", "a=1"));
  EXPECT_THAT(runs("[axis]\na = { from = 0.1, to = 0.3, step = 0.1 }\n"), ElementsAre("a=0.1", "a=0.2", "a=0.3"))
      << "a last step that misses the end by rounding reaches it";
  EXPECT_THAT(runs("[axis]\na = { from = 0, to = 1, step = 0.25 }\n"),
              ElementsAre("a=0.0", "a=0.25", "a=0.5", "a=0.75", "a=1.0"))
      << "all of one type";
}

TEST_F(Language, ARangeWithACountHasItsEndsAndEqualDistancesOrRatios) {
  EXPECT_THAT(runs("[axis]\na = { from = 2, to = 10, count = 5 }\n"), ElementsAre("a=2", "a=4", "a=6", "a=8", "a=10"));
  EXPECT_THAT(runs("[axis]\na = { from = 0, to = 1, count = 3 }\n"), ElementsAre("a=0.0", "a=0.5", "a=1.0"));
  EXPECT_THAT(runs("[axis]\na = { from = 1e-4, to = 1e-2, count = 5, scale = \"log\" }\n"),
              ElementsAre("a=0.0001", "a=0.000316228", "a=0.001", "a=0.00316228", "a=0.01"));
  EXPECT_THAT(runs("[axis]\na = { from = 1, to = 1000, count = 4, scale = \"log\" }\n"),
              ElementsAre("a=1", "a=10", "a=100", "a=1000"));
}

TEST_F(Language, TheEndsOfARangeKeepAllTheirDigits) {
  EXPECT_THAT(runs("[axis]\na = { from = 1.2345678, to = 2.3456789, count = 3 }\n"),
              ElementsAre("a=1.2345678", "a=1.79012", "a=2.3456789"));
  EXPECT_THAT(runs("[axis]\na = { from = 1.2345678e-4, to = 0.98765432, count = 3, scale = \"log\" }\n"),
              ElementsAre("a=0.00012345678", "a=0.0110423", "a=0.98765432"));
  EXPECT_THAT(runs("[axis]\na = { from = 2.3456789, to = 1.2345678, count = 2 }\n"),
              ElementsAre("a=2.3456789", "a=1.2345678"))
      << "downwards";
}

TEST_F(Language, ARangeMayBeOfWholeNumbers) {
  EXPECT_THAT(runs("[axis]\na = { from = 16, to = 1024, count = 5, scale = \"log\", whole = true }\n"),
              ElementsAre("a=16", "a=45", "a=128", "a=362", "a=1024"));
  EXPECT_THAT(runs("[axis]\na = { from = 1, to = 4, count = 3, whole = true }\n"), ElementsAre("a=1", "a=3", "a=4"));
  EXPECT_THAT(runs("[axis]\na = { from = 1000001, to = 20000003, count = 3, scale = \"log\", whole = true }\n"),
              ElementsAre("a=1000001", "a=4472139", "a=20000003"))
      << "more than six digits";
}

TEST_F(Language, ARangeMayBeWrittenAsSemlDoes) {
  EXPECT_EQ(runs("[axis]\nlr = { type = \"loguniform\", min = 1e-5, max = 1e-1, num = 5 }\n"),
            runs("[axis]\nlr = { from = 1e-5, to = 1e-1, count = 5, scale = \"log\" }\n"));
  EXPECT_EQ(runs("[axis]\nx = { num = 3, type = \"uniform\", min = 0.5, max = 1.5 }\n"),
            runs("[axis]\nx = { from = 0.5, to = 1.5, count = 3 }\n"));
}

TEST_F(Language, LargeWholeNumbersOfARangeStayWhatTheyAre) {
  EXPECT_THAT(runs("[axis]\na = { from = 1000001, to = 1000009, count = 3 }\n"),
              ElementsAre("a=1000001", "a=1000005", "a=1000009"));
  EXPECT_THAT(runs("[axis]\na = { from = 1, to = 1000000001, count = 3 }\n"),
              ElementsAre("a=1", "a=500000001", "a=1000000001"));
  EXPECT_THAT(runs("[axis]\na = { from = 1, to = 4, count = 3 }\n"), ElementsAre("a=1.0", "a=2.5", "a=4.0"));
}

TEST_F(Language, ZippedAxesMoveTogetherAndAreOneAxis) {
  const Grid grid = load("[axis]\nx = [0, 1]\n[axis.size]\nzip = { m.width = [256, 512], \"m.heads\" = [4, 8] }\n");
  EXPECT_THAT(cells(grid), ElementsAre("x=0, size=256, 4", "x=0, size=512, 8", "x=1, size=256, 4", "x=1, size=512, 8"));
  EXPECT_EQ(runs(grid).at(1), "m.heads=8 m.width=512 x=0");
  EXPECT_EQ(runs_of(grid, Only(grid, {"size=512, 8"})).size(), 2u);
  EXPECT_THAT(cells("[axis.s.zip]\na = { from = 1, to = 3, step = 1 }\nb = [{ value = 1, label = \"one\" }, 2, 3]\n"),
              ElementsAre("s=1, one", "s=2, 2", "s=3, 3"));
}

constexpr const char* kConditional = R"(
[set]
opt = "adam"
momentum = 0.5
[axis]
opt = ["adam", "sgd"]
[axis.momentum]
values = [0.9, 0.99]
when = { opt = "sgd" }
[axis]
z = [1, 2]
)";

TEST_F(Language, AnAxisUnderAConditionHasOnePointElsewhereThatSetsNothing) {
  std::string text = kConditional;
  text.replace(text.find("[axis]\nz"), 6, "[axis.z]\nvalues");  // one table [axis] only
  text.replace(text.find("values\nz"), 8, "values");
  const Grid grid = load(text);
  EXPECT_THAT(cells(grid),
              ElementsAre("opt=adam, momentum=–, z=1", "opt=adam, momentum=–, z=2", "opt=sgd, momentum=0.9, z=1",
                          "opt=sgd, momentum=0.9, z=2", "opt=sgd, momentum=0.99, z=1", "opt=sgd, momentum=0.99, z=2"));
  EXPECT_EQ(runs(grid).at(0), "momentum=0.5 opt=\"adam\" z=1") << "as the base has it";
  EXPECT_EQ(grid.size(), 6);
  EXPECT_EQ(runs_of(grid, Only(grid, {"momentum=–"})).size(), 2u);
  EXPECT_EQ(runs_of(grid, Only(grid, {"momentum=-"})).size(), 2u) << "as it can be typed";
}

TEST_F(Language, AConditionMayHaveAlternativesAndBeOnASettingOfABundle) {
  const std::string text = R"(
[[axis.system]]
label = "a"
set = { opt = "sgd" }
[[axis.system]]
label = "b"
set = { opt = "nesterov" }
[[axis.system]]
label = "c"
set = { opt = "adam" }
[axis.momentum]
values = [0.9]
when = { opt = ["sgd", "nesterov"] }
)";
  EXPECT_THAT(cells(text), ElementsAre("system=a, momentum=0.9", "system=b, momentum=0.9", "system=c, momentum=–"));
}

TEST_F(Language, AWordThatIsALabelIsMeantAsOne) {
  const std::string axis = "[axis]\nx = [{ value = 1, label = \"2\" }, { value = 2, label = \"1\" }, 3]\n";
  EXPECT_THAT(cells(axis + "[axis.y]\nvalues = [5]\nwhen = { x = 2 }\n"),
              ElementsAre("x=2, y=5", "x=1, y=–", "x=3, y=–"));
  EXPECT_THAT(cells(axis + "[axis.y]\nvalues = [5]\nwhen = { x = 3 }\n"),
              ElementsAre("x=2, y=–", "x=1, y=–", "x=3, y=5"));
}

TEST_F(Language, WhereAnAxisIsAbsentConditionsSeeTheBaseAndMayNameThat) {
  const std::string text = R"(
[set]
opt = "sgd"
[axis]
a = [1, 2]
[[axis.system]]
label = "adam"
set = { opt = "adam" }
when = { a = 1 }
[axis.momentum]
values = [0.9]
when = { opt = "sgd" }
)";
  EXPECT_THAT(cells(text), ElementsAre("a=1, system=adam, momentum=–", "a=2, system=–, momentum=0.9"));
  std::string by_label = text;
  by_label.replace(by_label.find("when = { opt = \"sgd\" }"), 22, "when = { system = \"–\" }");
  EXPECT_EQ(cells(by_label), cells(text));
}

TEST_F(Language, APointMayHaveAConditionOfItsOwn) {
  const std::string text = R"(
[axis]
depth = [6, 12]
[[axis.init]]
label = "small"
set = { init = "small" }
[[axis.init]]
label = "scaled"
set = { init = "scaled" }
when = { depth = 12 }
)";
  EXPECT_THAT(cells(text), ElementsAre("depth=6, init=small", "depth=12, init=small", "depth=12, init=scaled"));
}

TEST_F(Language, ConditionsMayFollowEachOther) {
  const std::string text = R"(
[axis]
a = [1, 2]
[axis.b]
values = [1, 2]
when = { a = 1 }
[axis.c]
values = [1]
when = { b = 2 }
)";
  EXPECT_THAT(cells(text), ElementsAre("a=1, b=1, c=–", "a=1, b=2, c=1", "a=2, b=–, c=–"));
}

constexpr const char* kUnion = R"(
[set]
lr = 1.0
opt = "none"
[axis]
depth = [6, 12]
[[subgrid]]
label = "sgd"
set = { opt = "sgd" }
[subgrid.axis]
momentum = [0.5, 0.9]
wd = [0, 1]
[[subgrid.exclude]]
when = { momentum = 0.5, wd = 1 }
why = "known to fail"
[[subgrid]]
label = "adam"
unset = "lr"
[subgrid.axis]
wd = [1, 2]
)";

TEST_F(Language, SubgridsAreAUnionWhereAnAxisThatOneLacksIsAbsent) {
  const Grid grid = load(kUnion);
  EXPECT_THAT(cells(grid),
              ElementsAre("subgrid=sgd, depth=6, momentum=0.5, wd=0", "subgrid=sgd, depth=6, momentum=0.9, wd=0",
                          "subgrid=sgd, depth=6, momentum=0.9, wd=1", "subgrid=sgd, depth=12, momentum=0.5, wd=0",
                          "subgrid=sgd, depth=12, momentum=0.9, wd=0", "subgrid=sgd, depth=12, momentum=0.9, wd=1",
                          "subgrid=adam, depth=6, momentum=–, wd=1", "subgrid=adam, depth=6, momentum=–, wd=2",
                          "subgrid=adam, depth=12, momentum=–, wd=1", "subgrid=adam, depth=12, momentum=–, wd=2"));
  EXPECT_EQ(runs(grid).front(), "depth=6 lr=1.0 momentum=0.5 opt=\"sgd\" wd=0");
  EXPECT_EQ(runs(grid).back(), "depth=12 opt=\"none\" wd=2");
  EXPECT_EQ(grid.size(), 12) << "with two excluded ones";
}

TEST_F(Language, ASettingMayBeOfSeveralSubgridsAndConditionsSeeIt) {
  const std::string text = R"(
[[subgrid]]
label = "a"
set = { kind = "x" }
axis.n = [1]
[[subgrid]]
label = "b"
axis.kind = ["x", "y"]
[[exclude]]
when = { kind = "x" }
why = "w"
)";
  EXPECT_THAT(cells(text), ElementsAre("subgrid=b, n=–, kind=y"));
}

TEST_F(Language, ComputedValuesAreOfTheirRun) {
  const std::string text = R"toml(
[set]
updates = 1000
scale = 1.0
heads = 1
[axis]
width = [256, 500]
[computed]
ff = "4 * width"
heads = "max(1, floor(width / 64))"
rate = "scale / sqrt(width)"
warmup = "round(0.06 * updates) + ff"
half = "width / 8"
)toml";
  EXPECT_THAT(runs(text),
              ElementsAre("ff=1024 half=32 heads=4 rate=0.0625 scale=1.0 updates=1000 warmup=1084 width=256",
                          "ff=2000 half=62.5 heads=7 rate=0.044721359549995794 scale=1.0 updates=1000 "
                          "warmup=2060 width=500"));
}

TEST_F(Language, AComputedValueHasTheTypeOfTheSettingThatItReplaces) {
  EXPECT_THAT(runs("[set]\nr = 0.5\nn = 3\n[axis]\na = [2]\n[computed]\nr = \"2 * a\"\nn = \"a * 1.5\"\n"),
              ElementsAre("a=2 n=3 r=4.0"));
  const Grid grid = load("[set]\nn = 3\n[axis]\na = [2, 3]\n[computed]\nn = \"a * 1.5\"\n");
  EXPECT_THAT(error_of([&] { runs(grid); }),
              testing::EndsWith("grid.toml:6: n = \"a * 1.5\": it is 4.5, and the setting is a whole number (at " +
                                (folder_ / "grid.toml:2").string() +
                                "); use round(), floor() or ceil() (in the run a=3, seed 1)"));
}

TEST_F(Language, AComputedValueThatHasNoneIsNamedWithItsExpression) {
  const auto error = [&](const std::string& expression, const std::string& axis = "a = [0]") {
    const Grid grid = load("[axis]\n" + axis + "\n[computed]\nb = \"" + expression + "\"\n");
    const std::string sentence = error_of([&] { runs(grid); });
    const size_t begin = sentence.find("b = ");
    return begin == std::string::npos ? sentence : sentence.substr(begin, sentence.find(" (in the run") - begin);
  };
  EXPECT_EQ(error("1 / a"), "b = \"1 / a\": it divides by zero");
  EXPECT_EQ(error("log(a)"), "b = \"log(a)\": log(0) is not a finite number");
  EXPECT_EQ(error("sqrt(a - 1)"), "b = \"sqrt(a - 1)\": sqrt(-1) is not a real number");
  EXPECT_THAT(error("2 * a", "a = [9223372036854775807]"), HasSubstr("is too large"));
  EXPECT_THAT(error("2 * a", "a = [\"x\"]"), HasSubstr("a is no number but \"x\""));
  EXPECT_THAT(error_of([&] { runs("[axis]\na = [1, 0]\n[computed]\nb = \"1 / a\"\n"); }),
              testing::EndsWith("it divides by zero (in the run a=0, seed 1)"));
  EXPECT_THAT(error("2 * c", "a = [1]\n[[axis.s]]\nlabel = \"x\"\nset = { c = 1 }\n[[axis.s]]\nlabel = \"y\"\n"),
              HasSubstr("this run has no c"));
}

TEST_F(Language, AComputedValueMayBeATextOrACopy) {
  EXPECT_THAT(runs("[set]\nname = \"\"\n[axis]\nlang = [\"de\", \"fi\"]\nn = [1]\n[computed]\n"
                   "name = \"lang + '-batch-of-' + n\"\ndev = \"'data/dev.' + lang\"\ntwin = \"name\"\n"),
              ElementsAre(R"(dev="data/dev.de" lang="de" n=1 name="de-batch-of-1" twin="de-batch-of-1")",
                          R"(dev="data/dev.fi" lang="fi" n=1 name="fi-batch-of-1" twin="fi-batch-of-1")"));
  EXPECT_THAT(runs("[axis]\na = [true, [1, 2]]\n[computed]\nb = \"a\"\n"),
              ElementsAre("a=true b=true", "a=[1,2] b=[1,2]"));
  EXPECT_THAT(
      cells("[axis]\nx = [\"a\", \"b\"]\n[computed]\ny = \"x + x\"\n[[exclude]]\nwhen = { y = \"aa\" }\nwhy = \"w\"\n"),
      ElementsAre("x=b"));
  const auto error = [&](const std::string& text) { return error_of([&] { runs(text); }); };
  EXPECT_THAT(error("[set]\nb = \"x\"\n[axis]\na = [1]\n[computed]\nb = \"4 * a\"\n"),
              HasSubstr("b = \"4 * a\": it is 4, and the setting is \"x\" (at "));
  EXPECT_THAT(error("[set]\nb = 1\n[axis]\na = [\"x\"]\n[computed]\nb = \"a\"\n"),
              HasSubstr("it is \"x\", and the setting is 1 (at "));
  EXPECT_THAT(error("[set]\nm.kind = \"x\"\n[axis]\na = [1]\n[computed]\nb = \"4 * m.kind\"\n"),
              HasSubstr("b = \"4 * m.kind\": m.kind is no number but \"x\""));
}

TEST_F(Language, AComputedPathStartsWhereTheSettingDoesThatItBeginsWith) {
  std::filesystem::create_directory(folder_ / "base");
  test::write_text(folder_ / "base/data.toml", "root = \"../corpora\"\ntrain = \"x\"\n");
  const Grid grid = load(
      "base = \"base/data.toml\"\n[axis]\nlang = [\"de\"]\n[computed]\ntrain = \"'data/' + lang\"\n"
      "dev = \"root + '/dev.' + lang\"\ntest = \"dev\"\n");
  const RunSpec run = materialise(grid, runs_of(grid).front());
  const auto start = [&](const std::string& key) {
    const auto own = run.folders.find(key);
    return own == run.folders.end() ? run.folder : own->second;
  };
  EXPECT_EQ(start("train"), folder_.path().string()) << "of the grid file, not of the base file that had the setting";
  EXPECT_EQ(start("dev"), (folder_ / "base").string());
  EXPECT_EQ(start("test"), (folder_ / "base").string());
}

// --- variables -------------------------------------------------------------------------------------------------------

TEST_F(Language, AVariableIsAnAxisButNoSettingOfTheRuns) {
  const Grid grid = load(
      "variables = \"head_dim\"\n[axis]\nwidth = [64, 128]\nhead_dim = [16, 32]\n[computed]\n"
      "heads = \"width / head_dim\"\n[[exclude]]\nwhen = { head_dim = 32, width = 64 }\nwhy = \"w\"\n");
  EXPECT_THAT(cells(grid), ElementsAre("width=64, head_dim=16", "width=128, head_dim=16", "width=128, head_dim=32"));
  EXPECT_THAT(runs(grid), ElementsAre("heads=4 width=64", "heads=8 width=128", "heads=4 width=128"));
  EXPECT_THAT(runs(load("variables = \"m\"\n[set]\nm = 2\n[axis]\na = [1]\n[computed]\nb = \"m * a\"\n", {"m=3"})),
              ElementsAre("a=1 b=3"))
      << "of [set], and --set";
}

TEST_F(Language, AVariableMayBeComputedOrOfABundleAndDecideConditions) {
  const std::string text = R"toml(
variables = ["lang", "per_head"]
[set]
heads = 4
[[axis.task]]
label = "de"
set = { lang = "de", width = 64 }
[[axis.task]]
label = "fi"
set = { lang = "fi", width = 512 }
[axis.dropout]
values = [0.1, 0.3]
when = { lang = "fi" }
[computed]
train = "'data/train.' + lang"
per_head = "width / heads"
scale = "sqrt(per_head)"
)toml";
  EXPECT_THAT(runs(text),
              ElementsAre(R"(heads=4 scale=4.0 train="data/train.de" width=64)",
                          R"(dropout=0.1 heads=4 scale=11.313708498984761 train="data/train.fi" width=512)",
                          R"(dropout=0.3 heads=4 scale=11.313708498984761 train="data/train.fi" width=512)"));
}

// --- comparisons -----------------------------------------------------------------------------------------------------

TEST_F(Language, AConditionMayCompareASetting) {
  const auto left = [&](const std::string& when, const std::string& axes = "d = [2, 4, 6, 8]") {
    return cells("[axis]\n" + axes + "\n[computed]\nh = \"d / 2\"\n[[exclude]]\nwhen = { " + when +
                 " }\nwhy = \"w\"\n");
  };
  EXPECT_THAT(left("d = \"> 4\""), ElementsAre("d=2", "d=4"));
  EXPECT_THAT(left("d = \"≥ 4\""), ElementsAre("d=2"));
  EXPECT_THAT(left("h = \"<= 2\""), ElementsAre("d=6", "d=8")) << "a computed one";
  EXPECT_THAT(left("h = [\"< 2\", 4]"), ElementsAre("d=4", "d=6")) << "alternatives";
  EXPECT_THAT(left("d = \"< 8 - 2 * h\""), ElementsAre("d=4", "d=6", "d=8")) << "an expression";
  EXPECT_THAT(left("d = \"< 5\", e = \"> d\"", "d = [4, 8]\ne = [4, 5]"),
              ElementsAre("d=4, e=4", "d=8, e=4", "d=8, e=5"));
  EXPECT_THAT(left("d = \"< 3\"", "d = [2, { value = 4, label = \"< 3\" }]"), ElementsAre("d=2"))
      << "a word that is a label is meant as one";
  EXPECT_THAT(left("e = \"> 1\"", "d = [2]\ne = [1, 2, \"auto\"]"), ElementsAre("d=2, e=1", "d=2, e=auto"))
      << "a text is not greater";
}

TEST_F(Language, ComparisonsKeepAxesApartAndSeeTheBaseWhereAnAxisIsAbsent) {
  EXPECT_THAT(
      runs("[axis]\ndepth = [2, 12]\n[axis.init]\nvalues = [1]\nwhen = { depth = \"> 6\" }\n[[axis.s]]\nlabel = \"x\"\n"
           "when = { depth = \"<= 6\" }\nset = { init = 2 }\n"),
      ElementsAre("depth=2 init=2", "depth=12 init=1"))
      << "two axes that set one setting";
  EXPECT_THAT(cells("[set]\nm = 5\n[axis]\na = [1, 2]\n[axis.m]\nvalues = [1]\nwhen = { a = 1 }\n[axis.z]\nvalues = "
                    "[7]\nwhen = { m = \"> 3\" }\n"),
              ElementsAre("a=1, m=1, z=–", "a=2, m=–, z=7"));
}

TEST_F(Language, ANumberMayBeWrittenInAnotherSpelling) {
  const std::string axis = "[axis]\nlr = [1e-3, 5e-4, 1.0]\n";
  EXPECT_THAT(cells(axis + "[[exclude]]\nwhen = { lr = [\"1e-3\", \"1\"] }\nwhy = \"w\"\n"), ElementsAre("lr=0.0005"));
  EXPECT_THAT(cells(axis + "[axis.b]\nvalues = [7]\nwhen = { lr = \"5e-4\" }\n"),
              ElementsAre("lr=0.001, b=–", "lr=0.0005, b=7", "lr=1.0, b=–"));
  EXPECT_THAT(cells(axis + "[computed]\nc = \"2 * lr\"\n[[exclude]]\nwhen = { c = \"2e-3\" }\nwhy = \"w\"\n"),
              ElementsAre("lr=0.0005", "lr=1.0"));
}

TEST_F(Language, ExclusionsSeeComputedValues) {
  EXPECT_THAT(
      cells("[axis]\na = [1, 2, 3]\n[computed]\nb = \"2 * a\"\n[[exclude]]\nwhen = { b = [2, 6] }\nwhy = \"w\"\n"),
      ElementsAre("a=2"));
}

TEST_F(Language, AnExclusionCannotBeOnWhatDependsOnTheSeed) {
  EXPECT_THAT(
      error_of([&] {
        load(
            "[axis]\na = [1]\n[computed]\nb = \"a * train.seed\"\nc = \"b + 1\"\n[[exclude]]\nwhen = { c = 2 }\n"
            "why = \"w\"\n");
      }),
      HasSubstr("c is computed from the seed"));
}

TEST_F(Language, AnExclusionMayLeaveOutWhereAnotherCannotBeComputed) {
  EXPECT_THAT(cells("[axis]\na = [0, 1, 2]\n[computed]\nb = \"2 / a\"\n[[exclude]]\nwhen = { a = 0 }\nwhy = \"v\"\n"
                    "[[exclude]]\nwhen = { b = 2 }\nwhy = \"w\"\n"),
              ElementsAre("a=2"));
}

TEST_F(Language, SettingsMayHaveTheNamesOfAGridsKeys) {
  EXPECT_THAT(runs("[set]\nsample.temperature = 0.7\nseeds.data = 3\n[axis]\nbase = [2, 10]\n"),
              ElementsAre("base=2 sample.temperature=0.7 seeds.data=3", "base=10 sample.temperature=0.7 seeds.data=3"));
}

TEST_F(Language, UnsetLeavesOutWhatABaseSets) {
  test::write_text(folder_ / "base.toml", "a = 1\nm.x = 2\nm.y = 3\n");
  EXPECT_THAT(runs("base = \"base.toml\"\nunset = \"m\"\n[axis]\nz = [1]\n"), ElementsAre("a=1 z=1"));
  EXPECT_THAT(runs("base = \"base.toml\"\nunset = \"m\"\n[set]\nm.n = 4\n[axis]\nz = [1]\n"),
              ElementsAre("a=1 m.n=4 z=1"))
      << "a table, and then a setting in it";
  EXPECT_THAT(
      runs("base = \"base.toml\"\n[[axis.s]]\nlabel = \"full\"\n[[axis.s]]\nlabel = \"- x\"\nunset = [\"m.x\"]\n"),
      ElementsAre("a=1 m.x=2 m.y=3", "a=1 m.y=3"));
}

std::string many(int n) { return fmt::format("[axis]\na = {{ from = 1, to = {}, step = 1 }}\nb = [true, false]\n", n); }

TEST_F(Language, ALargerSampleKeepsThePointsOfASmallerOne) {
  const auto sample = [&](int count, int seed, int n = 50) {
    const auto all = cells(fmt::format("sample = {{ count = {}, seed = {} }}\nseeds = 1\n{}", count, seed, many(n)));
    return std::set<std::string>(all.begin(), all.end());
  };
  const std::set<std::string> few = sample(10, 1), more = sample(25, 1);
  EXPECT_EQ(few.size(), 10u);
  EXPECT_EQ(more.size(), 25u);
  EXPECT_TRUE(std::ranges::includes(more, few));
  EXPECT_NE(few, sample(10, 2));
  EXPECT_EQ(sample(1000, 1).size(), 100u) << "no more than there are";
  // A value that is added to the grid takes the place of some points and moves no others.
  const std::set<std::string> grown = sample(10, 1, 60);
  int kept = 0;
  for (const std::string& point : few) kept += grown.contains(point);
  EXPECT_GE(kept, 6);
}

TEST_F(Language, ASampleTellsAxesWithTheSameLabelsApart) {
  EXPECT_THAT(cells("sample = { count = 7 }\n[axis]\na = [1, 2, 3, 4]\nb = [1, 2, 3, 4]\n"), testing::SizeIs(7));
}

TEST_F(Language, ASampleIsOfThePointsThatAreNotExcludedWithAllTheirSeeds) {
  const Grid grid =
      load("seeds = 3\nsample = { count = 4 }\n" + many(5) + "[[exclude]]\nwhen = { b = true }\nwhy = \"w\"\n");
  EXPECT_EQ(runs_of(grid).size(), 12u);
  EXPECT_EQ(drawn_text(*grid.sample), "4 of 5 points, drawn at random with seed 1");
  int excluded_points = 0;
  for_each_cell(grid, [&](const Combination&, const Exclusion* excluded) { excluded_points += excluded != nullptr; });
  EXPECT_EQ(excluded_points, 5);
}

// Every point has the same chance: of 200 samples of 5 of 20 points, each is in about 50.
TEST_F(Language, ASampleFavoursNoPoint) {
  std::map<std::string, int> times;
  for (int seed = 1; seed <= 200; ++seed) {
    for (const std::string& cell : cells(fmt::format("sample = {{ count = 5, seed = {} }}\n{}", seed, many(10))))
      ++times[cell];
  }
  EXPECT_EQ(times.size(), 20u);
  for (const auto& [cell, count] : times) {
    EXPECT_GT(count, 50 - 5 * 6.1) << cell;  // five standard deviations
    EXPECT_LT(count, 50 + 5 * 6.1) << cell;
  }
}

// 17,810,400 points, of which a listing would have to hash each.
constexpr const char* kLarge = R"(
[axis]
hidden = [256, 512, 768, 1024]
pooling = ["max", "mean"]
dropout = { from = 0.1, to = 0.5, count = 41 }
lr = { from = 1e-5, to = 1e-2, count = 100, scale = "log" }
epochs = { from = 20, to = 200, step = 1 }
model = ["a", "b", "c"]
)";

TEST_F(Language, ASampleOfALargeGridIsDrawnWithoutAListing) {
  const auto sample = [&](const std::string& options, std::string text = kLarge) {
    const auto all = cells("sample = { " + options + " }\n" + text);
    return std::set<std::string>(all.begin(), all.end());
  };
  const std::set<std::string> few = sample("count = 30"), more = sample("count = 200");
  EXPECT_EQ(few.size(), 30u);
  EXPECT_EQ(more.size(), 200u);
  EXPECT_TRUE(std::ranges::includes(more, few));
  EXPECT_EQ(few, sample("count = 30"));
  EXPECT_NE(few, sample("count = 30, seed = 2"));
  const Grid grid = load(std::string("seeds = 2\nsample = { count = 30 }\n") + kLarge);
  EXPECT_EQ(drawn_text(*grid.sample), "30 of 17810400 points, drawn at random with seed 1");
  EXPECT_EQ(runs_of(grid).size(), 60u);
  std::vector<std::vector<uint32_t>> order;
  for (const Combination& run : runs_of(grid)) order.push_back(run.index);
  EXPECT_TRUE(std::ranges::is_sorted(order)) << "in the grid's order";
  std::string grown = kLarge;
  grown.replace(grown.find("\"a\""), 3, "\"d\", \"a\"");
  int kept = 0;
  for (const std::string& point : sample("count = 30", grown)) kept += few.contains(point);
  EXPECT_GE(kept, 15) << "a value that is added takes a quarter of them";
  EXPECT_LT(kept, 30);
}

TEST_F(Language, ASampleOfALargeGridFavoursNoValue) {
  std::map<std::string, int> times;
  std::map<std::pair<uint32_t, uint32_t>, int> pairs;
  const Grid grid = load(std::string("sample = { count = 2400 }\n") + kLarge);
  for (const Combination& run : runs_of(grid)) {
    for (const size_t axis : {0, 1, 5}) ++times[grid.axes[axis].points[run.index[axis]].label];
    ++pairs[{run.index[0], run.index[5]}];
  }
  EXPECT_EQ(times.size(), 9u);
  for (const auto& [pair, count] : pairs) EXPECT_NEAR(count, 200, 5 * std::sqrt(200)) << "one axis by another";
  for (const auto& [label, count] : times) {
    const double expected = label.size() == 1 ? 800 : label.starts_with('m') ? 1200 : 600;
    EXPECT_NEAR(count, expected, 5 * std::sqrt(expected)) << label;
  }
}

TEST_F(Language, ASampleOfALargeGridHasTheConditionsAndExclusionsOfTheGrid) {
  const Grid grid = load(std::string("sample = { count = 50 }\n") + kLarge +
                         "[axis.beta]\nvalues = [1, 2, 3]\nwhen = { model = \"a\" }\n"
                         "[[exclude]]\nwhen = { pooling = \"max\", hidden = \"> 512\" }\nwhy = \"w\"\n");
  EXPECT_EQ(drawn_text(*grid.sample), "50 of more than 10000000 points, drawn at random with seed 1");
  const std::vector<std::string> all = cells(grid);
  EXPECT_EQ(all.size(), 50u);
  for (const std::string& cell : all) {
    EXPECT_EQ(cell.find("model=a") == cell.npos, cell.ends_with("beta=–")) << cell;
    EXPECT_TRUE(cell.find("pooling=max") == cell.npos || cell.starts_with("hidden=256") ||
                cell.starts_with("hidden=512"))
        << cell;
  }
  EXPECT_THAT(error_of([&] { load(std::string("sample = { count = 2000000 }\n") + kLarge); }),
              testing::EndsWith("a sample of more than 10000000 combinations has at most 1000000 points"));
  EXPECT_THAT(
      error_of([&] { load(kLarge); }),
      testing::EndsWith("the grid has 1.78e+07 combinations; 10000000 is the most: remove values from its axes, "
                        "split it, or draw some of them: sample = { count = 20, seed = 1 }"));
}

// The points that builds of before have drawn, whose runs are trained.
TEST_F(Language, ASampleOfAGridThatCanBeListedIsTheOneOfBefore) {
  EXPECT_THAT(
      cells("sample = { count = 5, seed = 3 }\n[axis]\nlr = { from = 1, to = 50, step = 1 }\nb = [\"x\", \"y\"]\n"),
      ElementsAre("lr=1, b=x", "lr=4, b=y", "lr=17, b=y", "lr=30, b=y", "lr=36, b=y"));
}

TEST_F(Language, SettingsOfTheCommandLineWinOverTheFileAndAreTypedAsInIt) {
  const std::string text = "[set]\nlr = 1.0\nkind = \"a\"\n[axis]\nx = [1]\n";
  EXPECT_THAT(
      runs(load(text, {"lr=0.5", "n=3", "flag=true", "kind=pre", "s=\"7\"", "l=[1, 2]", "t=a.b/c", "d=2026-01-02"})),
      ElementsAre("d=\"2026-01-02\" flag=true kind=\"pre\" l=[1,2] lr=0.5 n=3 s=\"7\" t=\"a.b/c\" x=1"));
  const Grid grid = load(text, {"data=corpus/train"});
  EXPECT_EQ(materialise(grid, runs_of(grid).front()).folders.at("data"), std::filesystem::current_path().string())
      << "paths start where the command was typed";
  EXPECT_NE(grid.merged, load(text).merged);
  EXPECT_THAT(grid.words(), testing::EndsWith("grid.toml --set data=corpus/train"));
  const auto error = [&](const std::string& option, const std::string& more = "") {
    return error_of([&] { load(text + more, {option}); });
  };
  EXPECT_THAT(error("x=2"), HasSubstr("--set x: the axis x sets it"));
  EXPECT_THAT(error("train.seed=2"), HasSubstr("--only seed=N"));
  EXPECT_EQ(error("lr"), "--set \"lr\" must have the form key=value, as in --set train.max_epochs=10");
  EXPECT_EQ(error("lr="), "--set \"lr=\" must have the form key=value, as in --set train.max_epochs=10");
  EXPECT_THAT(error("l=[1, 2"), HasSubstr("--set l=[1, 2: the value is neither"));
  EXPECT_THAT(error("lr.x=1"), HasSubstr("lr.x is a setting below it"));
  EXPECT_THAT(error("y=2", "[computed]\ny = \"2 * x\"\n"), HasSubstr("--set y: [computed] sets it"));
  EXPECT_THAT(error("policy.grace=3"), HasSubstr("`policy.grace` is written in the grid file"));
  EXPECT_THAT(runs(load(text, {"table.rows=3", "n=3#x"})), ElementsAre("kind=\"a\" lr=1.0 n=\"3#x\" table.rows=3 x=1"));
}

TEST_F(Language, NoWordOfAGridFileCanBeSetOnTheCommandLine) {
  const std::string axis = "[axis]\nx = [1]\n", list = "known keys: ";
  const std::string unknown = error_of([&] { load("unknown = 1\n" + axis); });
  std::istringstream known(unknown.substr(unknown.find(list) + list.size()) + ", grids");
  int words = 0;
  for (std::string word; known >> word; ++words) {
    if (word.ends_with(',')) word.pop_back();
    EXPECT_EQ(error_of([&] { load(axis, {word + "=a"}); }),
              fmt::format("--set {0}: it sets settings of the runs; `{0}` is written in the grid file", word));
  }
  EXPECT_GT(words, 20) << unknown;
  EXPECT_THAT(runs(load(axis, {"title.x=1", "figure.y=2"})), ElementsAre("figure.y=2 title.x=1 x=1"));
}

TEST_F(Language, CountsHundredsOfThousandsOfConditionalPoints) {
  std::string text = "[axis]\na = { from = 1, to = 10, step = 1 }\n";
  for (const char* axis : {"b", "c", "d", "e", "f"}) {
    text += fmt::format("[axis.{}]\nvalues = {{ from = 1, to = 10, step = 1 }}\nwhen = {{ a = [1, 2, 3] }}\n", axis);
  }
  EXPECT_EQ(load(text).size(), 3 * 100'000 + 7);
}

// --- defaults of base files ------------------------------------------------------------------------------------------

TEST_F(Language, AnAxisWinsOverTheBaseFilesOfABundle) {
  test::write_text(folder_ / "parser.toml", "lr = 1\nnorm = \"pre\"\nseed = 7\n[train]\nseed = 5\n");
  test::write_text(folder_ / "translation.toml", "lr = 2\nnorm = \"post\"\n");
  const std::string tasks = R"(
[[axis.task]]
label = "parser"
base  = "parser.toml"
[[axis.task]]
label = "translation"
base  = "translation.toml"
)";
  const std::vector<std::string> both = {"lr=1 norm=\"none\" seed=7", "lr=1 norm=\"layer\" seed=7",
                                         "lr=2 norm=\"none\"", "lr=2 norm=\"layer\""};
  const std::string norms = "[axis]\nnorm = [\"none\", \"layer\"]\n";
  EXPECT_EQ(runs("seeds = 1\n" + tasks + norms), both);
  EXPECT_THAT(runs("seeds = 1\n" + norms + tasks), testing::UnorderedElementsAreArray(both)) << "in either order";
  EXPECT_EQ(runs(load("seeds = 1\n" + tasks + norms, {"lr=9"})).at(3), "lr=9 norm=\"layer\"") << "--set wins, too";
  EXPECT_THAT(error_of([&] { load(tasks + norms); }), HasSubstr("train.seed is set by seeds, no axis can set it"))
      << "without seeds it would be lost";
  EXPECT_THAT(error_of([&] { load("seeds = 1\n" + tasks + "set = { norm = \"rms\" }\n" + norms); }),
              HasSubstr("norm is already set by the axis task"))
      << "what a bundle sets itself is no default";
  EXPECT_THAT(
      error_of([&] { load("seeds = 1\n" + tasks + "[[axis.size]]\nlabel = \"s\"\nbase = \"translation.toml\"\n"); }),
      HasSubstr("is already set by the axis task"))
      << "nor are there two defaults";
}

TEST_F(Language, AnAxisOfASubGridWinsOverTheBaseFilesOfTheSubGrid) {
  test::write_text(folder_ / "a.toml", "lr = 1\n");
  test::write_text(folder_ / "b.toml", "lr = 2\n");
  const std::string text = R"(
[[subgrid]]
label = "a"
base  = "a.toml"
axis.lr = [3, 4]
[[subgrid]]
label = "b"
base  = "b.toml"
)";
  EXPECT_THAT(runs(text), ElementsAre("lr=3", "lr=4", "lr=2"));
  const std::string by_half = R"(
[axis]
x = [1, 2]
[[axis.task]]
label = "a"
base  = "a.toml"
[axis.lr]
values = [3]
when   = { x = 1 }
)";
  EXPECT_THAT(error_of([&] { load(by_half); }), HasSubstr("lr is already set by the axis task"))
      << "where the axis is absent";
}

}  // namespace
}  // namespace tearless::harness::language_test
