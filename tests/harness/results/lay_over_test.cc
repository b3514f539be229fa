// The views of another grid over the rows of a sweep: which rows they are filled with, and what must agree.
#include "harness/results/lay_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace tearless::harness::lay_over_test {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAxes = "[axis]\nnorm = [\"x\", \"y\"]\ndepth = [1, 2]\n";

Grid grid(const std::string& text, const char* file = "layout.toml") { return parse_grid(text, file); }

Row trained(const std::string& id, const Labels& labels, int64_t seed) {
  return {.run = {.id = id, .settings = "", .coordinates = labels, .seed = seed}, .trained = id};
}

std::vector<Row> all_rows() {
  return {trained("a", {{"norm", "x"}, {"depth", "1"}}, 1), trained("b", {{"norm", "x"}, {"depth", "1"}}, 2),
          trained("c", {{"norm", "x"}, {"depth", "2"}}, 1), trained("d", {{"norm", "x"}, {"depth", "2"}}, 2),
          trained("e", {{"norm", "y"}, {"depth", "1"}}, 1), trained("f", {{"norm", "y"}, {"depth", "1"}}, 2),
          trained("g", {{"norm", "y"}, {"depth", "2"}}, 1), trained("h", {{"norm", "y"}, {"depth", "2"}}, 2)};
}

// The ids of the rows that stay.
std::vector<std::string> laid(const std::string& layout, std::vector<Row> rows = all_rows()) {
  lay_over(grid(layout), grid(std::string("seeds = 2\n") + kAxes, "sweep.toml"), "sweep-1", rows);
  std::vector<std::string> ids;
  for (const Row& row : rows) ids.push_back(row.run.id);
  return ids;
}

std::string refusal(const std::string& layout, const std::string& sweep = kAxes) {
  std::vector<Row> rows = all_rows();
  return error_of([&] { lay_over(grid(layout), grid(sweep, "sweep.toml"), "sweep-1", rows); });
}

TEST(LayOver, KeepsTheRowsAndTakesTheRestOfTheLayout) {
  std::vector<Row> rows = all_rows();
  Grid frozen = grid(std::string("seeds = 2\n") + kAxes, "sweep.toml");
  frozen.set_options = {"train.max_epochs=1"};
  const Grid laid = lay_over(grid(std::string("title = \"Another\"\nseeds = 2\n") + kAxes), frozen, "sweep-1", rows);
  EXPECT_EQ(laid.title, "Another");
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(laid.words(), "sweep.toml --set train.max_epochs=1") << "whose runs they are";
}

TEST(LayOver, TakesAxesAndLabelsInAnyOrderAndLabelsThatTheSweepLacks) {
  const std::vector<std::string> all = {"a", "b", "c", "d", "e", "f", "g", "h"};
  EXPECT_EQ(laid("seeds = 2\n[axis]\ndepth = [2, 1]\nnorm = [\"y\", \"x\"]\n"), all);
  EXPECT_EQ(laid("seeds = 5\n[axis]\nnorm = [\"x\", \"z\", \"y\"]\ndepth = [1, 2, 3]\n"), all);
}

TEST(LayOver, LeavesOutRunsThatTheLayoutExcludesOrDoesNotDrawOrWhoseSeedItLacks) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(laid("seeds = [2]\n" + std::string(kAxes)), ElementsAre("b", "d", "f", "h"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("4 of the 8 runs of sweep sweep-1 left out: layout.toml "));
  const std::string exclude = "[[exclude]]\nwhy = \"not needed\"\nwhen = { norm = \"x\", depth = 2 }\n";
  EXPECT_THAT(laid("seeds = 2\n" + std::string(kAxes) + exclude), ElementsAre("a", "b", "e", "f", "g", "h"));
  EXPECT_EQ(laid("seeds = 2\n" + std::string(kAxes) + "[sample]\ncount = 1\nseed = 3\n").size(), 2u);
}

TEST(LayOver, LeavesOutADerivedRunWithItsTrainedRunAndCountsTheLatter) {
  std::vector<Row> rows = all_rows();
  for (const size_t at : {0u, 1u}) {
    Row row = rows[at];
    row.run.id += "-wide";
    row.run.coordinates.emplace_back(kDerivedLabel, "wide");
    row.derivation = "wide";
    rows.push_back(row);
  }
  testing::internal::CaptureStderr();
  EXPECT_THAT(laid("seeds = [2]\n" + std::string(kAxes), rows), ElementsAre("b", "d", "f", "h", "b-wide"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("4 of the 8 runs"));
}

TEST(LayOver, SaysNothingWhereEveryRowStays) {
  testing::internal::CaptureStderr();
  laid("seeds = 2\n" + std::string(kAxes));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(LayOver, NamesTheFirstAxisOrLabelThatDoesNotAgree) {
  EXPECT_EQ(
      refusal("[axis]\nnorm = [\"x\", \"y\"]\ndepht = [1, 2]\n"),
      "layout.toml:3: sweep sweep-1 has no axis depht (did you mean \"depth\"?); a layout has the axes of the sweep: "
      "norm, depth");
  EXPECT_EQ(refusal("[axis]\nnorm = [\"x\", \"y\"]\n"),
            "layout.toml: there is no axis depth, which sweep sweep-1 has; a layout has the axes of the sweep: norm, "
            "depth");
  EXPECT_EQ(refusal("[axis]\nnorm = [\"x\"]\ndepth = [1, 2]\n"),
            "layout.toml:2: the axis norm has no \"y\" (did you mean \"x\"?), which sweep sweep-1 has");
  EXPECT_THAT(refusal("[axis]\nnorm = [\"x\", \"y\"]\ndepth = [2, 3]\n"), HasSubstr("layout.toml:3: the axis depth"));
  EXPECT_THAT(refusal(std::string(kAxes) + "lr = [1]\n"), HasSubstr("layout.toml:4: sweep sweep-1 has no axis lr"));
}

}  // namespace
}  // namespace tearless::harness::lay_over_test
