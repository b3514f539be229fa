// The sections [derived.NAME] and [test.NAME] of a grid: what is asked of the training program for them, and the
// sentence for each mistake. The runs of the grid are the same with and without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "harness/grid/expand.h"
#include "harness/grid/grid.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::derivations_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGrid = R"(seeds = 2
[axis]
"model.kind" = ["a", "b"]
)";
constexpr const char* kDerivations = R"(
[test.late]
source = "news/late.de"
reference = "news/late.en"
[derived.mark]
kind = "score"
outputs = "wide"
metric = "chrf"
[derived.wide]
beam = 8
set = "late"
[derived.again]
nested.key = 0.5
)";

Grid load_text(const test::TempFolder& folder, const std::string& text) {
  test::write_text(folder / "grid.toml", text);
  return load_grid(folder / "grid.toml");
}

TEST(Derivations, AreAskedForWithTheSettingsOfTheirRunAndTheirOwn) {
  const test::TempFolder folder;
  const Grid grid = load_text(folder, std::string(kGrid) + kDerivations);
  std::vector<std::string> names;
  for (const Derivation& derivation : grid.derivations) names.push_back(derivation.name);
  EXPECT_THAT(names, ElementsAre("wide", "again", "mark")) << "what scores outputs comes after what has them";

  const Combination point = runs_of(grid).at(3);
  const RunSpec trained = materialise(grid, point);
  EXPECT_TRUE(trained.derived.empty());
  const json wide = {
      {"derived.kind", "decode"}, {"derived.name", "wide"},           {"derived.beam", 8},
      {"derived.set", "late"},    {"derived.source", "news/late.de"}, {"derived.reference", "news/late.en"}};
  const RunSpec decoded = materialise(grid, point, &grid.derivation("wide"));
  EXPECT_EQ(decoded.settings, trained.settings);
  EXPECT_EQ(decoded.folder, folder.path().string());
  EXPECT_EQ(json(decoded.derived), json::array({wide}));
  EXPECT_EQ(json(materialise(grid, point, &grid.derivation("again")).derived),
            (json::array({{{"derived.kind", "decode"}, {"derived.name", "again"}, {"derived.nested.key", 0.5}}})));
  EXPECT_EQ(json(materialise(grid, point, &grid.derivation("mark")).derived),
            (json::array({wide, {{"derived.kind", "score"}, {"derived.name", "mark"}, {"derived.metric", "chrf"}}})));
}

TEST(Derivations, MayBeOfTheTrainingSet) {
  const test::TempFolder folder;
  const Grid grid = load_text(folder, std::string(kGrid) + "[derived.fit]\nset = \"train\"\nsample = 9\n");
  EXPECT_EQ(
      json(materialise(grid, runs_of(grid).at(0), &grid.derivation("fit")).derived),
      (json::array(
          {{{"derived.kind", "decode"}, {"derived.name", "fit"}, {"derived.set", "train"}, {"derived.sample", 9}}})));
}

TEST(Derivations, LeaveTheRunsOfTheGridAsTheyAre) {
  const test::TempFolder folder;
  const Grid plain = load_text(folder, kGrid), with = load_text(folder, std::string(kGrid) + kDerivations);
  EXPECT_EQ(plain.size(), with.size());
  for (const Combination& point : runs_of(plain)) {
    EXPECT_EQ(materialise(plain, point).settings, materialise(with, point).settings);
  }
  EXPECT_NE(plain.merged, with.merged);
  const Grid again = parse_grid(with.merged, folder / "merged.toml");
  ASSERT_EQ(again.derivations.size(), 3u);
  for (const Derivation& derivation : with.derivations) {
    EXPECT_EQ(json(materialise(again, runs_of(again).front(), &again.derivation(derivation.name)).derived),
              json(materialise(with, runs_of(with).front(), &derivation).derived));
  }
}

TEST(Derivations, MistakesAreNamedWithTheirLine) {
  const test::TempFolder folder;
  const auto error = [&](const std::string& sections) {
    return test::error_of([&] { load_text(folder, std::string(kGrid) + sections); });
  };
  EXPECT_THAT(error("[derived.x]\nbeam = 2\n[derived.x]\nbeam = 3\n"), HasSubstr("grid.toml:6"));
  EXPECT_THAT(error("[derived.x]\noutputs = \"wiede\"\n[derived.wide]\n"),
              AllOf(HasSubstr("grid.toml:4: [derived.x]: there is no [derived.wiede]"), HasSubstr("\"wide\"")));
  EXPECT_THAT(error("[derived.x]\n[derived.y]\noutputs = \"x\"\n[derived.z]\noutputs = \"y\"\n"),
              HasSubstr("grid.toml:7: [derived.z]: outputs = \"y\" scores outputs itself"));
  EXPECT_THAT(
      error("[derived.x]\nset = \"lat\"\n[test.late]\nsource = \"a\"\nreference = \"b\"\n"),
      AllOf(HasSubstr("grid.toml:5: there is no set \"lat\" (did you mean \"late\"?)"), HasSubstr("[test.lat]")));
  EXPECT_THAT(error("[test.late]\nsource = \"a\"\n"), HasSubstr("grid.toml:4: [test.late] needs source and reference"));
  EXPECT_THAT(error("[test.late]\nsource = \"a\"\nreference = \"b\"\nlanguage = \"de\"\n"), HasSubstr("grid.toml:7: "));
  EXPECT_THAT(error("[derived.x]\nname = \"y\"\n"), HasSubstr("grid.toml:5: [derived.x] cannot set name"));
  EXPECT_THAT(error("[derived.x]\nsource = \"y\"\n"), HasSubstr("named in [test.NAME]"));
  EXPECT_THAT(error("[derived.\"a b\"]\n"), HasSubstr("grid.toml:4: [derived.a b]: the name must be letters"));
  EXPECT_THAT(error("[derived.test]\n"), HasSubstr("grid.toml:4: [derived.test]: scores and sets of every run"));
  EXPECT_THAT(error("[test.dev]\nsource = \"a\"\nreference = \"b\"\n"), HasSubstr("[test.dev]: scores and sets"));
  EXPECT_THAT(error("[derived]\nx = 3\n"), HasSubstr("grid.toml:5: "));
  EXPECT_THAT(test::error_of([&] { load_text(folder, "[axis]\nderived = [1]\n"); }),
              HasSubstr("grid.toml:2: an axis cannot be called derived"));
}

}  // namespace
}  // namespace tearless::harness::derivations_test
