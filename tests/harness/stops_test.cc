// Stops with real processes: Ctrl-C at any instant, programs that ignore signals, kills, no memory, no disk space, lost
// files. No run is lost, none is trained twice, none counts a try for it, and each leaves the bytes of an undisturbed
// run.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/sealed_json.h"
#include "harness/folders/rebuild.h"
#include "harness/store/store.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/terminal.h"

namespace tearless::harness::stops_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class StopsTest : public RunTest {
 protected:
  // A training program whose `train DIR` is shell ($2 is DIR, $FAKE the fake engine); the rest is the fake engine's.
  fs::path shell_engine(const std::string& train) const {
    const fs::path engine = folder_ / "engine";
    test::write_text(engine, "#!/bin/sh\nFAKE=" + test::program("fake-engine").string() +
                                 "\n[ \"$1\" = train ] || exec $FAKE \"$@\"\n" + train + "\n");
    fs::permissions(engine, fs::perms::owner_all);
    return engine;
  }
  // `run` of a single run of the grid.
  test::Command run_one(std::vector<std::string> options = {}) const {
    std::vector<std::string> arguments = {"run", "grid.toml", "--only", "model.kind=a", "--only", "seed=1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return command(arguments);
  }
  test::Command run_one_with(const fs::path& engine, std::vector<std::string> options = {}) const {
    test::Command one = run_one(std::move(options));
    one.environment["TEARLESS_ENGINE"] = engine.string();
    return one;
  }

  std::unique_ptr<const Store> store() const { return Store::open_reader(Workspace(folder_ / "results")); }
  std::vector<std::string> outcomes() const {
    std::vector<std::string> all;
    for (const AttemptRecord& attempt : store()->attempts_of(runs().at(0).id())) all.push_back(attempt.outcome);
    return all;
  }

  // Those of `undisturbed()` that are here.
  void expect_undisturbed_bytes() const {
    const std::map<std::string, std::string> whole = undisturbed();
    for (const auto& [name, bytes] : results()) EXPECT_EQ(bytes, whole.at(name)) << name;
  }

  // As soon as the attempt is said to have started, three times; the fourth command finishes.
  void stop_three_times_then_finish(const test::Command& run) {
    for (int round = 0; round < 3; ++round) {
      test::Background harness(run);
      ASSERT_TRUE(test::eventually([&] { return harness.output().find("started") != std::string::npos; }));
      harness.signal(SIGINT);
      EXPECT_EQ(harness.wait().code, 130);
      EXPECT_EQ(store()->run(runs().at(0).id())->state, RunState::kQueued);
      expect_nothing_alive();
    }
    for (const AttemptRecord& attempt : store()->attempts_of(runs().at(0).id())) {
      EXPECT_EQ(attempt.outcome, "stopped");
      EXPECT_EQ(attempt.lost.value().updates, 0);
    }
    fs::remove(folder_ / "slow");  // for programs that wait as long as it is there
    const test::Finished finished = finish(run);
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    expect_undisturbed_bytes();
  }

  bool is_anything_alive() const {
    const std::vector<RunDirectory> all = runs();
    return LockFile::is_held(folder_ / "results/tearless.lock") ||
           std::any_of(all.begin(), all.end(), [](const RunDirectory& run) { return LockFile::is_held(run.lock()); });
  }
};

TEST_F(StopsTest, CtrlCRightAfterTheStartCountsAsNoTry) {
  write_grid("\"succeed\"", 50);
  stop_three_times_then_finish(run_one());
}

TEST_F(StopsTest, CtrlCCountsAsNoTryForAProgramWithoutAHandler) {
  test::write_text(folder_ / "slow", "");
  const fs::path engine = shell_engine("[ -e \"$2/../../../slow\" ] && exec sleep 100\nexec $FAKE train \"$2\"");
  stop_three_times_then_finish(run_one_with(engine));
}

TEST_F(StopsTest, CtrlCCountsAsNoTryForAProgramThatIgnoresIt) {
  test::write_text(folder_ / "slow", "");
  const fs::path engine =
      shell_engine("trap '' TERM\nwhile [ -e \"$2/../../../slow\" ]; do sleep 0.02; done\nexec $FAKE train \"$2\"");
  stop_three_times_then_finish(run_one_with(engine, {"--grace", "0"}));
}

TEST_F(StopsTest, ASecondCtrlCExitsAtOnceAndTheAttemptsEndByThemselves) {
  const fs::path engine = shell_engine(
      "trap '' TERM\n: > \"$2/../../../deaf\"\nwhile [ ! -e \"$2/../../../released\" ]; do sleep 0.02; done\n"
      "exec $FAKE train \"$2\"");
  {
    test::Background harness(run_one_with(engine));
    ASSERT_TRUE(test::eventually([&] { return fs::exists(folder_ / "deaf"); }));
    harness.signal(SIGINT);
    ASSERT_TRUE(test::eventually([&] { return harness.output().find("Stopping 1") != std::string::npos; }));
    harness.signal(SIGINT);
    EXPECT_EQ(harness.wait().code, 130);
  }
  EXPECT_TRUE(LockFile::is_held(runs().at(0).lock())) << "the command waited for its attempt";
  test::write_text(folder_ / "released", "");
  const test::Finished next = finish(run_one());
  EXPECT_EQ(next.code, 0) << next.output << next.errors;
  expect_undisturbed_bytes();
}

TEST_F(StopsTest, ASupervisorThatDoesNotReactIsKilledWithItsEngine) {
  write_grid("\"succeed\"", 60);
  RunDirectory run("");
  {
    test::Background harness(run_one({"--grace", "0"}));
    ASSERT_TRUE(wait_for_a_run_in_the_middle(&run));
    const pid_t engine = engine_of(run);
    ASSERT_GT(engine, 0);
    ::kill(static_cast<pid_t>(supervisor_of(run, 1)->pid), SIGSTOP);
    ::kill(engine, SIGSTOP);  // or it would finish meanwhile
    harness.signal(SIGINT);
    EXPECT_EQ(harness.wait().code, 130);
    EXPECT_TRUE(test::eventually([&] { return !process_start_ticks(engine); }));
  }
  EXPECT_EQ(outcomes(), std::vector<std::string>{"stopped"});
  EXPECT_EQ(finish(run_one()).code, 0);
  expect_undisturbed_bytes();
}

TEST_F(StopsTest, AnAttemptWhoseLockFileIsGoneIsAdoptedNotDoubled) {
  write_grid("\"succeed\"", 60);
  RunDirectory run("");
  {
    test::Background harness(run_one());
    ASSERT_TRUE(wait_for_a_run_in_the_middle(&run));
    ::kill(engine_of(run), SIGSTOP);  // or it could end before the next service begins
    fs::remove(run.lock());
    kill_service(&harness);
  }
  test::Background next(run_one());
  EXPECT_TRUE(test::eventually([&] { return next.output().find("adopted") != std::string::npos; }));
  ::kill(engine_of(run), SIGCONT);
  const test::Finished finished = next.wait();
  EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_EQ(attempts(), 1);
  EXPECT_EQ(test::read_text(run.root() / "starts.txt"), "1\n");
  expect_undisturbed_bytes();
}

TEST_F(StopsTest, LiveAttemptsAreAdoptedAlsoWhereTheirDatabaseWasDeleted) {
  write_grid("\"succeed\"", 60);
  RunDirectory some("");
  {
    test::Background harness(command({"run", "grid.toml", "--jobs", "4"}));
    ASSERT_TRUE(test::eventually([&] { return attempts() == 4; }));
    ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
    ::kill(engine_of(some), SIGSTOP);
    kill_service(&harness);
  }
  EXPECT_TRUE(LockFile::is_held(some.lock()));
  EXPECT_THAT(tearless({"status"}).output, HasSubstr("No tearless works here; the next run, submit or daemon takes"));
  fs::remove(folder_ / "results/tearless.db");
  test::Background next(command({"run", "grid.toml", "--jobs", "4"}));
  EXPECT_TRUE(test::eventually([&] { return next.output().find("adopted") != std::string::npos; }));
  ::kill(engine_of(some), SIGCONT);
  const test::Finished finished = next.wait();
  EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_THAT(finished.errors, HasSubstr("was missing: rebuilt"));
  EXPECT_EQ(attempts(), 4) << "none was started twice";
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(StopsTest, WhatASupervisorExportsChangesNothingWhereAUserExportsIt) {
  for (const char* descriptor : {"0", "7"}) {
    test::Command run = command({"run", "grid.toml"});
    run.environment[kAttemptVariable] = "7";
    run.environment[kLockVariable] = descriptor;
    EXPECT_EQ(finish(run).code, 0);
    EXPECT_EQ(attempts(), 4);
    EXPECT_EQ(results(), undisturbed());
    fs::remove_all(folder_ / "results");
  }
}

TEST_F(StopsTest, AnEngineKilledAfterEachNewCheckpointIsNeverFailed) {
  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml",
                   std::regex_replace(std::regex_replace(grid, std::regex("updates\" = 12"), "updates\" = 24"),
                                      std::regex("sleep_ms\" = 0"), "sleep_ms\" = 20"));
  test::Background harness(run_one());
  int64_t reached = 0;
  for (int kill = 0; kill < 5; ++kill) {
    ASSERT_TRUE(test::eventually(
        [&] { return !runs().empty() && runs().at(0).newest_checkpoint() > reached && engine_of(runs().at(0)) > 0; }));
    reached = runs().at(0).newest_checkpoint();
    ::kill(engine_of(runs().at(0)), SIGKILL);
  }
  const test::Finished finished = harness.wait();
  EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_THAT(finished.output, HasSubstr("killed by signal 9"));
  EXPECT_EQ(outcomes(), (std::vector<std::string>{"killed", "killed", "killed", "killed", "killed", "done"}));
  expect_undisturbed_bytes();
}

// With a checkpoint at each third update, a crash at the sixth, before its checkpoint, loses three.
TEST_F(StopsTest, TheWorkThatACrashLostIsShownAndSurvivesTheLossOfTheDatabase) {
  write_grid("\"crash_once\"", 0);
  const test::Finished finished = tearless({"run", "grid.toml", "--only", "model.kind=a"});
  ASSERT_EQ(finished.code, 0) << finished.output << finished.errors;
  const auto shown = [&] {
    const std::string text = tearless({"explain", runs().at(0).id()}).output + tearless({"status"}).output;
    EXPECT_THAT(text, HasSubstr("; lost 3 updates, 0:0"));
    EXPECT_THAT(text, HasSubstr("\n  lost: 6 updates, 0:0"));
    const json run = json::parse(tearless({"explain", runs().at(0).id(), "--json"}).output).at(0);
    EXPECT_EQ(run.at("attempts").at(0).at("lost").at("updates"), 3);
    EXPECT_EQ(run.at("attempts").at(1).at("lost"), nullptr) << "it has a result";
    const json sweep = json::parse(tearless({"status", "--json"}).output).at("sweeps").at(0);
    EXPECT_EQ(sweep.at("lost").at("updates"), 6);
    return text;
  };
  const std::string before = shown();
  fs::remove(folder_ / "results/tearless.db");
  ASSERT_EQ(tearless({"rebuild"}).code, 0);
  EXPECT_EQ(shown(), before);
}

TEST_F(StopsTest, ThreeKillsWithoutProgressPauseTheSweepAndTheNextCommandContinues) {
  test::write_text(folder_ / "kill", "");
  const fs::path engine = shell_engine("[ -e \"$2/../../../kill\" ] && kill -9 $$\nexec $FAKE train \"$2\"");
  const test::Finished paused = finish(run_one_with(engine));
  EXPECT_EQ(paused.code, 1);
  EXPECT_THAT(paused.output, HasSubstr("was killed from outside 3 times and made no progress"));
  EXPECT_EQ(store()->run(runs().at(0).id())->state, RunState::kQueued);
  fs::remove(folder_ / "kill");
  EXPECT_EQ(finish(run_one_with(engine)).code, 0);
  expect_undisturbed_bytes();
}

TEST_F(StopsTest, AKillForMemoryIsTriedOnceMoreAloneAndThenFails) {
  const fs::path events = folder_ / "memory.events";
  test::write_text(events, "oom_kill 3\n");
  const std::string file = events.string();
  test::Command run =
      run_one_with(shell_engine("echo oom_kill $(($(cut -d' ' -f2 " + file + ") + 1)) > " + file + "\nkill -9 $$"));
  run.environment["TEARLESS_MEMORY_EVENTS"] = file;
  const test::Finished finished = finish(run);
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.output, HasSubstr("queued again: out_of_memory: the machine had no memory left"));
  EXPECT_EQ(outcomes(), (std::vector<std::string>{"out_of_memory", "out_of_memory"}));
  EXPECT_EQ(store()->run(runs().at(0).id())->state, RunState::kFailed);
}

TEST_F(StopsTest, OfTooMuchOutputHeadAndTailAreStoredAndTheRunIsDone) {
  write_grid("\"flood\"", 0);
  EXPECT_EQ(finish(run_one()).code, 0);
  const std::string log = test::read_text(runs().at(0).attempt(1) / "log.txt");
  EXPECT_LT(log.size(), size_t{9} << 20);
  EXPECT_THAT(log.substr(0, 100), testing::StartsWith("the beginning\n"));
  EXPECT_NE(log.find("bytes of output are left out here"), std::string::npos);
  EXPECT_EQ(log.substr(log.size() - 8), "the end\n");
}

TEST_F(StopsTest, ACopiedRunFolderIsRefused) {
  EXPECT_EQ(finish(run_one()).code, 0);
  const std::string a = runs().at(0).id();
  const json plan = json::parse(tearless({"plan", "grid.toml", "--json"}).output).at("runs");
  std::string b;
  for (const json& run : plan) {
    if (run.at("id") != a) b = run.at("id");
  }
  fs::copy(folder_ / ("results/runs/" + a), folder_ / ("results/runs/" + b), fs::copy_options::recursive);
  const test::Finished finished = tearless({"run", "grid.toml"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.output, HasSubstr("holds the settings of run " + a));
  EXPECT_EQ(store()->result_of(b).state, RunState::kFailed);
  EXPECT_TRUE(store()->result_of(b).scores.empty());
}

// A small disk of its own: the engine finds it full after its first checkpoint.
TEST_F(StopsTest, AFullDiskPausesTheSweepAndWithSpaceTheSameCommandFinishes) {
  if (std::getenv("CI")) GTEST_SKIP() << "no file system may be mounted there";
  fs::create_directories(folder_ / "results");
  const uintmax_t program = fs::file_size(test::program("fake-engine"));  // the submission keeps a copy
  const auto size = [&](uintmax_t megabytes) { return "size=" + std::to_string(program + (megabytes << 20)); };
  const std::string mount = "mount -t tmpfs -o " + size(3) + " none " + (folder_ / "results").string();
  if (test::run({.arguments = {"/usr/bin/unshare", "-rm", "/bin/sh", "-c", mount}}).code != 0) {
    GTEST_SKIP() << "a user may not mount a file system of its own here";
  }
  write_grid("\"big_file\"", 0);
  const std::string tearless = test::program("tearless").string() + " run grid.toml --only model.kind=a --only seed=1";
  test::Command both = command({});
  both.arguments = {"/usr/bin/unshare", "-rm", "/bin/sh", "-c",
                    mount + " && { " + tearless + "; echo code $?; mount -o remount," + size(60) + " results; " +
                        tearless + "; echo code $?; cp -r results results2; }"};
  const test::Finished finished = test::run(both);
  EXPECT_THAT(finished.output, HasSubstr("queued again: machine"));
  EXPECT_THAT(finished.output, testing::ContainsRegex("Ended early: .*\\. To continue: tearless run grid.toml\n"));
  EXPECT_THAT(finished.output, testing::ContainsRegex("code 1\n(.|\n)*code 0\n")) << finished.errors;
  fs::remove(folder_ / "results");
  fs::rename(folder_ / "results2", folder_ / "results");
  EXPECT_EQ(outcomes(), (std::vector<std::string>{"machine", "done"}));
  expect_undisturbed_bytes();
}

TEST_F(StopsTest, RebuildLeavesNoWriteAheadLogOfTheOldDatabase) {
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string database = (folder_ / "results/tearless.db").string(), log = database + "-wal";
  const std::string table = tearless({"table", "grid.toml"}).output;
  std::string stale;
  {
    SQLite::Database writer(database, SQLite::OPEN_READWRITE);
    writer.exec("PRAGMA journal_mode = WAL; UPDATE sweeps SET title = 'stale'; DELETE FROM results");
    stale = test::read_text(log);
  }
  for (const bool gone : {false, true}) {
    test::write_text(log, stale);
    if (gone) fs::remove(database);
    EXPECT_TRUE(rebuild(Workspace(folder_ / "results")).passed_over.empty());
    EXPECT_FALSE(fs::exists(log));
    EXPECT_EQ(store()->sweeps().at(0).title, "A fake grid");
    EXPECT_EQ(tearless({"table", "grid.toml"}).output, table);
  }
}

TEST_F(StopsTest, ARunWhoseTerminalIsClosedGoesOnAndWithAKilledServiceTooUntilAnyCommandContinuesIt) {
  write_grid("\"succeed\"", 100);
  test::Terminal terminal(login_shell());
  terminal.type("tearless run grid.toml\n");
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  terminal.hang_up();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(LockFile::is_held(folder_ / "results/tearless.lock"));
  kill_service();
  ASSERT_EQ(tearless({"resume"}).code, 0);
  ASSERT_EQ(tearless({"wait"}).code, 0);
  EXPECT_EQ(attempts(), 4) << "what ran was adopted";
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(StopsTest, ARequestWhileTheServiceEndsIsCarriedOutByTheNextOne) {
  test::write_text(folder_ / "slow", "");
  const fs::path engine =
      shell_engine("trap '' TERM\nwhile [ -e \"$2/../../../slow\" ]; do sleep 0.02; done\nexec $FAKE train \"$2\"");
  ok({"submit", "grid.toml", "--engine", engine.string(), "--grace", "1"});
  ASSERT_TRUE(test::eventually([&] { return attempts() == 2; }));
  const pid_t first = service_pid();
  ok({"stop", "--now"});
  fs::remove(folder_ / "slow");
  ok({"resume"});
  EXPECT_NE(service_pid(), first);
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
}

// After a reboot the pid and the start time of a supervisor may be those of any process.
TEST_F(StopsTest, AfterARebootAnAttemptIsLostThoughItsPidAndStartTimeAreInUseAgain) {
  for (const bool rebooted : {true, false}) {
    fs::remove_all(folder_ / "results");
    write_grid("\"succeed\"", 20);
    RunDirectory run("");
    int64_t supervisor = 0;
    {
      test::Background harness(run_one());
      ASSERT_TRUE(wait_for_a_run_in_the_middle(&run));
      supervisor = supervisor_of(run, 1)->pid;
      kill_service(&harness);
    }  // and its supervisor below: the program dies with that
    ::kill(static_cast<pid_t>(supervisor), SIGKILL);
    ASSERT_TRUE(test::eventually([&] { return !LockFile::is_held(run.lock()); }));
    test::Background other(test::Command{.arguments = {"/bin/sleep", "1000"}});
    json start = *read_sealed(run.attempt(1) / "start.json");
    start["supervisor"] = {{"pid", other.pid()},
                           {"start_ticks", *process_start_ticks(other.pid())},
                           {"boot_id", rebooted ? "4bbd3a3e-0000-4000-8000-000000000000" : boot_id()}};
    test::write_text(run.attempt(1) / "start.json", sealed(start));

    test::Background harness(run_one());
    if (!rebooted) {
      EXPECT_TRUE(test::eventually([&] { return harness.output().find("adopted") != std::string::npos; }));
      EXPECT_EQ(run.newest_attempt(), 1);
      other.signal(SIGKILL);
    }
    const test::Finished finished = harness.wait();
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
    EXPECT_EQ(finished.output.find("adopted") == std::string::npos, rebooted) << finished.output;
    EXPECT_EQ(outcomes(), (std::vector<std::string>{"lost", "done"}));
    expect_undisturbed_bytes();
  }
}

TEST_F(StopsTest, AStallTimeoutOfZeroMeansNever) {
  write_grid("\"succeed\"", 110);  // longer than from one look of the harness to the next
  const test::Finished finished = finish(run_one({"--stall-timeout", "0"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.output, Not(HasSubstr("stalled")));
}

}  // namespace
}  // namespace tearless::harness::stops_test
