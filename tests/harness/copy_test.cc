// `tearless copy`: a workspace that can be used elsewhere, of one that is in work or at rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"

namespace tearless::harness::copy_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class CopyTest : public ServedRunTest {};

TEST_F(CopyTest, OfAWorkspaceHasTheSameTablesAndTrainsNothingAgain) {
  ok({"run", "grid.toml"});
  const std::string table = ok({"table", "last"}).output;
  EXPECT_THAT(ok({"copy", "laptop"}).output,
              AllOf(HasSubstr("laptop: 1 sweep, 4 runs\n"), HasSubstr("Next: tearless status --workspace laptop\n")));
  fs::rename(folder_ / "results", folder_ / "gone");
  EXPECT_EQ(ok({"table", "last", "--workspace", "laptop"}).output, table);
  ok({"verify", "--workspace", "laptop"});
  EXPECT_THAT(ok({"plan", "grid.toml", "--workspace", "laptop"}).output, HasSubstr("Nothing to run"));
  EXPECT_FALSE(fs::exists(folder_ / "laptop.partial"));
}

TEST_F(CopyTest, OfAWorkspaceInWorkLeavesOutWhatIsBeingTrained) {
  write_grid("\"succeed\"", 40);
  ok({"daemon", "--background"});
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  const json report = json::parse(ok({"--json", "copy", "laptop"}).output);
  EXPECT_THAT(report.at("in_work").get<std::vector<std::string>>(), testing::Contains(some.id()));
  EXPECT_FALSE(fs::exists(folder_ / "laptop/runs" / some.id()));
  ok({"verify", "--workspace", "laptop"});
  EXPECT_EQ(json::parse(ok({"--json", "runs", "last", "--workspace", "laptop"}).output).size(), 4u);
  ok({"stop", "--now", "--wait"});
  const test::Finished continued = ok({"run", "grid.toml", "--workspace", "laptop"});
  EXPECT_THAT(continued.output, HasSubstr("4 runs: 4 done"));
}

// A kill before the first attempt leaves an empty folder.
TEST_F(CopyTest, LeavesOutARunThatHasNotBegun) {
  ok({"run", "grid.toml"});
  const fs::path folder = "runs/0123456789abcdef";
  fs::create_directories(folder_ / "results" / folder);
  for (const char* target : {"results.tar.gz", "laptop"}) {
    EXPECT_THAT(ok({"copy", target}).output, HasSubstr("1 sweep, 4 runs")) << target;
    ok({"table", "last", "--workspace", target});
  }
  EXPECT_FALSE(fs::exists(folder_ / "laptop" / folder));
  fs::create_directories(folder_ / "results" / folder / "attempts/1");
  EXPECT_THAT(tearless({"copy", "damaged.tar.gz"}).errors, HasSubstr("0123456789abcdef/run.toml"));
}

TEST_F(CopyTest, IsRefusedWhereSomethingIsAndInTheWorkspaceItself) {
  ok({"run", "grid.toml"});
  test::write_text(folder_ / "file", "mine");
  fs::create_directories(folder_ / "full/of");
  for (const auto& [target, why] : {std::pair("file", "exists already"),
                                    {"full", "exists already"},
                                    {"results/inside", "lies in the workspace"},
                                    {"results", "exists already"}}) {
    const test::Finished refused = tearless({"copy", target});
    EXPECT_EQ(refused.code, 2) << target;
    EXPECT_THAT(refused.errors, HasSubstr(why)) << target;
  }
  EXPECT_EQ(test::read_text(folder_ / "file"), "mine");
  fs::create_directories(folder_ / "empty");
  ok({"copy", "empty"});
  ok({"verify", "--workspace", "empty"});
}

// By the grid file itself or a base file; also with what was typed at the submission.
TEST_F(CopyTest, OfASweepWhoseGridFileWasEditedSaysSo) {
  test::write_text(folder_ / "base.toml", "\"fake.threads\" = 1\n[names]\n\"test.score\" = \"Score\"\n");
  const std::string grid = test::read_text(folder_ / "grid.toml"), base = test::read_text(folder_ / "base.toml");
  test::write_text(folder_ / "grid.toml", "base = \"base.toml\"\n" + grid);
  ok({"run", "grid.toml", "--set", "fake.updates=4"});
  EXPECT_EQ(ok({"copy", "one"}).errors, "");
  test::write_text(folder_ / "base.toml", base + "a = \"A\"\n");
  const std::string said = ok({"copy", "two.tar.gz"}).errors;
  EXPECT_THAT(said, AllOf(HasSubstr("grid.toml or one of its base files was edited since sweep grid-"),
                          HasSubstr("copy again after: tearless submit " + (folder_ / "grid.toml").string() +
                                    " --set fake.updates=4")));
  test::write_text(folder_ / "base.toml", base);
  EXPECT_EQ(ok({"copy", "three", "--results"}).errors, "");
  test::write_text(folder_ / "grid.toml", "base = \"base.toml\"\n" + grid + "caption = \"Other words\"\n");
  EXPECT_THAT(ok({"copy", "four", "--results"}).errors, HasSubstr("was edited since sweep"));
  ok({"run", "grid.toml", "--set", "fake.updates=4"});
  EXPECT_EQ(ok({"copy", "five.tar.gz"}).errors, "") << "the newest sweep has them";
}

// As it comes with an archive: alone, or with some of them.
TEST_F(CopyTest, ALayoutNeedsNoBaseFilesBesideAnArchive) {
  test::write_text(folder_ / "one.toml", "\"fake.threads\" = 1\n[names]\n\"test.score\" = \"Score\"\na = \"Kind A\"\n");
  test::write_text(folder_ / "two.toml", "[names]\nb = \"Kind B\"\n");
  const std::string grid = test::read_text(folder_ / "grid.toml");
  for (const auto& [bases, name_of_a] :
       {std::pair("base = \"one.toml\"\n", "Kind A"), {"base = [\"one.toml\", \"two.toml\"]\n", "Own name"}}) {
    test::write_text(folder_ / "grid.toml", bases + grid + "caption = \"Words\"\n");
    ok({"run", "grid.toml"});
    fs::remove(folder_ / "all.tar.gz");
    ok({"copy", "all.tar.gz"});
    fs::create_directories(folder_ / "reader");
    test::write_text(folder_ / "reader/grid.toml", bases + grid + "caption = \"Other words\"\n");
    test::Command read = command({"table", "last", "--workspace", "all.tar.gz", "--layout", "reader/grid.toml"});
    read.environment["XDG_CACHE_HOME"] = (folder_ / "cache").string();
    const test::Finished table = test::run(read);
    EXPECT_EQ(table.code, 0) << table.errors;
    EXPECT_EQ(table.errors, "");
    EXPECT_THAT(table.output, AllOf(HasSubstr("Other words"), HasSubstr(name_of_a), HasSubstr("Score")));
    test::write_text(folder_ / "reader/two.toml", "[names]\na = \"Own name\"\n");
  }
}

TEST_F(CopyTest, ThatFailsLeavesNothing) {
  ok({"run", "grid.toml"});
  fs::create_symlink("loop", runs().back().root() / "loop");  // cannot be read
  const test::Finished refused = tearless({"copy", "laptop"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr("cannot copy results to laptop: "), HasSubstr("loop")));
  test::write_text(folder_ / "plain", "");
  const test::Finished below_a_file = tearless({"copy", "plain/laptop"});
  EXPECT_EQ(below_a_file.code, 2);
  EXPECT_THAT(below_a_file.errors, HasSubstr("plain/laptop"));
  for (const char* left : {"laptop", "laptop.partial"}) EXPECT_FALSE(fs::exists(folder_ / left)) << left;
}

}  // namespace
}  // namespace tearless::harness::copy_test
