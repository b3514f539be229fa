// `--on-end`: which ends its command is run for, and that it neither delays nor fails anything.
#include "harness/service/hooks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::hooks_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kNote =
    "echo \"$TEARLESS_EVENT $TEARLESS_ID $TEARLESS_SWEEP $TEARLESS_STATE: $TEARLESS_REASON\" >> ended.txt";

class HooksTest : public RunTest {
 protected:
  std::vector<std::string> lines_in(const char* file) const {
    std::ifstream in(folder_ / file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(HooksTest, TheCommandIsRunForEachRunAndForTheSweep) {
  write_grid("\"succeed\", \"diverge\", \"refuse_late\"", 0);
  const test::Finished finished =
      tearless({"run", "grid.toml", "--only", "model.kind=a", "--only", "seed=1", "--on-end", kNote});
  EXPECT_EQ(finished.code, 1) << "one run has no result";
  std::vector<std::string> expected;
  const std::string sweep = fs::directory_iterator(folder_ / "results/sweeps")->path().filename();
  for (const nlohmann::json& run : nlohmann::json::parse(tearless({"--json", "runs"}).output)) {
    const std::string state = run.at("state"), reason = state == "diverged" ? "at update 6" : run.at("reason");
    expected.push_back(fmt::format("run {} {} {}: {}", run.at("run").get<std::string>(), sweep, state, reason));
  }
  ASSERT_THAT(expected, SizeIs(3));
  expected.push_back("sweep " + sweep + " " + sweep + " incomplete: 1 done, 1 diverged, 1 failed");
  EXPECT_THAT(lines_in("ended.txt"), testing::UnorderedElementsAreArray(expected));
}

TEST_F(HooksTest, ADaemonRunsItToo) {
  has_daemon_ = true;
  ASSERT_EQ(tearless({"daemon", "--background", "--on-end", kNote}).code, 0);
  ASSERT_EQ(tearless({"submit", "grid.toml"}).code, 0);
  ASSERT_EQ(tearless({"wait"}).code, 0);
  ASSERT_EQ(tearless({"delete", "grid.toml", "--keep-results", "--yes"}).code, 0);  // before the daemon's next tick
  EXPECT_TRUE(test::eventually([&] { return lines_in("ended.txt").size() == 5; }));
  EXPECT_THAT(lines_in("ended.txt"),
              testing::Contains(AllOf(testing::StartsWith("sweep "), HasSubstr(" done: 4 done"))));
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  EXPECT_THAT(lines_in("ended.txt"), SizeIs(5)) << "nothing ended: all was there";
}

TEST_F(HooksTest, ACommandThatFailsIsOneLineOfTheLogAndNoMore) {
  const test::Finished finished = tearless({"run", "grid.toml", "--only", "seed=1", "--only", "model.kind=a",
                                            "--on-end", "echo said; exit $((${#TEARLESS_EVENT} - 2))"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_THAT(service_log(), AllOf(HasSubstr("warning: the command of --on-end for run " + runs().at(0).id() +
                                             " ended with exit code 1\n"),
                                   HasSubstr(" ended with exit code 3\n")));
  EXPECT_THAT(lines_in("results/on_end.log"), ElementsAre("said", "said"));
}

TEST_F(HooksTest, ACommandThatHangsDelaysNoRun) {
  write_grid("\"succeed\", \"diverge\"", 0);
  test::Background run(
      command({"run", "grid.toml", "--on-end", "while [ ! -e release ]; do sleep 0.02; done; echo >> ended.txt"}));
  EXPECT_TRUE(test::eventually([&] {
    const std::vector<RunDirectory> all = runs();
    return all.size() == 8 &&
           std::all_of(all.begin(), all.end(), [](const auto& one) { return fs::exists(one.done()); });
  }));
  EXPECT_THAT(lines_in("ended.txt"), SizeIs(0));
  test::write_text(folder_ / "release", "");
  EXPECT_EQ(run.wait().code, 0);
  wait_until_unserved();
  EXPECT_THAT(lines_in("ended.txt"), SizeIs(9));
}

TEST(Hooks, AFewRunAtATimeAndAllOfThemAtLast) {
  const test::TempFolder folder;
  const auto children = [] {
    const std::string pid = std::to_string(::getpid());
    std::ifstream in("/proc/" + pid + "/task/" + pid + "/children");
    int count = 0;
    for (int child; in >> child;) ++count;
    return count;
  };
  const int before = children();
  Hooks hooks("while [ ! -e " + (folder / "release").string() + " ]; do sleep 0.02; done; echo $TEARLESS_ID",
              folder / "log",
              [](const EndEvent& event, const std::string& what) { ADD_FAILURE() << event.id << what; });
  for (const char* id : {"1", "2", "3", "4", "5", "6"}) {
    hooks.add({.event = "run", .id = id, .sweep = "", .state = "done", .reason = ""});
  }
  hooks.tick();
  EXPECT_EQ(children() - before, 4);
  hooks.tick();
  EXPECT_EQ(children() - before, 4);
  test::write_text(folder / "release", "");
  hooks.finish();
  EXPECT_EQ(children(), before);
  EXPECT_EQ(read_file(folder / "log").size(), 12u) << "six ids";
}

TEST(Hooks, WithoutACommandNothingIsStarted) {
  Hooks hooks("", "/nonexistent/log", [](const EndEvent&, const std::string& what) { ADD_FAILURE() << what; });
  hooks.add({.event = "run", .id = "1", .sweep = "", .state = "done", .reason = ""});
  hooks.finish();
}

}  // namespace
}  // namespace tearless::harness::hooks_test
