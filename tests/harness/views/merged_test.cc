// Grid::merged is read as the same grid, whatever its files hold, and is the same text as long as they say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "harness/grid/expand.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::harness::merged_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::error_of;
using testing::HasSubstr;

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
a.numbers = [1e-9, 0.1, 1.0, 3, -7, -0.5, 1e300, -9223372036854775808]
"quoted key.ü" = "C:\\back \u007f"
[[axis.bundle]]
label = "small"
base = "base/more.toml"
[[axis.bundle]]
label = "large"
set = { d = 512, "e.f" = "x", data.dev = "beside" }
[axis]
z.value = [0.1, 1e-30, 7, -1.0, true]
c = ["pre", ""]
[[axis.layers]]
label = "1"
set = { n = 1 }
[[axis.layers]]
label = "2"
set = { n = 2 }
[[exclude]]
when = { c = "pre", "z.value" = 7 }
why = "too slow"
[[exclude]]
when = { bundle = "large", d = 512, c = "" }
why = "too large"
[policy]
memory = "8 GiB"
stall_timeout = 60
grace = 120
tries = { crashed = 5 }

[[table]]
caption = "A caption"
rows = ["c"]
columns = ["bundle", "z.value"]
scores = ["test.b*", "test.a"]
decimals = { "test.a" = 3, "*" = 1, "ü" = 2 }
fail_below = 1.5
cell = { show = "mean ± std" }
select = { over = ["layers"], by = "dev.a", best = "lowest" }
published = { source = "A paper", score = "test.a", values = [[29.5, 30, "fail", "", 0, 1e-9, 1.0, 3, -4],
  [1, 2, 3, 4, 5, 6, 7, 8, 9]] }
[[table]]
caption = "Another, “turned”"
rows = ["z.value", "layers", "bundle", "c"]
)";

class Merged : public testing::Test {
 protected:
  Merged() {
    fs::create_directory(folder_ / "base");
    test::write_text(folder_ / "base.toml", "base = \"base/more.toml\"\nx.y = 5\n");
    test::write_text(folder_ / "base/more.toml", "[data]\ntrain = \"../corpus\"\ndev = [\"one\", \"two\"]\n");
  }

  Grid load(const std::string& text) const {
    test::write_text(folder_ / "grid.toml", text);
    return load_grid(folder_ / "grid.toml");
  }

  test::TempFolder folder_;
};

// What decides about runs, and the views' names; of a huge grid every thousandth run.
json content_of(const Grid& grid) {
  json content = {grid.title, grid.seed_key, grid.program.value_or("").string()};
  int64_t number = 0;
  for_each_combination(grid, [&](const Combination& point, const Exclusion* excluded) {
    if (++number > 1000 && number % 1000 != 0) return;
    const RunSpec run = materialise(grid, point);
    content.push_back({describe_combination(grid, point), run.settings, run.folders, excluded ? excluded->why : ""});
  });
  content.push_back({grid.size(), grid.sample ? drawn_text(*grid.sample) : ""});
  for (const View& view : views_of(grid)) {
    content.push_back(view.title.text);
    if (const auto* table = std::get_if<TableSpec>(&view.spec))
      content.push_back({table->arrangement.rows, table->arrangement.columns});
    if (const auto* claim = std::get_if<ClaimSpec>(&view.spec)) {
      content.push_back({claim->name, claim->source.text, claim->kind->name, claim->cells, claim->where.where.labels,
                         claim->not_claimed.where.labels, claim->paired.where.labels, claim->limits.within});
    }
  }
  return content;
}

/// Reads the merged text of `grid` where there are no base files.
void expect_the_same_grid(const Grid& grid) {
  const std::string submitted =
      "\n[submitted]\nfile = \"" + grid.file.string() + "\"\nfolder = \"" + grid.folder.string() + "\"\n";
  const Grid read = parse_grid(grid.merged + submitted, "/elsewhere/merged.toml");
  EXPECT_EQ(content_of(read).dump(), content_of(grid).dump()) << grid.merged;
  EXPECT_EQ(read.merged, grid.merged);
  EXPECT_EQ(read.file, grid.file);
  EXPECT_EQ(read.folder, grid.folder);
}

TEST_F(Merged, IsTheSameGridWithEverythingThatAGridCanHold) { expect_the_same_grid(load(kEverything)); }

TEST_F(Merged, IsTheSameGridWithEveryFormOfTheLanguage) {
  test::write_text(folder_ / "base.toml", "x = 1\n[model]\nd = 2\n");
  const Grid grid = load(test::read_text(test::source_root() / "tests/fuzz/corpus/grid/language.toml"));
  expect_the_same_grid(grid);
  // Labels that are values of other points, conditions on what several axes set, and where axes are absent.
  expect_the_same_grid(load(R"(
[set]
opt = "sgd"
[axis]
x = [{ value = "adamw", label = "adam" }, { value = "adam", label = "old" }]
[axis.wd]
values = [0.1, 0.2]
when = { x = "adamw" }
[[axis.system]]
label = "a"
set = { opt = "b" }
when = { wd = 0.1 }
[axis.momentum]
values = [1, 2]
when = { opt = "sgd", system = "–" }
[[subgrid]]
label = "one"
set = { kind = "k" }
[[subgrid]]
label = "two"
axis.kind = ["k", "l"]
[[subgrid.exclude]]
when = { kind = "k", wd = "–", subgrid = ["one", "two"] }
why = "w"
[[exclude]]
when = { kind = "l", subgrid = "two", momentum = 1 }
why = "v"
)"));
}

TEST_F(Merged, IsTheSameGridWithComparisonsVariablesTextsAndALargeSample) {
  const std::string axes =
      "[axis]\na = { from = 1, to = 100, step = 1 }\nb = { from = 1, to = 90, step = 1 }\nc = [4, 1e-3, \"> 2\"]\n";
  const std::string rest = R"(
[axis.d]
values = [1, 2]
when = { a = "> 95", c = "> 2" }
[computed]
e = "a + b"
f = "'x-' + c"
[names]
"1e-3" = "small"
[[subgrid]]
label = "one"
[[subgrid.exclude]]
when = { e = ["> 20 - b", 3], a = "<= 50" }
why = "w"
[[subgrid]]
label = "two"
axis.g = { from = 1, to = 400, step = 1 }
)";
  expect_the_same_grid(load("variables = [\"b\", \"e\"]\n" + axes + rest.substr(0, rest.find("axis.g"))));
  expect_the_same_grid(load("sample = { count = 40 }\nvariables = [\"b\", \"e\"]\n" + axes + rest));
}

TEST_F(Merged, IsTheSameGridForEveryGridOfTheRepository) {
  int grids = 0;
  for (const char* folder : {"grids", "tests/fuzz/corpus/grid", "tests/golden/harness/workspace"}) {
    for (const auto& entry : fs::directory_iterator(test::source_root() / folder)) {
      if (entry.path().extension() != ".toml") continue;
      SCOPED_TRACE(entry.path());
      try {
        expect_the_same_grid(load_grid(entry.path()));
        ++grids;
      } catch (const UserError&) {  // a mistake on purpose
      }
    }
  }
  EXPECT_GE(grids, 11);
}

TEST_F(Merged, NamesItsOwnLines) {
  const Grid grid = load("\n\n\n\n[axis]\na = [1, 2]\n[[exclude]]\nwhy = \"w\"\nwhen = { a = 1 }\n");
  EXPECT_THAT(grid.merged, testing::StartsWith("title = \"grid\"\n[[exclude]]\n"));
  EXPECT_EQ(parse_grid(grid.merged, "merged.toml").excludes.at(0).location, "merged.toml:2");
}

TEST_F(Merged, IsTheSameTextWhereverItsFilesAreAndHoweverTheyAreWritten) {
  const Grid grid = load(kEverything);
  EXPECT_EQ(load(std::string("# a comment\n\n") + kEverything).merged, grid.merged);
  std::string other_policy = kEverything;
  EXPECT_EQ(load(other_policy.replace(other_policy.find("grace = 120"), 11, "grace = 121")).merged, grid.merged);
  const test::TempFolder elsewhere;
  fs::create_directory(elsewhere / "base");
  for (const char* file : {"grid.toml", "base.toml", "base/more.toml"}) {
    test::write_text(elsewhere / file, test::read_text(folder_ / file));
  }
  EXPECT_EQ(load_grid(elsewhere / "grid.toml").merged, grid.merged);
}

TEST_F(Merged, IsAnotherTextAfterAnyEdit) {
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
                                                       {"Another, ", "One more, "},
                                                       {"\"*\" = 1", "\"*\" = 2"},
                                                       {"A paper", "No paper"}};
  for (const auto& [before, after] : edits) {
    std::string text = kEverything;
    ASSERT_NE(text.find(before), std::string::npos) << before;
    const Grid edited = load(text.replace(text.find(before), std::string_view(before).size(), after));
    EXPECT_NE(edited.merged, grid.merged) << before;
  }
  const std::string excluding = "[axis]\na = [1, 2, 3]\n[[exclude]]\nwhy = \"w\"\nwhen = { a = ";
  EXPECT_NE(load(excluding + "2 }\n").merged, load(excluding + "3 }\n").merged);
  test::write_text(folder_ / "base/more.toml", "data.train = \"other\"\n");
  EXPECT_NE(load(kEverything).merged, grid.merged) << "a base file was edited";
}

// A person may try to submit it.
TEST_F(Merged, AMistakeInItIsNamed) {
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_grid(text + "[axis]\na = [1]\n", "merged.toml"); });
  };
  EXPECT_EQ(error("submitted = 3\n"), "merged.toml:1: submitted must be a table, as in submitted = { … }");
  EXPECT_EQ(error("set.d = \"x\"\nfolders.d = 3\n"), "merged.toml:2: folders d must be text in quotes");
  EXPECT_THAT(error("set.d = \"x\"\nfolders.e = \"y\"\n"), HasSubstr("merged.toml:2: unknown key \"e\" in folders"));
  EXPECT_THAT(error("submitted.by = \"x\"\n"), HasSubstr("merged.toml:1: unknown key \"by\" in [submitted]"));
}

TEST_F(Merged, AGridCannotHaveALimitThatIsNotFinite) {
  for (const char* number : {"inf", "-inf", "nan"}) {
    EXPECT_THAT(
        error_of([&] { views_of(load(std::string("[axis]\na = [1]\n[table]\nfail_below = ") + number + "\n")); }),
        testing::EndsWith("grid.toml:4: [table] fail_below must be a finite number"));
  }
}

}  // namespace
}  // namespace tearless::harness::merged_test
