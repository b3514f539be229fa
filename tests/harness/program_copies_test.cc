// Copies of training programs: a sweep is trained by the program that it was submitted with, or not at all, and `gc`
// deletes the copies that no sweep needs.
#include "harness/store/program_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/submit/submission.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::program_copies_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ProgramCopiesTest : public ServedRunTest {
 protected:
  Workspace workspace() const { return Workspace(folder_ / "results"); }
  std::vector<std::string> programs() const { return folders_in(workspace().programs()); }
  fs::path copy() const { return workspace().programs() / programs().at(0) / "fake-engine"; }
  void flip_a_byte_of_the_copy() const {
    std::string bytes = test::read_text(copy());
    bytes.at(bytes.size() / 2) = static_cast<char>(bytes.at(bytes.size() / 2) ^ 1);
    test::write_text(copy(), bytes);
  }
  std::string status() const { return ok({"status", "--sweep", "last"}).output; }
  json gc() const { return json::parse(ok({"--json", "gc", "all"}).output); }
};

TEST_F(ProgramCopiesTest, OneThatWasChangedTrainsNothingUntilTheGridIsSubmittedAgain) {
  ok({"submit", "grid.toml"});
  flip_a_byte_of_the_copy();
  const std::string sentence =
      "the training program " + copy().string() + " was changed after it was copied; submit the grid again";
  EXPECT_THAT(tearless({"verify"}).output, HasSubstr(sentence + "  →  tearless submit "));
  ok({"daemon", "--background"});
  EXPECT_TRUE(test::eventually([&] { return status().find(sentence) != std::string::npos; })) << status();
  EXPECT_EQ(attempts(), 0);
  EXPECT_THAT(runs(), IsEmpty());

  ok({"submit", "grid.toml"});
  ok({"wait", "all"});
  EXPECT_EQ(results(), undisturbed());
  ok({"verify"});
}

TEST_F(ProgramCopiesTest, OneThatIsChangedBetweenTwoRunsIsNoticed) {
  write_grid("\"succeed\"", 20);
  ok({"submit", "grid.toml"});
  ok({"daemon", "--background", "--jobs", "1"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  fs::rename(copy(), folder_ / "fake-engine");  // the file that is running cannot be written to
  fs::copy_file(folder_ / "fake-engine", copy());
  flip_a_byte_of_the_copy();
  EXPECT_TRUE(test::eventually([&] { return status().find("was changed after it was copied") != std::string::npos; }));
  EXPECT_TRUE(test::eventually([&] { return fs::exists(some.done()); })) << "that one is trained to its end";
  EXPECT_EQ(attempts(), 1);
}

TEST_F(ProgramCopiesTest, VerifyResumeRefusesOneThatWasChanged) {
  ok({"run", "grid.toml"});
  flip_a_byte_of_the_copy();
  const test::Finished refused = tearless({"verify-resume", "1"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("was changed after it was copied; submit the grid again: tearless submit "));
}

TEST_F(ProgramCopiesTest, GcDeletesThoseThatNoSweepNames) {
  ok({"run", "grid.toml"});
  fs::create_directories(workspace().programs() / ".0123.1");
  const test::Finished would = ok({"gc", "all", "--dry-run"});
  EXPECT_THAT(would.output, HasSubstr("1 unfinished program that no sweep needs\n"));
  const json freed = gc();
  EXPECT_EQ(freed.at("programs"), 0);
  EXPECT_EQ(freed.at("unfinished"), 1);
  EXPECT_THAT(programs(), SizeIs(1)) << "old runs may be repeated";
  ok({"verify"});
  ok({"forget", "all", "--yes"});
  EXPECT_THAT(ok({"gc"}).output, HasSubstr(": 1 program that no sweep needs\n"));
  EXPECT_THAT(programs(), IsEmpty());
  EXPECT_THAT(ok({"gc"}).output, Not(HasSubstr("that no sweep needs")));
}

TEST_F(ProgramCopiesTest, GcLeavesThemAloneWhileAGridIsSubmittedOrASweepCannotBeRead) {
  ok({"run", "grid.toml"});
  fs::create_directories(workspace().programs() / "0123");
  {
    const LockFile submission = lock_programs(workspace());
    const test::Finished refused = tearless({"gc"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.errors, HasSubstr("skipped: programs: a grid is being submitted"));
  }
  const fs::path sweep = workspace().sweep(folders_in(workspace().sweeps()).at(0)) / "sweep.json";
  const std::string text = test::read_text(sweep);
  test::write_text(sweep, "{}");
  EXPECT_EQ(tearless({"gc"}).code, 1);
  EXPECT_THAT(programs(), SizeIs(2));
  test::write_text(sweep, text);
  EXPECT_EQ(gc().at("programs"), 1);
}

TEST_F(ProgramCopiesTest, GcKeepsThatOfASubmissionThatWasKilledBeforeTheDatabaseKnewIt) {
  ok({"run", "grid.toml"});
  write_other_grid();
  Submission submission = prepare_submission(folder_ / "other.toml", test::program("fake-engine"), {});
  write_submission(workspace(), submission);
  ok({"forget", "grid.toml", "--yes"});
  fs::create_directories(workspace().sweep("killed-earlier"));  // before sweep.json was written
  EXPECT_EQ(json::parse(ok({"--json", "gc"}).output).at("programs"), 0);
  EXPECT_THAT(programs(), SizeIs(1));
}

TEST_F(ProgramCopiesTest, GcIsNotKeptAwayByARunInTheForeground) {
  write_grid("\"succeed\"", 20);
  const test::Background run(command({"run", "grid.toml"}));
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  EXPECT_EQ(tearless({"gc"}).code, 0);
  ok({"stop", "--now"});
}

TEST_F(ProgramCopiesTest, AWorkspaceThatIsMovedTakesThemAlong) {
  ok({"submit", "grid.toml"});
  fs::rename(folder_ / "results", folder_ / "moved");
  ok({"daemon", "--background", "--workspace", "moved"});
  ok({"wait", "all", "--workspace", "moved"});
  ok({"stop", "--workspace", "moved"});
  EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "moved"); }));
  fs::rename(folder_ / "moved", folder_ / "results");
  EXPECT_EQ(results(), undisturbed());
}

}  // namespace
}  // namespace tearless::harness::program_copies_test
