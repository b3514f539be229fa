// A grid that was written as JSON and read again is the same grid, whatever its files hold.
#include "harness/grid/grid_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "harness/grid/expand.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::grid_json_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::error_of;

constexpr const char* kEverything = R"(
title = "Ein Gitter, “zitiert”\n\u001b[31m"
seeds = [3, -9007199254740993]
seed_key = "x.seed"
program = "bin/other"
base = "base.toml"
[set]
a.flag = true
a.whole = 9007199254740993
a.number = 1.0
a.text = "ü"
a.list = [1, 2.5, "three"]
[axis]
b.value = [0.1, 1e-30, 7]
c = ["pre", "post"]
[[axis.bundle]]
label = "small"
base = "base.toml"
[[axis.bundle]]
label = "large"
set = { d = 512, "e.f" = "x" }
[[axis.layers]]
label = "1"
set = { n = 1 }
[[axis.layers]]
label = "2"
set = { n = 2 }
[[exclude]]
when = { c = "pre", "b.value" = 7 }
why = "too slow"
[[exclude]]
when = { bundle = "large", d = 512, c = "post" }
why = "too large"
[policy]
memory = "8 GiB"
stall_timeout = 60
grace = 120
tries = { crashed = 5 }

[table]
caption = "A caption"
rows = ["c"]
columns = ["bundle", "b.value"]
scores = ["test.b*", "test.a"]
decimals = { "test.a" = 3, "*" = 1 }
fail_below = 1.5
cell = { show = "mean ± std" }
select = { over = ["layers"], by = "dev.a", best = "lowest" }
published = { source = "A paper", score = "test.a", values = [[29.5, 30, "fail", "", 0], [1, 2, 3, 4, 5]] }
)";

class GridJson : public testing::Test {
 protected:
  GridJson() { test::write_text(folder_ / "base.toml", "x.y = 5\n[data]\ntrain = \"corpus\"\n"); }

  Grid load(const std::string& text) const {
    test::write_text(folder_ / "grid.toml", text);
    return load_grid(folder_ / "grid.toml");
  }

  test::TempFolder folder_;
};

void expect_same_after_writing_and_reading(const Grid& grid) {
  const std::string text = to_json(grid).dump();
  const Grid read = grid_from(json::parse(text));
  EXPECT_TRUE(read == grid) << text;
  EXPECT_EQ(to_json(read).dump(), text) << "1 and 1.0 are equal and print differently";
  const std::vector<GridPoint> points = runs_of(grid);
  ASSERT_EQ(runs_of(read).size(), points.size());
  for (const GridPoint& point : points) {
    EXPECT_EQ(json(materialise(read, point).settings).dump(), json(materialise(grid, point).settings).dump());
  }
}

TEST_F(GridJson, KeepsEverythingThatAGridCanHold) { expect_same_after_writing_and_reading(load(kEverything)); }

TEST_F(GridJson, KeepsEachWayToShowACell) {
  for (const char* show : {"mean ± std (n)", "mean ± std", "mean"}) {
    expect_same_after_writing_and_reading(
        load(std::string("[axis]\na = [1]\n[table]\ncell = { score = \"s\", show = \"") + show + "\" }\n"));
  }
}

TEST_F(GridJson, KeepsEveryGridOfTheRepository) {
  int grids = 0;
  for (const auto& entry : fs::directory_iterator(test::source_root() / "grids")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path());
    expect_same_after_writing_and_reading(load_grid(entry.path()));
    ++grids;
  }
  EXPECT_GE(grids, 7);
}

TEST_F(GridJson, KeepsEveryGridOfTheTests) {
  int grids = 0;
  for (const char* folder : {"tests/fuzz/corpus/grid", "tests/golden/harness/workspace"}) {
    for (const auto& entry : fs::directory_iterator(test::source_root() / folder)) {
      if (entry.path().extension() != ".toml") continue;
      SCOPED_TRACE(entry.path());
      try {
        expect_same_after_writing_and_reading(load(test::read_text(entry.path())));
        ++grids;
      } catch (const UserError&) {  // a mistake on purpose
      }
    }
  }
  EXPECT_GE(grids, 4);
}

TEST_F(GridJson, HasTheSameContentWhereverItsFilesAre) {
  const Grid grid = load(kEverything);
  const Grid with_comments = load(std::string("# a comment\n\n") + kEverything);
  EXPECT_FALSE(grid == with_comments);
  EXPECT_TRUE(have_same_content(grid, with_comments));
  const test::TempFolder elsewhere;
  const std::string text = "base = \"base.toml\"\n[axis]\na = [1]\n";
  test::write_text(elsewhere / "grid.toml", text);
  test::write_text(elsewhere / "base.toml", test::read_text(folder_ / "base.toml"));
  EXPECT_TRUE(have_same_content(load(text), load_grid(elsewhere / "grid.toml")));
}

TEST_F(GridJson, HasOtherContentAfterAnyEdit) {
  const Grid grid = load(kEverything);
  const std::pair<const char*, const char*> edits[] = {{"Ein Gitter", "Kein Gitter"},
                                                       {"[3, -9", "[4, -9"},
                                                       {"x.seed", "y.seed"},
                                                       {"a.whole = 9", "a.whole = 8"},
                                                       {"1e-30", "1e-31"},
                                                       {"label = \"small\"", "label = \"tiny\""},
                                                       {"n = 2", "n = 3"},
                                                       {"too slow", "too slow!"},
                                                       {"A caption", "Another"},
                                                       {"fail_below = 1.5", ""},
                                                       {"lowest", "highest"},
                                                       {"29.5", "29.4"},
                                                       {"\"mean ± std\"", "\"mean\""},
                                                       {"\"*\" = 1", "\"*\" = 2"},
                                                       {"A paper", "No paper"}};
  for (const auto& [before, after] : edits) {
    std::string text = kEverything;
    ASSERT_NE(text.find(before), std::string::npos) << before;
    const Grid edited = load(text.replace(text.find(before), std::string_view(before).size(), after));
    EXPECT_FALSE(have_same_content(grid, edited)) << before;
  }
  const std::string excluding = "[axis]\na = [1, 2, 3]\n[[exclude]]\nwhy = \"w\"\nwhen = { a = ";
  EXPECT_FALSE(have_same_content(load(excluding + "2 }\n"), load(excluding + "3 }\n")));
  test::write_text(folder_ / "base.toml", "x.y = 6\n[data]\ntrain = \"corpus\"\n");
  EXPECT_FALSE(have_same_content(grid, load(kEverything))) << "the base file was edited";
}

// Each would be a crash later.
TEST_F(GridJson, RefusesNumbersAndNamesThatDoNotFitTogether) {
  const json whole = to_json(load(kEverything));
  const auto refused = [&](const std::string& pointer, const json& value) {
    json changed = whole;
    changed[json::json_pointer(pointer)] = value;
    try {
      grid_from(changed);
    } catch (const std::exception&) {  // a UserError, or nlohmann's
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused("/table/rows/0", "d"));
  EXPECT_TRUE(refused("/table/select/over/0", "d"));
  EXPECT_TRUE(refused("/exclude/0/when/0/axis", "d"));
  EXPECT_TRUE(refused("/axes/0/points", json::array()));
  EXPECT_TRUE(refused("/seeds", json::array()));
  EXPECT_TRUE(refused("/table/published/values", json::array()));
  EXPECT_TRUE(refused("/table/published/values/1", json::array({1, 2})));
  EXPECT_TRUE(refused("/table/show", "sideways"));
  EXPECT_TRUE(refused("/table/scores", 3));
  EXPECT_TRUE(refused("/axes", nullptr));
  EXPECT_FALSE(refused("/title", "another"));
}

TEST_F(GridJson, AGridCannotHaveALimitThatIsNotFinite) {
  for (const char* number : {"inf", "-inf", "nan"}) {
    EXPECT_THAT(error_of([&] { load(std::string("[axis]\na = [1]\n[table]\nfail_below = ") + number + "\n"); }),
                testing::EndsWith("grid.toml:4: [table] fail_below must be a finite number"));
  }
}

}  // namespace
}  // namespace tearless::harness::grid_json_test
