// What submissions do with sweeps that are there: who keeps its place, which one is the last, and what the commands
// say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "harness/store/store.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::queue_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class QueueTest : public ServedRunTest {
 protected:
  QueueTest() { write_other_grid(); }

  static bool can_preload() {
    const char* const sanitized = std::getenv("TEARLESS_SANITIZED");
    return !sanitized || !*sanitized;
  }
  test::Command with_fake_clock(std::vector<std::string> arguments) const {
    test::Command faked = command(std::move(arguments));
    faked.environment["LD_PRELOAD"] = test::program("libfake-clock.so").string();
    return faked;
  }
  std::string last() const {
    const json sweeps = json::parse(ok({"status", "last", "--json"}).output).at("sweeps");
    return fs::path(sweeps.at(0).at("grid_file").get<std::string>()).filename();
  }
  std::string id_of(const std::string& grid) const {
    return json::parse(ok({"status", grid, "--json"}).output).at("sweeps").at(0).at("id");
  }
  int64_t priority_of(const std::string& grid) const {
    return json::parse(ok({"status", grid, "--json"}).output).at("sweeps").at(0).at("priority");
  }
  // The grid files of the runs that were started, in their order, without those of the blocker.
  std::string order_of_starts() const {
    std::string order;
    std::string log = service_log();
    for (std::smatch match; std::regex_search(log, match, std::regex("(\\w{8})  (\\w) · .*  started"));
         log = match.suffix()) {
      if (match[2] != "z") order += match[2];
    }
    return order;
  }
};

TEST_F(QueueTest, WhatWasTypedHoldsForTheNextSweepOfTheFileToo) {
  fs::copy_file(test::program("fake-engine"), folder_ / "engine");
  const auto with_seeds = [&](const char* seeds) {
    std::string grid = test::read_text(folder_ / "grid.toml");
    test::write_text(folder_ / "grid.toml",
                     std::regex_replace(grid, std::regex("seeds = \\d+"), std::string("seeds = ") + seeds));
  };
  const auto newest = [&] { return json::parse(ok({"status", "last", "--json"}).output).at("sweeps").at(0); };
  ok({"submit", "grid.toml", "--executor", "workers", "--engine", "engine", "--priority", "3"});
  with_seeds("3");
  const test::Finished second = ok({"submit", "grid.toml"});
  EXPECT_THAT(second.errors, HasSubstr("grid.toml: --executor workers --engine " + (folder_ / "engine").string() +
                                       " --priority 3, as it was typed for its last sweep (--executor none ends it)"));
  EXPECT_EQ(newest().at("priority"), 3);
  EXPECT_THAT(ok({"status", "last"}).output, HasSubstr("no worker is there"));
  const auto typed =
      json::parse(test::read_text(folder_ / "results/sweeps" / newest().at("id").get<std::string>() / "sweep.json"));
  EXPECT_EQ(typed.at("engine"), (folder_ / "engine").string());
  EXPECT_THAT(ok({"submit", "other.toml"}).errors, Not(HasSubstr("as it was typed"))) << "another file";
  with_seeds("4");
  EXPECT_THAT(ok({"submit", "grid.toml", "--executor", "none", "--priority", "1"}).errors,
              Not(HasSubstr("--priority")));
  EXPECT_EQ(newest().at("priority"), 1);
  with_seeds("5");
  EXPECT_THAT(ok({"submit", "grid.toml"}).errors, AllOf(HasSubstr("--priority 1"), Not(HasSubstr("--executor"))));
  ok({"cancel", "all"});
}

// Two rows are one run where an axis has no effect.
TEST_F(QueueTest, WhatIsDoneForEachRowIsDoneOnceToItsRun) {
  test::write_text(folder_ / "twice.toml",
                   "[set]\n\"fake.updates\" = 3\n[[axis.name]]\nlabel = \"a\"\nset = {}\n[[axis.name]]\nlabel = \"b\"\n"
                   "set = {}\n[axis]\n\"model.kind\" = [\"x\", \"y\"]\n");
  queue("twice.toml");
  for (const std::vector<std::string>& request : {std::vector<std::string>{"cancel", "twice.toml"},
                                                  {"submit", "twice.toml"},
                                                  {"pause", "twice.toml"},
                                                  {"resume", "twice.toml"},
                                                  {"cancel", "twice.toml"},
                                                  {"submit", "twice.toml"}}) {
    ok(request);
  }
  free_the_daemon();
  ok({"wait", "twice.toml"});
  EXPECT_THAT(ok({"submit", "twice.toml", "--again", "all"}).errors, HasSubstr("2 runs to be trained again"));
  ok({"wait", "twice.toml"});
  ok({"delete", "1-4", "twice.toml", "--yes"});
  ok({"submit", "twice.toml"});
  ok({"wait", "twice.toml"});
  EXPECT_EQ(runs().size(), 2u);
  EXPECT_EQ(ok({"submit", "other.toml"}).code, 0) << "the service is alive";
}

TEST_F(QueueTest, ARunThatCanNeverStartHereIsHeldOnceThoughTwoRowsAreThatRun) {
  has_daemon_ = true;
  test::write_text(
      folder_ / "gpu.toml",
      "[set]\n\"fake.device\" = \"cuda\"\n[[axis.name]]\nlabel = \"a\"\nset = {}\n[[axis.name]]\nlabel = \"b\"\n"
      "set = {}\n");
  test::Command daemon = command({"daemon", "--background"});
  daemon.environment["TEARLESS_NVML"] = "/nonexistent";
  ASSERT_EQ(test::run(daemon).code, 0);
  for (int i = 0; i < 2; ++i) {
    ok({"submit", "gpu.toml"});
    EXPECT_EQ(json::parse(ok({"--json", "runs", "gpu.toml"}).output).at(0).at("state"), "held");
  }
}

TEST_F(QueueTest, ASubmissionOrARunOfAQueuedSweepKeepsItsPlaceAndPriorityAndSaysSo) {
  queue("grid.toml");
  ok({"submit", "other.toml"});
  const test::Finished again = ok({"submit", "grid.toml"});
  EXPECT_THAT(again.output, EndsWith(": 4 runs; keeps its place in the queue\n"));
  EXPECT_THAT(ok({"submit", "grid.toml", "--priority", "-1"}).output, HasSubstr("keeps its place"));
  ok({"submit", "grid.toml"});
  EXPECT_EQ(priority_of("grid.toml"), -1) << "no --priority: what it was";
  ok({"submit", "grid.toml", "--priority", "0"});
  test::Background run(command({"run", "grid.toml"}));
  EXPECT_TRUE(test::eventually(
      [&] { return run.output().find(id_of("grid.toml") + ": keeps its place in the queue\n") != std::string::npos; }));
  free_the_daemon();
  ok({"wait", "all"});
  EXPECT_EQ(run.wait().code, 0);
  EXPECT_EQ(order_of_starts(), "ababcdcd") << "every cell once, then again";
}

TEST_F(QueueTest, ASubmissionSaysWhatItResumesQueuesAgainAndWhichBuildTrainsIt) {
  const fs::path engine = folder_ / "engine";
  fs::copy_file(test::program("fake-engine"), engine);
  queue("grid.toml");
  ok({"pause", "grid.toml"});
  ok({"cancel", "grid.toml", "2-3"});
  test::write_text(folder_ / "wrapper", "#!/bin/sh\nexec " + engine.string() + " \"$@\"\n");
  fs::permissions(folder_ / "wrapper", fs::perms::owner_all);
  const std::vector<std::string> words = {"submit", "grid.toml", "--engine", (folder_ / "wrapper").string()};
  EXPECT_THAT(ok(words).output,
              EndsWith(": 4 runs; keeps its place in the queue, is resumed, 2 cancelled queued again, "
                       "is trained by the present build from now on\n"));
  std::vector<std::string> with_json = words;
  with_json.emplace_back("--json");
  ok({"pause", "grid.toml"});
  const json answer = json::parse(ok(with_json).output).at("sweeps").at(0);
  EXPECT_EQ(answer.at("id"), id_of("grid.toml"));
  EXPECT_EQ(answer.at("kept_place"), true);
  EXPECT_EQ(answer.at("resumed"), true);
  EXPECT_EQ(answer.at("new_build"), false);
  EXPECT_EQ(answer.at("states"), (json{{"queued", 4}}));
  free_the_daemon();
  ok({"wait", "grid.toml"});
}

TEST_F(QueueTest, ASubmissionOfAFinishedGridSaysThatThereIsNothingToDo) {
  ok({"run", "grid.toml"});
  EXPECT_THAT(ok({"submit", "grid.toml"}).output, EndsWith(": 4 runs: all have results, there is nothing to do\n"));
  write_grid("\"succeed\", \"refuse_late\"", 0);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  EXPECT_THAT(ok({"submit", "grid.toml"}).output,
              EndsWith(": 8 runs: 4 done, 4 failed; nothing to do; --retry tries failed runs again\n"));
}

TEST_F(QueueTest, LastIsTheNewestSubmissionThoughTheClockWasSetBackAlsoInARebuiltDatabase) {
  if (!can_preload()) GTEST_SKIP() << "a sanitizer's library must be the first of a program";
  const auto a_day_earlier = [&](const std::string& grid) {
    test::Command submit = with_fake_clock({"submit", grid});
    submit.environment["TEARLESS_FAKE_TIME"] = "-86400";
    EXPECT_EQ(test::run(submit).code, 0);
    ok({"wait", "all"});
  };
  const auto lose_the_database = [&] {
    ok({"stop", "--wait"});
    fs::remove(folder_ / "results/tearless.db");
    ok({"rebuild"});
  };
  ok({"submit", "grid.toml"});
  a_day_earlier("other.toml");
  EXPECT_EQ(last(), "other.toml");
  lose_the_database();
  EXPECT_EQ(last(), "other.toml");
  a_day_earlier("grid.toml");
  EXPECT_EQ(last(), "grid.toml") << "submitted again";
  lose_the_database();
  ok({"delete", "last", "--yes"});
  EXPECT_EQ(last(), "other.toml");
}

TEST_F(QueueTest, ReplaceCancelsTheOtherSweepsOfTheGridFileInTheSameRequest) {
  queue("grid.toml");
  ok({"submit", "other.toml"});
  const std::string before = id_of("grid.toml");
  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", std::regex_replace(grid, std::regex("\"b\""), "\"e\""));
  const test::Finished replaced = ok({"submit", "grid.toml", "--replace"});
  EXPECT_THAT(replaced.output, EndsWith(": 4 runs; replaces " + before + "\n"));
  EXPECT_THAT(ok({"submit", "grid.toml", "--replace"}).output, Not(HasSubstr("replaces")));
  const auto store = Store::open_reader(Workspace(folder_ / "results"));
  EXPECT_EQ(store->counts_of(before), (StateCounts{{RunState::kQueued, 2}, {RunState::kCancelled, 2}}))
      << "runs that both have go on";
  EXPECT_EQ(store->sweep(before)->state, SweepState::kCancelled);
  EXPECT_EQ(store->counts_of(id_of("other.toml")), (StateCounts{{RunState::kQueued, 4}}));
  free_the_daemon();
  ok({"wait", "grid.toml"});
}

TEST_F(QueueTest, ExplainOfAQueuedRunSaysHowManyRunsOfWhichSweepsGoFirst) {
  queue("grid.toml");
  ok({"submit", "other.toml"});
  const std::string text = ok({"explain", "other.toml", "model.kind=c"}).output;
  EXPECT_THAT(text, HasSubstr("; 4 runs of " + id_of("grid.toml") + " go first\n"));
  EXPECT_THAT(text, HasSubstr("; 4 runs of " + id_of("grid.toml") + ", 2 runs of its own sweep go first\n"));
  free_the_daemon();
  ok({"wait", "all"});
}

TEST_F(QueueTest, AHeldRunHasNotEnded) {
  queue("grid.toml");
  ok({"pause", "grid.toml", "1"});
  EXPECT_THAT(ok({"status", "grid.toml"}).output, HasSubstr("\n  0 of 4 ended, 0 running, 3 waiting, 1 held\n"));
  ok({"resume", "grid.toml", "1"});
  EXPECT_THAT(ok({"status", "grid.toml"}).output, HasSubstr("\n  0 of 4 ended, 0 running, 4 waiting\n"));
  free_the_daemon();
  ok({"wait", "grid.toml"});
}

TEST_F(QueueTest, FiveRunsThatFailForOneReasonPauseTheirSweepAndStatusNamesItOnce) {
  write_grid("\"refuse_late\"", 0);
  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid.replace(grid.find("seeds = 2"), 9, "seeds = 20"));
  const test::Finished run = tearless({"run", "grid.toml", "--jobs", "1"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.output, HasSubstr("Ended early: 5 runs failed in the same way (exit code 2); `tearless log "));
  const std::string status = ok({"status"}).output;
  EXPECT_THAT(status, HasSubstr("35 queued, 5 failed\n"));
  EXPECT_THAT(status, HasSubstr("  paused: 5 runs failed in the same way (exit code 2); "));
  EXPECT_THAT(status, testing::ContainsRegex("  failed: [0-9a-f]{16} and 4 more: exit code 2\n"));
}

TEST_F(QueueTest, AStopThatWaitsReturnsWhenTheServiceAndItsRunsHaveEnded) {
  write_grid("\"succeed\"", 40);
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  EXPECT_THAT(ok({"stop", "--now", "--wait"}).output, EndsWith("checkpoints.\nIt has ended.\n"));
  EXPECT_FALSE(LockFile::is_held(workspace().lock()));
  expect_nothing_alive();
}

TEST_F(QueueTest, AWaitSaysEveryMinuteWhatItWaitsFor) {
  if (!can_preload()) GTEST_SKIP() << "a sanitizer's library must be the first of a program";
  queue("grid.toml");
  const fs::path clock = folder_ / "clock";
  test::write_text(clock, "0");
  test::Command waits = with_fake_clock({"wait", "grid.toml"});
  waits.arguments.insert(waits.arguments.begin(), {"/bin/sh", "-c", "echo begins; exec \"$0\" \"$@\" 2>&1"});
  waits.environment["TEARLESS_FAKE_CLOCK"] = clock.string();
  test::Background wait(waits);
  int seconds = 0;
  for (const int minutes : {1, 2}) {
    EXPECT_TRUE(test::eventually([&] {
      // It may have read the clock for the first time after this was written.
      test::write_text(folder_ / "clock.new", std::to_string(seconds += 61));
      fs::rename(folder_ / "clock.new", clock);
      const std::string said = wait.output();
      const size_t first = said.find("waiting for 4 of 4 runs\n");
      return first != std::string::npos && (minutes == 1 || said.find("waiting for", first + 1) != std::string::npos);
    })) << wait.output();
  }
  free_the_daemon();
  EXPECT_EQ(wait.wait().code, 0);
}

}  // namespace
}  // namespace tearless::harness::queue_test
