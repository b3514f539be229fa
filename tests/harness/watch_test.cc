// Commands that show what changes: `watch`, `status --watch`, and `log` of a run that other words than its id mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "base/words.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/terminal.h"

namespace tearless::harness::watch_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class WatchTest : public RunTest {
 protected:
  WatchTest() { write_grid("\"succeed\", \"diverge\"", 0); }
};

class ServedWatchTest : public WatchTest {
 protected:
  ServedWatchTest() {
    has_daemon_ = true;
    write_grid("\"succeed\"", 200);
  }
};

TEST_F(ServedWatchTest, FollowsASweepToItsEndWithLiveLinesAndTheTimeLeft) {
  ok({"submit", "grid.toml"});
  test::Terminal terminal(command({"watch"}));
  ASSERT_TRUE(terminal.shows("update  ETA")) << terminal.shown();
  EXPECT_TRUE(terminal.shows("/12")) << terminal.shown();
  EXPECT_TRUE(terminal.shows(" left · ")) << terminal.shown();
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_THAT(terminal.shown(), HasSubstr("4 runs: 4 done"));
  const test::Finished over = ok({"watch", "grid.toml"});
  EXPECT_THAT(over.output, testing::EndsWith("  A fake grid\n4 runs: 4 done\n")) << "again";
  EXPECT_EQ(attempts(), 4) << "it submits nothing";
}

TEST_F(ServedWatchTest, CtrlCEndsTheWatchingAndTheSweepGoesOn) {
  ok({"submit", "grid.toml"});
  test::Terminal terminal(command({"watch", "grid.toml"}));
  ASSERT_TRUE(terminal.shows("running")) << terminal.shown();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 130);
  EXPECT_THAT(terminal.shown(),
              HasSubstr("The watching has ended, the sweep continues. To see it: tearless watch grid-"));
  ok({"wait"});
  EXPECT_EQ(attempts(), 4) << "no run was stopped";
}

// The lines of running runs in what was shown last, but for speed and time left: "0123abcd  a · succeed · seed 1".
std::set<std::string> running_lines(const std::string& shown) {
  const size_t begin = shown.rfind("\033[?25l");
  const std::string frame = shown.substr(begin == std::string::npos ? 0 : begin);
  const std::regex line("([0-9a-f]{8}  [^\r\n]*[^ \r\n]) +[0-9]+/[0-9]+ ");
  std::set<std::string> lines;
  for (std::sregex_iterator it(frame.begin(), frame.end(), line), end; it != end; ++it) lines.insert((*it)[1]);
  return lines;
}

TEST_F(ServedWatchTest, WatchAndStatusShowTheSameRunningLines) {
  write_grid("\"succeed\"", 1000);
  ok({"submit", "grid.toml"});
  const auto shown_by = [&](const std::vector<std::string>& arguments) {
    test::Terminal terminal(command(arguments));
    EXPECT_TRUE(terminal.shows("/12")) << terminal.shown();
    EXPECT_TRUE(terminal.shows("running")) << terminal.shown();
    terminal.type("\x03");
    std::string frames = (terminal.wait(), terminal.shown());
    frames.erase(frames.rfind("\033[?25h"));
    return running_lines(frames);
  };
  const std::set<std::string> watched = shown_by({"watch"});
  EXPECT_FALSE(watched.empty());
  EXPECT_EQ(shown_by({"status", "-w"}), watched);
}

TEST_F(ServedWatchTest, StartsNoServiceAndSaysWhyASweepStandsStill) {
  ok({"submit", "grid.toml"});
  ok({"pause"});
  const test::Finished paused = tearless({"watch"});
  EXPECT_EQ(paused.code, 1);
  EXPECT_THAT(paused.output, HasSubstr("It stands still: paused on request. To continue: tearless resume grid-"));
  ok({"resume"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  test::Background watch(command({"watch"}));
  ASSERT_TRUE(test::eventually([&] { return !watch.output().empty() || watch.has_ended(); }));
  kill_service();
  const test::Finished left = watch.wait();
  EXPECT_EQ(left.code, 1);
  EXPECT_THAT(left.output, HasSubstr("It stands still: no tearless works in results any more."));
  EXPECT_FALSE(LockFile::is_held(workspace().lock()));
}

TEST_F(ServedWatchTest, StatusShowsProgressWholeAtEightyColumnsAndTimesInLocalTime) {
  write_grid("\"succeed\"", 500);
  std::string grid = test::read_text(folder_ / "grid.toml");
  const std::string label(60, 'x');
  grid.replace(grid.find("\"b\""), 3, "\"" + label + "\"");
  test::write_text(folder_ / "grid.toml", grid);
  ok({"submit", "grid.toml"});
  const std::regex progress("\n    [0-9a-f]{8} [^\n]*[0-9]+/12 [^\n]*[0-9]:[0-9]{2}\r?\n");
  const std::regex summary(
      "\n  [0-9] of 4 ended, [0-9] running, [0-9] waiting · 0:[0-9]{2} left · [0-9.]+ updates/s\r?\n");
  std::string shown;
  EXPECT_TRUE(test::eventually([&] {
    test::Terminal terminal(command({"status"}));
    terminal.wait();
    shown = terminal.shown();
    return std::regex_search(shown, progress) && std::regex_search(shown, summary);
  })) << shown;
  for (const std::string_view line : split_lines(shown)) {
    if (!line.starts_with("    ")) continue;
    EXPECT_LE(line.size(), 80 + 8) << line;  // some characters are more than one byte
  }
  EXPECT_THAT(shown, Not(HasSubstr(label)));
  const auto submitted = [&](const char* zone) {
    test::Command status = command({"status"});
    status.environment["TZ"] = zone;
    std::smatch match;
    const std::string text = test::run(status).output;
    return std::regex_search(text, match, std::regex("submitted \\S+ (\\d\\d):\\d\\d\n")) ? std::stoi(match[1]) : -1;
  };
  EXPECT_EQ((submitted("UTC0") + 3) % 24, submitted("EAT-3"));
}

TEST_F(WatchTest, StatusIsDrawnAgainUntilCtrlC) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  test::Terminal terminal(command({"status", "-w"}));
  ASSERT_TRUE(terminal.shows("4 done, 4 diverged")) << terminal.shown();
  ASSERT_EQ(tearless({"run", "grid.toml", "--only", "model.kind=a"}).code, 0);
  EXPECT_TRUE(terminal.shows("2 done, 2 diverged")) << terminal.shown();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 0);
  std::string printed = ok({"status"}).output;
  for (size_t at = 0; (at = printed.find('\n', at)) != std::string::npos; at += 2) printed.insert(at, "\r");
  EXPECT_THAT(terminal.shown(), testing::EndsWith("\r \033[J\r\033[?7h\033[?25h" + printed))
      << "the frame is gone, lines wrap, the cursor is shown, and the state stays";
}

TEST_F(WatchTest, StatusIsDrawnAnewWhenItsTerminalIsResized) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  test::Terminal terminal(command({"status", "-w"}));
  ASSERT_TRUE(terminal.shows("4 done, 4 diverged")) << terminal.shown();
  terminal.resize(2, 40);
  EXPECT_TRUE(terminal.shows("… and 2 more lines: tearless status")) << terminal.shown();
  terminal.resize(24, 12);
  EXPECT_TRUE(terminal.shows("  4 done, 4…")) << terminal.shown();
}

TEST_F(WatchTest, StatusOutlivesCtrlZAndLeavesTheTerminalAsItWasWhenItIsTerminated) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  test::Terminal terminal(command({"status", "-w"}));
  ASSERT_TRUE(terminal.shows("4 done, 4 diverged")) << terminal.shown();
  terminal.type("\x1a");  // Ctrl-Z, which stops no process that has no shell
  terminal.resize(2, 40);
  EXPECT_TRUE(terminal.shows("more lines: tearless status")) << "it continues";
  terminal.signal(SIGTERM);
  EXPECT_EQ(terminal.wait(), 128 + SIGTERM);
  EXPECT_THAT(terminal.shown(), testing::EndsWith("\r \033[J\r\033[?7h\033[?25h"));
}

TEST_F(WatchTest, StatusShowsWhatFitsTheTerminal) {
  std::vector<std::string> submit = {"submit"};
  for (int i = 0; i < 9; ++i) {  // three lines each; the terminal has 24
    submit.push_back("grid" + std::to_string(i) + ".toml");
    fs::copy_file(folder_ / "grid.toml", folder_ / submit.back());
  }
  ok(submit);
  ok({"wait", "all"});
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
