// Points that make the same runs are named with their axis, how many rows are how many runs, and why.
#include "harness/plan/no_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "harness/grid/expand.h"
#include "tests/support/paths.h"

namespace tearless::harness::no_effect_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class NoEffectTest : public testing::Test {
 protected:
  /// What `plan` says of a grid whose runs are what `id_of` says of their settings.
  std::vector<std::string> said_of(const std::string& text,
                                   const std::function<std::string(const nlohmann::json::object_t&)>& id_of,
                                   const std::map<std::string, std::string>& unused = {}) const {
    return said_of(text, id_of, [&](const auto&) { return unused; });
  }
  using UnusedIn = std::function<std::map<std::string, std::string>(const nlohmann::json::object_t&)>;
  std::vector<std::string> said_of(const std::string& text,
                                   const std::function<std::string(const nlohmann::json::object_t&)>& id_of,
                                   const UnusedIn& unused_in) const {
    test::write_text(folder_ / "grid.toml", text);
    const Grid grid = load_grid(folder_ / "grid.toml");
    std::vector<Row> rows;
    for (const Combination& point : runs_of(grid)) {
      Row& row = rows.emplace_back();
      const nlohmann::json::object_t settings = materialise(grid, point).settings;
      row.run.id = id_of(settings) + " " + std::to_string(point.seed);
      row.run.seed = point.seed;
      for (const auto& [key, why] : unused_in(settings)) {
        if (settings.contains(key)) row.run.unused.emplace(key, why);
      }
      for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
        row.run.coordinates.emplace_back(grid.axes[axis].name, grid.axes[axis].points[point.index[axis]].label);
      }
    }
    std::vector<std::string> said;
    for (const NoEffect& one : without_effect(grid, rows)) said.push_back(text_of(one));
    return said;
  }

  test::TempFolder folder_;
};

constexpr const char* kGrid = "seeds = 2\n[axis]\nkind = [\"invsqrt\", \"nowarmup\"]\nlr = [0.1, 0.2, 0.3]\n";

std::string without_lr_under_invsqrt(const nlohmann::json::object_t& settings) {
  const auto kind = settings.at("kind").get<std::string>();
  return kind == "invsqrt" ? kind : kind + settings.at("lr").dump();
}

TEST_F(NoEffectTest, OfAnAxisUnderSomePointsOfAnotherIsCountedThere) {
  EXPECT_THAT(said_of(kGrid, without_lr_under_invsqrt, {{"lr", "kind = \"invsqrt\""}, {"other", "x = 1"}}),
              ElementsAre("lr (0.1, 0.2, 0.3): 6 rows are 2 runs; kind = \"invsqrt\" switches it off"));
  EXPECT_THAT(said_of(kGrid, without_lr_under_invsqrt), ElementsAre("lr (0.1, 0.2, 0.3): 6 rows are 2 runs"));
  EXPECT_THAT(said_of(kGrid, without_lr_under_invsqrt, {{"lr", ""}}),
              ElementsAre("lr (0.1, 0.2, 0.3): 6 rows are 2 runs"))
      << "the program does not know why";
}

TEST_F(NoEffectTest, OfSomePointsNamesTheseOnly) {
  const auto id_of = [](const nlohmann::json::object_t& settings) {
    return settings.at("kind").dump() + (settings.at("lr").get<double>() > 0.15 ? "high" : "low");
  };
  EXPECT_THAT(said_of(kGrid, id_of), ElementsAre("lr (0.2, 0.3): 8 rows are 4 runs"));
}

TEST_F(NoEffectTest, OfAllAxesNamesEach) {
  EXPECT_THAT(said_of(kGrid, [](const auto&) { return "one"; }),
              ElementsAre("kind (invsqrt, nowarmup): 12 rows are 2 runs", "lr (0.1, 0.2, 0.3): 12 rows are 2 runs"));
}

TEST_F(NoEffectTest, IsNotSaidWhereEveryRunIsAnother) {
  EXPECT_THAT(said_of(kGrid,
                      [](const nlohmann::json::object_t& settings) {
                        return settings.at("kind").dump() + settings.at("lr").dump();
                      }),
              IsEmpty());
}

std::string id_of_all(const nlohmann::json::object_t& settings) { return nlohmann::json(settings).dump(); }
/// peak switches lr off.
std::map<std::string, std::string> lr_under_peak(const nlohmann::json::object_t& settings) {
  const auto peak = settings.find("peak");
  if (peak == settings.end()) return {};
  return {{"lr", "peak = " + peak->second.dump()}};
}

TEST_F(NoEffectTest, OfASettingOfAnyLayerIsSaidWithItsPlace) {
  const std::string axis = "[axis]\nwidth = [1, 2]\n";
  EXPECT_THAT(said_of("[set]\nlr = 1\npeak = 2\n" + axis, id_of_all, lr_under_peak),
              ElementsAre("lr (" + (folder_ / "grid.toml").string() + ":2); peak = 2 switches it off"));
  EXPECT_THAT(said_of("[set]\npeak = 2\n[axis]\nlr = [1]\n", id_of_all, lr_under_peak),
              ElementsAre("lr (" + (folder_ / "grid.toml").string() + ":4); peak = 2 switches it off"));
  EXPECT_THAT(said_of("[set]\nlr = 1\n[axis]\npeak = [2, 3]\n", id_of_all, lr_under_peak),
              ElementsAre("lr (" + (folder_ / "grid.toml").string() + ":2); peak = 2 or peak = 3 switches it off"));
  EXPECT_THAT(said_of("[set]\nlr = 1\n" + axis, id_of_all, {{"lr", "kind = \"a\""}}),
              ElementsAre("lr (" + (folder_ / "grid.toml").string() + ":2); kind = \"a\" switches it off"))
      << "a default switches it off";
}

TEST_F(NoEffectTest, OfABundlesSettingIsSaidOfThatBundle) {
  EXPECT_THAT(said_of("[[axis.rate]]\nlabel = \"one\"\nset = { lr = 1 }\n"
                      "[[axis.rate]]\nlabel = \"two\"\nset = { lr = 2, peak = 2 }\n",
                      id_of_all, lr_under_peak),
              ElementsAre("lr (" + (folder_ / "grid.toml").string() + ":6); peak = 2 switches it off"));
}

TEST_F(NoEffectTest, OfASettingThatSomeRunsNeedIsNotSaid) {
  EXPECT_THAT(
      said_of("[set]\nlr = 1\n[axis]\nrate = [{ label = \"a\", set = { peak = 2 } }, { label = \"b\", set = { x "
              "= 1 } }]\n",
              id_of_all, lr_under_peak),
      IsEmpty());
}

// Recipes are base files; a grid that takes one and sets something else means it.
TEST_F(NoEffectTest, OfASettingOfABaseFileIsSaidIfThatFileItselfSwitchesItOff) {
  test::write_text(folder_ / "recipe.toml", "lr = 1\n");
  test::write_text(folder_ / "other.toml", "peak = 3\n");
  const std::string axis = "[axis]\nwidth = [1, 2]\n";
  EXPECT_THAT(said_of("base = \"recipe.toml\"\n[set]\npeak = 2\n" + axis, id_of_all, lr_under_peak), IsEmpty());
  EXPECT_THAT(said_of("base = [\"recipe.toml\", \"other.toml\"]\n" + axis, id_of_all, lr_under_peak), IsEmpty());
  EXPECT_THAT(said_of("base = \"other.toml\"\n[set]\nlr = 2\n" + axis, id_of_all, lr_under_peak),
              ElementsAre("lr (" + (folder_ / "grid.toml").string() + ":3); peak = 3 switches it off"))
      << "the grid's own, which the recipe switches off";
  test::write_text(folder_ / "recipe.toml", "lr = 1\npeak = 3\n");
  EXPECT_THAT(said_of("base = \"recipe.toml\"\n" + axis, id_of_all, lr_under_peak),
              ElementsAre("lr (" + (folder_ / "recipe.toml").string() + ":1); peak = 3 switches it off"));
}

TEST_F(NoEffectTest, OfASettingOfADerivationIsSaidIfNoneOfItsRunsNeedsIt) {
  test::write_text(folder_ / "grid.toml", "[axis]\na = [1, 2]\n[derived.wide]\nbeam = 1\nalpha = 0.5\n");
  const Grid grid = load_grid(folder_ / "grid.toml");
  std::vector<Row> rows(2);
  for (Row& row : rows) {
    row.derivation = "wide";
    row.run.id = std::to_string(&row - rows.data());
    row.run.unused = {{"derived.alpha", "derived.beam = 1"}};
  }
  const auto said = [&] {
    std::vector<std::string> all;
    for (const NoEffect& one : without_effect(grid, rows)) all.push_back(text_of(one));
    return all;
  };
  EXPECT_THAT(said(), ElementsAre("derived.wide alpha; derived.beam = 1 switches it off"));
  rows[1].run.unused.clear();
  EXPECT_THAT(said(), IsEmpty()) << "one of them needs it";
}

// Two bundles that are one run at different points of two axes: no axis alone is without effect.
TEST_F(NoEffectTest, IsNotSaidOfRunsThatDifferInTwoAxes) {
  EXPECT_THAT(said_of("[axis]\na = [1, 2]\nb = [1, 2]\n",
                      [](const nlohmann::json::object_t& settings) {
                        return std::to_string(settings.at("a").get<int>() * settings.at("b").get<int>());
                      }),
              IsEmpty());
}

TEST_F(NoEffectTest, OfKeysOfViewsIsSaidWithTheirLine) {
  const auto said = [&](const std::string& views, const std::string& seeds = "seeds = 2\n") {
    test::write_text(folder_ / "grid.toml", seeds + "[axis]\na = [1, 2]\n" + views);
    std::vector<std::string> all;
    for (const NoEffect& one : without_effect(views_of(load_grid(folder_ / "grid.toml")))) {
      all.push_back(text_of(one));
      for (size_t at; (at = all.back().find(folder_.path().string() + "/")) != std::string::npos;)
        all.back().erase(at, folder_.path().string().size() + 1);
    }
    return all;
  };
  const std::string best = "[table]\nbest = \"lowest\"\n", figure = "[[figure]]\ncaption = \"f\"\ny = \"m\"\n",
                    claim = "[[claim]]\ntext = \"c\"\nbetter = [\"1\", \"2\"]\nscore = \"s\"\n";
  EXPECT_THAT(said(best), ElementsAre("[table] best (grid.toml:5)"));
  for (const char* user : {"bold = \"best\"\n", "baseline = \"1\"\n", "[table.test]\n", "show = \"{max}\"\n"})
    EXPECT_THAT(said(best + user), IsEmpty()) << user;
  EXPECT_THAT(said(best + "scores = \"s\"\n" + claim), IsEmpty());
  EXPECT_THAT(said(best + "[score.both]\nof = [\"dev.ppl\", \"dev.bleu\"]\ntake = \"mean\"\n"), IsEmpty())
      << "of which it says the direction";
  EXPECT_THAT(said("[table]\nbaseline = \"1\"\nbold = false\n[table.test]\nbold = false\n"),
              ElementsAre("[table.test] bold (grid.toml:8); bold of [table] (grid.toml:6) switches it off"));
  EXPECT_THAT(said("[table]\nbaseline = \"1\"\n[table.test]\nbold = false\n"), IsEmpty());
  EXPECT_THAT(said(figure + "band = \"range\"\nfewer_seeds = \"end\"\nlines = \"seed\"\n"),
              ElementsAre("[[figure]] band (grid.toml:7); lines = \"seed\" switches it off",
                          "[[figure]] fewer_seeds (grid.toml:8); lines = \"seed\" switches it off"));
  EXPECT_THAT(said(figure + "band = \"range\"\n"), IsEmpty());
  EXPECT_THAT(said(figure + "band = \"range\"\n", ""),
              ElementsAre("[[figure]] band (grid.toml:6); a single seed switches it off"));
  EXPECT_THAT(said(figure + "y_axes = \"own\"\n"), ElementsAre("[[figure]] y_axes (grid.toml:7)"));
  EXPECT_THAT(said(figure + "y_axes = \"own\"\npanels = \"a\"\n"), IsEmpty());
}

}  // namespace
}  // namespace tearless::harness::no_effect_test
