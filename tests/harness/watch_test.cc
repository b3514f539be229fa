// Commands that show what changes: `status --watch`, and `log` of a run that other words than its id mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/run_fixture.h"
#include "tests/support/terminal.h"

namespace tearless::harness::watch_test {
namespace {

using testing::HasSubstr;

class WatchTest : public RunTest {
 protected:
  WatchTest() { write_grid("\"succeed\", \"diverge\"", 0); }
};

TEST_F(WatchTest, StatusIsDrawnAgainUntilCtrlC) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  test::Terminal terminal(command({"status", "-w"}));
  ASSERT_TRUE(terminal.shows("4 done, 4 diverged")) << terminal.shown();
  ASSERT_EQ(tearless({"run", "grid.toml", "--only", "model.kind=a"}).code, 0);
  EXPECT_TRUE(terminal.shows("2 done, 2 diverged")) << terminal.shown();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_THAT(terminal.shown(), testing::EndsWith("\033[?7h")) << "the terminal wraps lines again";
}

TEST_F(WatchTest, StatusShowsWhatFitsTheTerminal) {
  std::string grid = test::read_text(folder_ / "grid.toml");
  grid.replace(grid.find("seeds = 2"), 9, "seeds = 15");
  grid.replace(grid.find("\"diverge\""), 9, "\"refuse_late\"");
  test::write_text(folder_ / "grid.toml", grid);
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 1);
  test::Terminal terminal(command({"status", "-w"}));
  EXPECT_TRUE(terminal.shows("more lines: tearless status")) << terminal.shown();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(WatchTest, StatusIsNotWatchedWithoutATerminalNorAsJsonNorWithAMistake) {
  ASSERT_EQ(tearless({"submit", "grid.toml"}).code, 0);
  const test::Finished piped = tearless({"status", "--watch"});
  EXPECT_EQ(piped.code, 2);
  EXPECT_THAT(piped.errors, HasSubstr("--watch redraws a terminal"));
  EXPECT_THAT(tearless({"status", "-w", "--json"}).errors, HasSubstr("--watch prints no JSON"));
  test::Terminal terminal(command({"status", "-w", "absent.toml"}));
  EXPECT_EQ(terminal.wait(), 2);
  EXPECT_THAT(terminal.shown(), HasSubstr("there is no file absent.toml, and it was not submitted"));
}

TEST_F(WatchTest, TheLogOfTheOnlyRunThatTheWordsMean) {
  ASSERT_EQ(tearless({"run", "grid.toml", "--only", "model.kind=a", "--only", "seed=1"}).code, 0);
  std::string diverged;
  for (const RunDirectory& run : runs()) {
    if (!fs::exists(run.scores())) diverged = run.id();
    test::write_text(run.attempt(1) / "log.txt", "log of " + run.id() + "\n");
  }
  const std::string log = "log of " + diverged + "\n";
  EXPECT_EQ(tearless({"log", "diverged"}).output, log);
  EXPECT_EQ(tearless({"log", "fake.behaviour=diverge", "seed=1"}).output, log);
  EXPECT_EQ(tearless({"log", "grid.toml", "2", "-f"}).output, log);
  const test::Finished several = tearless({"log", "last"});
  EXPECT_EQ(several.code, 2);
  for (const RunDirectory& run : runs()) EXPECT_THAT(several.errors, HasSubstr(run.id()));
}

TEST_F(WatchTest, ALogNeedsNoDatabase) {
  ASSERT_EQ(tearless({"run", "grid.toml", "--only", "model.kind=a"}).code, 0);
  const std::string id = runs().at(0).id();
  const test::Finished with = tearless({"log", id});
  fs::remove(folder_ / "results/tearless.db");
  const test::Finished without = tearless({"log", id.substr(0, 10)});
  EXPECT_EQ(without.code, 0) << without.errors;
  EXPECT_EQ(without.output, with.output);
  EXPECT_EQ(tearless({"log", "failed"}).code, 2);
}

}  // namespace
}  // namespace tearless::harness::watch_test
