// A grid's points: their order, what is left out, what `--only` admits, and that many of them cost little.
#include "harness/grid/expand.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/settings.h"
#include "tests/support/golden.h"
#include "tests/support/paths.h"

namespace tearless::harness::expand_test {
namespace {

using test::TempFolder;
using test::write_text;

constexpr const char* kGrid = R"(
seeds = [1, 5]
[set]
"train.lr" = 0.1
[axis]
"model.init" = ["xavier_normal", "small_init"]
[[axis.system]]
label = "post"
set = { "model.placement" = "post" }
[[axis.system]]
label = "pre, slow"
set = { "model.placement" = "pre", "train.lr" = 0.01 }
[[exclude]]
when = { "model.init" = "xavier_normal", "model.placement" = "post" }
why = "known to fail"
[[exclude]]
when = { "train.lr" = 0.01, "model.init" = "small_init" }
why = "too slow"
)";

Grid load_text(std::string_view text) {
  const TempFolder folder;
  write_text(folder / "grid.toml", text);
  return load_grid(folder / "grid.toml");
}

TEST(Expand, WritesAxesInOrderWithSeedsInnermostGolden) {
  const Grid grid = load_text(kGrid);
  std::string text;
  for_each_combination(grid, [&](const Combination& point, const Exclusion* excluded) {
    text += describe_combination(grid, point) + (excluded ? "  (left out: " + excluded->why + ")" : "") + "\n";
    for (const auto& [key, value] : materialise(grid, point).settings) {
      text += fmt::format("    {} = {}\n", key, toml_value(value));
    }
  });
  test::expect_golden("harness/expansion.txt", text);
}

TEST(Expand, LeavesOutOfTheRunsWhatIsExcluded) {
  const Grid grid = load_text(kGrid);
  EXPECT_EQ(grid.size(), 8);
  EXPECT_EQ(runs_of(grid).size(), 4u);
}

TEST(Expand, ARefusalIsAboutTheSettingThatAnAxisSets) {
  const TempFolder folder;
  write_text(folder / "grid.toml", "[set]\nm.d = 6\nm.e = 1\ntrain.seed = 1\n[axis]\nm.h = [\n  3,\n  4]\nm.f = [1]\n");
  const Grid grid = load_grid(folder / "grid.toml");
  const auto line = [&](const std::string& key, const std::string& sentence) -> std::string {
    const std::string* location = refused_location(grid, runs_of(grid)[1], key, sentence);
    return location ? location->substr(location->rfind(':') + 1) : "none";
  };
  EXPECT_EQ(line("m.h", "m.h = 4 does not divide m.d = 6"), "8");
  EXPECT_EQ(line("m.d", "m.d = 6 is no multiple of m.h = 4"), "8") << "of the setting that varies";
  EXPECT_EQ(line("m.d", "m.d must be a multiple of m.h."), "8");
  EXPECT_EQ(line("m.h", "m.f does not go with m.h"), "8") << "both vary: the one that the program names";
  EXPECT_EQ(line("m.d", "m.d and m.e are both set"), "2") << "neither varies";
  EXPECT_EQ(line("m.d", "unknown setting \"m.d\" (did you mean \"m.h\"?)"), "2") << "a suggestion";
  EXPECT_EQ(line("m.d", "m.d does not go with m.h.x, my_m.h and xm.h"), "2") << "other keys";
  EXPECT_EQ(line("", "m.h is too large"), "8") << "the program names none";
  EXPECT_EQ(line("", "something is wrong"), "none");
  EXPECT_EQ(line("m.x", "m.x is missing"), "none");
  EXPECT_EQ(line("train.seed", "train.seed = 1 is too small"), "none") << "the seed is of `seeds`";
}

TEST(Expand, ARefusalIsAboutThePointThatLeavesTheSettingOut) {
  const TempFolder folder;
  write_text(folder / "base.toml", "m.d = 6\nm.e = 1\n");
  write_text(folder / "grid.toml",
             "base = \"base.toml\"\n[[axis.s]]\nlabel = \"full\"\n[[axis.s]]\nlabel = \"- d\"\nunset = \"m.d\"\n");
  const Grid grid = load_grid(folder / "grid.toml");
  const auto location = [&](size_t run, const std::string& key, const std::string& sentence) {
    const std::string text = *refused_location(grid, runs_of(grid)[run], key, sentence);
    return text.substr(text.rfind('/') + 1);
  };
  EXPECT_EQ(location(1, "m.d", "m.d is missing"), "grid.toml:4");
  EXPECT_EQ(location(1, "m.e", "m.e = 1 needs m.d"), "grid.toml:4");
  EXPECT_EQ(location(0, "m.d", "m.d is too large"), "base.toml:1") << "a point that has it";
}

TEST(Expand, OnlyAdmitsAlternativesOfAnAxisAndAllOfTheOthers) {
  const Grid grid = load_text(kGrid);
  EXPECT_EQ(runs_of(grid, Only(grid, {"model.init=small_init"})).size(), 2u);
  EXPECT_EQ(runs_of(grid, Only(grid, {"model.init=small_init", "model.init=xavier_normal"})).size(), 4u);
  EXPECT_EQ(runs_of(grid, Only(grid, {"seed=5", "system=post"})).size(), 1u);
}

TEST(Expand, OnlyNamesAnUnknownAxisOrValue) {
  const Grid grid = load_text(kGrid);
  const auto error_of = [&](const std::string& only) -> std::string {
    try {
      Only(grid, {only});
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of("system"), "--only \"system\" must have the form axis=label");
  EXPECT_EQ(error_of("sistem=post"),
            "--only: the grid has no axis sistem (did you mean \"system\"?); it has: model.init, system");
  EXPECT_EQ(error_of("system=pst"),
            "--only: the axis system has no value \"pst\" (did you mean \"post\"?); it has: post, pre, slow");
  EXPECT_THAT(error_of("seed=2"), testing::EndsWith("has no seed 2; it has: 1, 5"));
}

TEST(Expand, ListsAMillionPointsOnceEach) {
  std::string text = "seeds = 10\n[axis]\n";
  for (const char* axis : {"a", "b", "c", "d", "e"}) text += std::string(axis) + " = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
  text += "[[exclude]]\nwhen = { a = 3, e = 4 }\nwhy = \"w\"\n";
  const Grid grid = load_text(text);
  int64_t points = 0;
  int64_t excluded_points = 0;
  int64_t previous = -1;
  bool ascending = true;
  for_each_combination(grid, [&](const Combination& point, const Exclusion* excluded) {
    int64_t number = 0;
    for (const uint32_t digit : point.index) number = number * 10 + digit;
    number = number * 10 + point.seed - 1;
    ascending &= number == previous + 1;
    previous = number;
    ++points;
    excluded_points += excluded != nullptr;
  });
  EXPECT_EQ(points, 1'000'000);
  EXPECT_EQ(excluded_points, 10'000);
  EXPECT_TRUE(ascending);
}

TEST(Expand, RefusesMoreRunsThanCanBePlannedAndTakesAPart) {
  std::string text = "seeds = 2\n[axis]\n";
  for (const char* axis : {"a", "b", "c", "d", "e"}) text += std::string(axis) + " = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
  EXPECT_EQ(runs_of(load_text(text)).size(), 200'000u);
  const Grid grid = load_text(text + "f = [0, 1]\n");
  try {
    runs_of(grid);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::EndsWith("the grid asks for more than 200000 runs, the most that can be planned "
                                                "together; choose a part of it with --only"));
  }
  EXPECT_EQ(runs_of(grid, Only(grid, {"f=1"})).size(), 200'000u);
}

TEST(Exclusion, OfAValueHoldsWhereAPointLeavesItAsTheGridSetsIt) {
  const Grid grid = load_text(R"(
[set]
drop = 0.1
[axis]
norm = ["none", "layer"]
[[axis.size]]
label = "small"
set = { width = 64 }
[[axis.size]]
label = "large"
set = { width = 512, drop = 0.3 }
[[axis.size]]
label = "wide"
set = { width = 1024, drop = 0.1 }
[[exclude]]
when = { norm = "none", drop = 0.1 }
why = "w"
)");
  std::vector<std::string> left_out;
  for_each_combination(grid, [&](const Combination& point, const Exclusion* excluded) {
    if (excluded) left_out.push_back(describe_combination(grid, point));
  });
  EXPECT_THAT(left_out, testing::ElementsAre(testing::HasSubstr("small"), testing::HasSubstr("wide")));
}

}  // namespace
}  // namespace tearless::harness::expand_test
