// `tearless daemon` and the commands that talk to it, with real processes: several sweeps, several terminals, and a
// daemon that is killed, stopped, moved away from, or not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <future>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <thread>

#include "base/lock_file.h"
#include "harness/store/store.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/faults.h"
#include "tests/support/terminal.h"

namespace tearless::harness::daemon_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DaemonTest : public ServedRunTest {
 protected:
  DaemonTest() {
    write_grid("\"succeed\"", 40);
    write_other_grid();
  }

  void start_daemon() {
    const test::Finished daemon = tearless({"daemon", "--background"});
    ASSERT_EQ(daemon.code, 0) << daemon.output << daemon.errors << service_log();
    EXPECT_THAT(daemon.output, HasSubstr("works in results"));
  }
  // As `status` says it; 0 if there is none.
  int64_t daemon_pid() {
    std::smatch match;
    const std::string status = tearless({"status"}).output;
    return std::regex_search(status, match, std::regex("process (\\d+)")) ? std::stoll(match[1]) : 0;
  }
  std::map<std::string, std::string> undisturbed_both() const {
    std::map<std::string, std::string> both = undisturbed();
    RunTest other;
    test::write_text(
        other.folder_ / "grid.toml",
        std::regex_replace(test::read_text(folder_ / "other.toml"), std::regex("sleep_ms\" = \\d+"), "sleep_ms\" = 0"));
    EXPECT_EQ(other.tearless({"run", "grid.toml"}).code, 0);
    both.merge(other.results());
    return both;
  }
  std::vector<std::string> runs_of_first_sweep() const {
    const auto store = Store::open_reader(Workspace(folder_ / "results"));
    std::vector<std::string> ids;
    for (const RunRecord& run : store->runs_of(store->sweeps().back().id)) ids.push_back(run.id);
    return ids;
  }
  std::map<std::string, int> states() const {
    std::map<std::string, int> count;
    const auto store = Store::open_reader(Workspace(folder_ / "results"));
    for (const Sweep& sweep : store->sweeps()) {
      for (const RunRecord& run : store->runs_of(sweep.id)) ++count[std::string(name_of(run.state))];
    }
    return count;
  }
};

using Count = std::map<std::string, int>;

// As the file of a lock that a script has around its commands: it would stay locked while the service lives.
TEST_F(DaemonTest, KeepsNoFileOpenThatItsCallerHadOpen) {
  int held[2];
  ASSERT_EQ(::pipe(held), 0);
  start_daemon();
  ::close(held[1]);
  pollfd ended{.fd = held[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, /*milliseconds=*/0), 1) << "the service has the other end";
  EXPECT_GT(daemon_pid(), 0);
  ::close(held[0]);
}

TEST_F(DaemonTest, TwoGridsSubmittedFromTwoTerminalsOutliveTheLogoutOfBoth) {
  test::Terminal first(login_shell()), second(login_shell());
  first.type("tearless daemon --background && tearless submit grid.toml\n");
  ASSERT_TRUE(first.shows("4 runs")) << first.shown();
  second.type("tearless submit other.toml\n");
  ASSERT_TRUE(second.shows("4 runs")) << second.shown();
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  const int64_t daemon = daemon_pid();
  first.hang_up();
  second.hang_up();
  EXPECT_EQ(daemon_pid(), daemon) << service_log();
  ok({"wait", "all"});
  EXPECT_EQ(states(), (Count{{"done", 8}}));
  EXPECT_EQ(attempts(), 8);
  EXPECT_EQ(results(), undisturbed_both());
  RunTest calm;
  ASSERT_EQ(calm.tearless({"run", "grid.toml"}).code, 0);
  EXPECT_EQ(ok({"table", "grid.toml"}).output, calm.tearless({"table", "grid.toml"}).output);
}

TEST_F(DaemonTest, WaitAndStopSayInJsonWhatTheyWaitedForAndWhatEnded) {
  using nlohmann::json;
  write_grid("\"succeed\", \"refuse_late\"", 0);
  start_daemon();
  const std::string sweep = json::parse(ok({"submit", "grid.toml", "--json"}).output).at("sweeps").at(0).at("id");
  const test::Finished waited = tearless({"wait", sweep, "--json"});
  EXPECT_EQ(waited.code, 1);
  const json answer = json::parse(waited.output);
  EXPECT_EQ(answer.at("sweeps"), json{sweep});
  EXPECT_EQ(answer.at("runs"), 8);
  json failed = json::array();
  for (const json& run : json::parse(ok({"runs", sweep, "failed", "--json"}).output))
    failed.push_back({{"run", run.at("run")}, {"state", "failed"}, {"reason", run.at("reason")}});
  EXPECT_EQ(failed.size(), 4u);
  EXPECT_EQ(answer.at("without_result"), failed);
  const std::string done = json::parse(ok({"runs", sweep, "done", "--json"}).output).at(0).at("run");
  EXPECT_EQ(json::parse(ok({"wait", done, "--json"}).output),
            (json{{"sweeps", json::array()}, {"runs", 1}, {"without_result", json::array()}}));
  const int64_t daemon = daemon_pid();
  EXPECT_EQ(json::parse(ok({"stop", "--wait", "--json"}).output), (json{{"process", daemon}, {"ended", true}}));
  EXPECT_EQ(daemon_pid(), 0);
  EXPECT_EQ(json::parse(ok({"stop", "--json"}).output), (json{{"process", nullptr}, {"ended", true}}));
  start_daemon();
  EXPECT_EQ(json::parse(ok({"stop", "--json"}).output).at("ended"), false) << "it was not waited for";
}

TEST_F(DaemonTest, WorksOnWhereItsLogDoesNotFitOnTheDisk) {
  test::Command daemon = command({});
  daemon.arguments = {"/bin/sh", "-c", "exec \"$0\" daemon >/dev/full 2>&1", test::program("tearless").string()};
  std::future<test::Finished> ended = std::async(std::launch::async, [&] { return test::run(daemon); });
  EXPECT_TRUE(test::eventually([&] { return daemon_pid() > 0; }));
  ok({"submit", "grid.toml"});
  ok({"wait", "all"});
  EXPECT_EQ(states(), (Count{{"done", 4}}));
  ok({"stop"});
  EXPECT_EQ(ended.get().code, 0);
}

TEST_F(DaemonTest, KilledInTheMiddleItsSuccessorAdoptsWhatRunsAndEndsWithTheSameBytes) {
  start_daemon();
  ok({"submit", "grid.toml", "other.toml"});
  for (int kills = 0; kills < 3; ++kills) {
    RunDirectory some("");
    if (!wait_for_a_run_in_the_middle(&some)) break;
    const pid_t engine = engine_of(some);
    if (engine > 0) ::kill(engine, SIGSTOP);  // or it could end before the successor begins
    kill_service();
    EXPECT_THAT(tearless({"status"}).output, HasSubstr("takes over what is recorded as running"));
    start_daemon();
    if (engine > 0) ::kill(engine, SIGCONT);
  }
  ok({"wait", "all"});
  EXPECT_EQ(attempts(), 8) << "no attempt was repeated";
  EXPECT_THAT(service_log(), HasSubstr("adopted"));
  EXPECT_EQ(results(), undisturbed_both());
}

TEST_F(DaemonTest, ASubmissionStartsAServiceThatTrainsAndLeaves) {
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(states(), (Count{{"done", 4}}));
  wait_until_unserved();
  EXPECT_THAT(service_log(), HasSubstr("ends\n"));
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DaemonTest, AServiceThatLeavesWaitsForItsClientsAWhile) {
  test::Command submit = command({"submit", "grid.toml"});
  submit.environment["TEARLESS_IDLE_SECONDS"] = "1000";
  ASSERT_EQ(test::run(submit).code, 0);
  ok({"wait"});
  const pid_t service = service_pid();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than its tick
  ok({"run", "other.toml"});
  EXPECT_EQ(service_pid(), service);
  ok({"stop"});
  wait_until_unserved();
}

TEST_F(DaemonTest, OfCommandsThatStartAServiceAtTheSameMomentOneDoesAndAllAreServed) {
  std::vector<std::future<test::Finished>> commands;
  for (const char* grid : {"grid.toml", "other.toml", "grid.toml", "other.toml"})
    commands.push_back(begin({"run", grid}));
  for (auto& one : commands) {
    const test::Finished finished = one.get();
    EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
  }
  EXPECT_EQ(attempts(), 8);
  EXPECT_EQ(results(), undisturbed_both());
}

TEST_F(DaemonTest, AnIdleServiceOfOtherOptionsGivesWayAndABusyOneSaysThatTheyHaveNoEffect) {
  test::Command first = command({"run", "grid.toml", "--jobs", "1"});
  first.environment["TEARLESS_IDLE_SECONDS"] = "1000";
  ASSERT_EQ(test::run(first).code, 0);
  const pid_t idle = service_pid();
  ok({"submit", "other.toml", "--jobs", "2"});
  EXPECT_NE(service_pid(), idle);
  const pid_t busy = service_pid();
  EXPECT_THAT(ok({"submit", "grid.toml", "--jobs", "1"}).errors,
              HasSubstr("have no effect here: the service (process "));
  EXPECT_EQ(service_pid(), busy);
  EXPECT_THAT(ok({"submit", "grid.toml", "--jobs", "2"}).errors, Not(HasSubstr("no effect")));
  ok({"wait", "all"});
}

TEST_F(DaemonTest, LimitsThatWereTypedAreKeptForLaterServicesUntilOthersAreTyped) {
  const auto most_at_once = [&] {  // of the runs, by the times of their attempts
    int most = 0, now = 0;
    std::string log = service_log();
    for (std::smatch match; std::regex_search(log, match, std::regex("  (started|done|queued again)"));
         log = match.suffix())
      most = std::max(most, now += match[1] == "started" ? 1 : -1);
    return most;
  };
  // The service that it starts, if it starts one, is there for `status`.
  const auto of = [&](const std::vector<std::string>& arguments) {
    test::Command stays = command(arguments);
    stays.environment["TEARLESS_IDLE_SECONDS"] = "1000";
    EXPECT_EQ(test::run(stays).code, 0) << testing::PrintToString(arguments);
    return ok({"status"}).output;
  };
  write_grid("\"succeed\"", 50);
  EXPECT_THAT(of({"submit", "grid.toml", "--jobs", "1"}), HasSubstr(" with --jobs 1."));
  kill_service();
  EXPECT_THAT(of({"wait"}), HasSubstr(" with --jobs 1.")) << "the next service has the limit";
  EXPECT_EQ(most_at_once(), 1);
  ok({"stop", "--wait"});
  EXPECT_THAT(of({"run", "other.toml"}), HasSubstr(" with --jobs 1.")) << "whichever command starts it";
  EXPECT_EQ(most_at_once(), 1);
  EXPECT_THAT(of({"resume", "last", "--runs-per-gpu", "3"}),
              AllOf(HasSubstr(" with --runs-per-gpu 3."), Not(HasSubstr("--jobs"))));
  EXPECT_THAT(of({"submit", "grid.toml", "--pin"}), HasSubstr(" with --pin."));
  EXPECT_THAT(tearless({"wait", "--pin"}).errors, Not(HasSubstr("have no effect here")));
  EXPECT_THAT(tearless({"wait", "--jobs", "1"}).errors, HasSubstr("have no effect here"));
  const test::Finished both = tearless({"submit", "grid.toml", "--jobs", "1", "--pin"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.errors, AllOf(HasSubstr("--pin"), HasSubstr("--jobs")));
  test::write_text(folder_ / "results/limits.json", "{\"jobs\": \"two\"}");
  EXPECT_THAT(tearless({"submit", "grid.toml"}).errors, HasSubstr("limits.json is damaged; delete it"));
}

TEST_F(DaemonTest, AServiceThatACommandStartedBecomesADaemonWithoutLosingARun) {
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  std::future<test::Finished> waits = begin({"wait"});
  start_daemon();
  EXPECT_EQ(waits.get().code, 0);
  EXPECT_EQ(attempts(), 4);
  EXPECT_GT(daemon_pid(), 0) << "it stays";
}

TEST_F(DaemonTest, WhatAServiceThatIsStoppedLeavesIsNotStartedByThoseWhoWait) {
  std::future<test::Finished> run = begin({"run", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  std::future<test::Finished> waits = begin({"wait"});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ok({"stop", "--now"});
  EXPECT_THAT(run.get().output,
              HasSubstr("Ended early: the service was stopped on request. To continue: tearless run"));
  EXPECT_THAT(waits.get().errors, HasSubstr("and the service of results was stopped; to start one: tearless daemon"));
  wait_until_unserved();
  expect_nothing_alive();
  EXPECT_THAT(ok({"explain", "grid.toml"}).output,
              HasSubstr("queued: no service is running; `tearless run` starts one"));
  ok({"resume"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DaemonTest, AServiceThatCannotBeStartedSaysWhyWhereItWasNeeded) {
  const LockFile lock = [&] {
    fs::create_directories(folder_ / "results");
    return LockFile::acquire(folder_ / "results/tearless.lock");
  }();
  const test::Finished submit = tearless({"submit", "grid.toml"});
  EXPECT_EQ(submit.code, 2);
  EXPECT_THAT(submit.errors, testing::HasSubstr("tearless: another tearless is writing to results"));
}

TEST_F(DaemonTest, AWaitEndsWhereNothingMoreWillBeStartedAndSaysWhetherAllHaveResults) {
  ok({"submit", "grid.toml"});
  const std::string some = runs_of_first_sweep().front();
  ok({"pause"});
  EXPECT_EQ(tearless({"wait", "grid.toml"}).code, 1) << "paused, without results";
  ok({"resume"});
  ok({"cancel", some});
  EXPECT_EQ(tearless({"wait", some}).code, 1);
  EXPECT_EQ(tearless({"wait", "grid.toml"}).code, 1);
  EXPECT_EQ(states(), (Count{{"cancelled", 1}, {"done", 3}}));
  EXPECT_EQ(tearless({"wait", runs_of_first_sweep().back()}).code, 0);
}

TEST_F(DaemonTest, StatusListsAPausedRunOnce) {
  ok({"submit", "grid.toml"});
  ok({"pause"});
  const std::string some = runs_of_first_sweep().front();
  ok({"pause", some});
  EXPECT_TRUE(test::eventually([&] { return states() == Count{{"held", 1}, {"queued", 3}}; }));
  const std::string status = ok({"status"}).output;
  EXPECT_THAT(status, HasSubstr("3 queued, 1 held"));
  EXPECT_THAT(status, HasSubstr("held: " + some + ": held on request\n"));
  EXPECT_EQ(status.find(some), status.rfind(some)) << status;
}

TEST_F(DaemonTest, WaitsOutliveADaemonThatIsKilledAndStartAnotherService) {
  start_daemon();
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  const pid_t engine = engine_of(some);
  ASSERT_GT(engine, 0);
  ::kill(engine, SIGSTOP);
  kill_service();
  std::future<test::Finished> for_sweep = begin({"wait", "grid.toml"}), for_run = begin({"wait", some.id()});
  EXPECT_EQ(for_sweep.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  EXPECT_EQ(for_run.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  ::kill(engine, SIGCONT);
  for (std::future<test::Finished>* wait : {&for_sweep, &for_run}) {
    const test::Finished finished = wait->get();
    EXPECT_EQ(finished.code, 0) << finished.errors;
  }
}

TEST_F(DaemonTest, AGridThatIsEditedOrDeletedAfterItsSubmissionRunsAsItWas) {
  ok({"submit", "grid.toml"});
  const std::map<std::string, std::string> expected = undisturbed();
  fs::remove(folder_ / "grid.toml");
  ok({"wait"});
  EXPECT_EQ(results(), expected);
}

TEST_F(DaemonTest, ASubmissionWithAMistakeSubmitsNone) {
  test::write_text(folder_ / "other.toml", "title = \"t\"\n[axis]\n\"nonsense\" = [1]\n");
  EXPECT_EQ(tearless({"submit", "grid.toml", "other.toml"}).code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "results/tearless.db"));
}

TEST_F(DaemonTest, ARunGoesThroughTheDaemonAndEndsWithTheSweep) {
  start_daemon();
  const test::Finished run = ok({"run", "grid.toml", "--jobs", "1"});
  EXPECT_THAT(run.errors, HasSubstr("--jobs, --runs-per-gpu, --pin and --on-end have no effect here"));
  EXPECT_THAT(run.output, HasSubstr("done: max_updates"));
  EXPECT_THAT(run.output, HasSubstr("4 runs: 4 done\nNext: tearless table grid.toml\n"));
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DaemonTest, CtrlCInARunLeavesTheSweepToTheDaemon) {
  start_daemon();
  test::Command elsewhere = command({"run", "grid.toml", "--workspace", "results"});
  elsewhere.environment["TEARLESS_WORKSPACE"] = "another";
  test::Background run(elsewhere);
  ASSERT_TRUE(test::eventually([&] { return run.output().find("started") != std::string::npos; }));
  run.signal(SIGINT);
  const test::Finished left = run.wait();
  EXPECT_EQ(left.code, 130);
  EXPECT_THAT(left.output, HasSubstr("The sweep continues in process"));
  EXPECT_THAT(left.output,
              testing::ContainsRegex("To see it: tearless watch grid-[0-9a-f]+ --workspace results. To stop it:"));
  ok({"wait"});
  EXPECT_EQ(attempts(), 4);
}

TEST_F(DaemonTest, ASecondDaemonIsRefusedAndTheFirstNamed) {
  start_daemon();
  const int64_t pid = daemon_pid();
  const test::Finished second = tearless({"daemon"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.errors, HasSubstr("a tearless daemon (process " + std::to_string(pid) + ")"));
  EXPECT_THAT(ok({"daemon", "--background"}).output, HasSubstr("already"));
  EXPECT_EQ(daemon_pid(), pid);
}

TEST_F(DaemonTest, AStopLeavesTheRunsAndAStopNowTakesThemAlong) {
  start_daemon();
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  ok({"stop"});
  ASSERT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); }));
  EXPECT_TRUE(LockFile::is_held(some.lock()) || fs::exists(some.done())) << "its run continues";
  start_daemon();
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  ok({"stop", "--now"});
  ASSERT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); }));
  expect_nothing_alive();
  EXPECT_EQ(ok({"stop"}).output, "Nothing to stop: no tearless works in results.\n");
  start_daemon();
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DaemonTest, PausedAndCancelledSweepsStaySoWhenTheDaemonIsKilledAndTheDatabaseIsLost) {
  start_daemon();
  ok({"submit", "grid.toml", "--priority", "7"});
  ok({"submit", "other.toml"});
  ok({"pause", "grid.toml"});
  ok({"cancel", "other.toml"});
  kill_service();
  fs::remove(folder_ / "results/tearless.db");
  for (const char* side : {"-wal", "-shm"}) fs::remove(folder_ / ("results/tearless.db" + std::string(side)));
  start_daemon();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto store = Store::open_reader(Workspace(folder_ / "results"));
  for (const Sweep& sweep : store->sweeps()) {
    const bool first = sweep.grid_file.ends_with("grid.toml");
    EXPECT_EQ(sweep.state, first ? SweepState::kPaused : SweepState::kCancelled);
    EXPECT_EQ(sweep.priority, first ? 7 : 0);
  }
  EXPECT_TRUE(store->ids_in(RunState::kRunning).empty());
  ok({"resume", "grid.toml"});
  ok({"wait", "grid.toml"});
}

TEST_F(DaemonTest, ARequestAfterAKillIsCarriedOutBeforeARunIsStarted) {
  ok({"submit", "grid.toml", "--jobs", "1"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  const pid_t engine = engine_of(some);
  kill_service();
  ::kill(engine, SIGKILL);
  ASSERT_TRUE(test::eventually([&] { return !LockFile::is_held(some.lock()); }));
  const int64_t before = attempts();
  ok({"cancel", "grid.toml"});
  EXPECT_EQ(attempts(), before);
  EXPECT_TRUE(test::eventually([&] { return states().contains("cancelled") && !states().contains("queued"); }));
}

TEST_F(DaemonTest, RunsThatWereLostWithTheServiceAreCalledByTheirLabels) {
  ok({"submit", "grid.toml", "--jobs", "1"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  kill_service();
  ::kill(static_cast<pid_t>(supervisor_of(some, 1)->pid), SIGKILL);
  ASSERT_TRUE(test::eventually([&] { return !LockFile::is_held(some.lock()); }));
  ok({"wait", "grid.toml"});
  EXPECT_THAT(service_log(), testing::ContainsRegex(some.id().substr(0, 8) + "  .* · seed [12]  queued again: lost"));
}

TEST_F(DaemonTest, RunsAndSweepsArePausedResumedCancelledAndRetriedThroughTheServiceOfACommand) {
  ok({"submit", "grid.toml"});
  ok({"pause"});
  EXPECT_THAT(tearless({"status"}).output, HasSubstr("paused: paused on request"));
  ok({"pause", "1-2"});
  EXPECT_TRUE(test::eventually([&] { return states() == Count{{"held", 2}, {"queued", 2}}; }));
  ok({"cancel", "4"});
  EXPECT_TRUE(test::eventually([&] { return states() == Count{{"cancelled", 1}, {"held", 2}, {"queued", 1}}; }));
  ok({"resume"});
  EXPECT_EQ(states()["held"], 2) << "only resume RUN lifts it";
  ok({"submit", "grid.toml"});
  EXPECT_EQ(states()["held"], 2);
  ok({"resume", "held"});
  tearless({"retry", "cancelled"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DaemonTest, ExplainSaysWhyARunWaits) {
  start_daemon();
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  EXPECT_THAT(ok({"explain", "grid.toml"}).output, HasSubstr("queued: it needs 1 core, but 0 of "));
  ok({"pause", "grid.toml"});
  EXPECT_THAT(ok({"explain", "grid.toml"}).output, HasSubstr("its sweep is paused: paused on request"));
}

TEST_F(DaemonTest, ASweepIsTrainedByTheProgramItWasSubmittedWith) {
  const fs::path program = folder_ / "bin/fake-engine";
  fs::create_directories(program.parent_path());
  fs::copy_file(test::program("fake-engine"), program);
  test::Command submit = command({"submit", "grid.toml", "--engine", program.string()});
  ASSERT_EQ(test::run(submit).code, 0);
  test::write_text(program, "#!/bin/sh\nexit 1\n");  // as a build does in the middle
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());

  const fs::path kept = fs::directory_iterator(folder_ / "results/programs")->path();
  EXPECT_EQ(std::distance(fs::directory_iterator(kept.parent_path()), fs::directory_iterator()), 1) << "one build";
  test::write_text(kept / "fake-engine", "damaged");
  ok({"submit", "other.toml"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed_both()) << "a damaged copy is replaced";
  fs::remove_all(kept);
  write_grid("\"succeed\", \"diverge\"", 0);
  EXPECT_EQ(tearless({"submit", "grid.toml"}).code, 2) << "the program that was typed holds for the file";
  ok({"submit", "grid.toml", "--engine", test::program("fake-engine").string()});
  ok({"wait"});
}

TEST_F(DaemonTest, ASweepWhoseProgramIsGoneIsPausedAndSaysWhatToDo) {
  ok({"submit", "grid.toml"});
  fs::remove_all(folder_ / "results/programs");
  EXPECT_TRUE(test::eventually(
      [&] { return ok({"status"}).output.find("is gone; submit the grid again") != std::string::npos; }));
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DaemonTest, AFullDiskIsWaitedFor) {
  test::Faults faults(folder_.path());
  faults.plan().roles = fault::kDaemon;
  faults.fail(fault::kCommit, ENOSPC, 6, 7);
  test::Command daemon = command({"daemon", "--background"});
  daemon.environment.merge(faults.environment());
  ASSERT_EQ(test::run(daemon).code, 0) << service_log();
  ok({"submit", "grid.toml"});
  EXPECT_TRUE(test::eventually([&] { return states() == Count{{"done", 4}}; })) << service_log();
  EXPECT_EQ(faults.hits(), 2) << service_log();
  EXPECT_THAT(service_log(), HasSubstr("Runs that are under way continue; tries again in 2 s"));
  EXPECT_EQ(attempts(), 4) << "what ran was adopted";
  EXPECT_EQ(results(), undisturbed());
}

class NetworkDiskTest : public DaemonTest {
 protected:
  // For a while nothing in the folders of runs can be read, or of that only the files of this name.
  void fail_for_a_while(const char* name = "") {
    write_grid("\"succeed\"", 100);
    const fs::path stale = folder_ / "stale";
    fs::create_directory(folder_ / "beliefs");
    test::Command daemon = command({"daemon", "--background"});
    daemon.environment.merge(
        std::map<std::string, std::string>{{"LD_PRELOAD", test::program("libfake-disk.so").string()},
                                           {"TEARLESS_FAKE_DISK", folder_ / "results/runs"},
                                           {"TEARLESS_FAKE_DISK_CACHE", folder_ / "beliefs"},
                                           {"TEARLESS_FAKE_DISK_STALE", stale}});
    ASSERT_EQ(test::run(daemon).code, 0) << service_log();
    ok({"submit", "grid.toml"});
    EXPECT_TRUE(test::eventually([&] { return states()["running"] > 0; })) << service_log();
    test::write_text(stale, name);
    EXPECT_TRUE(test::eventually([&] { return service_log().find("tries again in 2 s") != std::string::npos; }));
    EXPECT_THAT(service_log(), HasSubstr(std::strerror(ESTALE)));
    fs::remove(stale);  // supervisors that have looked meanwhile are lost
    EXPECT_TRUE(test::eventually([&] { return states() == Count{{"done", 4}}; })) << service_log();
    EXPECT_EQ(results(), undisturbed());
  }
};

TEST_F(NetworkDiskTest, ThatFailsForAWhileEndsNothing) { fail_for_a_while(); }

TEST_F(NetworkDiskTest, WithAFileThatCannotBeLookedAtEndsNothing) {
  fail_for_a_while("DONE");
  EXPECT_THAT(service_log(), HasSubstr("cannot reach results/runs/"));
}

TEST_F(DaemonTest, AGpuThatSomebodyElseUsesTakesNoRunUntilThatHasEnded) {
  write_grid("\"succeed\"", 100);
  const fs::path gpus = folder_ / "gpus.txt";
  const std::string two = "gpu GPU-0 1000000 0 Fake GPU\ngpu GPU-1 1000000 0 Fake GPU\n";
  test::write_text(gpus, two + "process 0 4711 1000\n");
  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml",
                   std::regex_replace(grid, std::regex("\\[set\\]"), "[set]\n\"fake.device\" = \"cuda\""));
  ASSERT_EQ(test::run(with_gpus(command({"daemon", "--background"}))).code, 0) << service_log();
  ASSERT_TRUE(
      test::eventually([&] { return ok({"status"}).output.find("it is used by process 4711") != std::string::npos; }));
  EXPECT_THAT(ok({"status"}).output, HasSubstr(").\n  GPU 0  Fake GPU  0 runs, ")) << "a line of its own";
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  EXPECT_EQ(cuda_device_of(some, 1), "GPU-1");
  const std::string explained = ok({"explain", "grid.toml"}).output;
  EXPECT_THAT(explained, HasSubstr("running: on GPU 1, "));
  EXPECT_THAT(explained, HasSubstr("GPU 0 is used by process 4711"));
  test::write_text(gpus, two);
  ok({"wait"});
  std::set<std::string> used;
  for (const RunDirectory& run : runs()) used.insert(cuda_device_of(run, 1));
  EXPECT_EQ(used, (std::set<std::string>{"GPU-0", "GPU-1"}));
  EXPECT_EQ(results().size(), 8u);
}

TEST_F(DaemonTest, ThePriorityOfARunOutlivesTheDatabase) {
  write_grid("\"succeed\"", 0);
  ok({"run", "grid.toml", "--priority", "3"});
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_THAT(ok({"status"}).output, HasSubstr("priority 3"));
  ok({"run", "grid.toml"});
  EXPECT_THAT(ok({"status"}).output, HasSubstr("priority 3")) << "no --priority: what it was";
}

TEST_F(DaemonTest, ThePriorityOfASubmissionIsThatOfAllItsGrids) {
  write_grid("\"succeed\"", 0);
  fs::copy(folder_ / "grid.toml", folder_ / "third.toml");
  ok({"submit", "grid.toml", "third.toml", "--priority", "3"});
  const auto status = nlohmann::json::parse(ok({"status", "--json"}).output);
  std::set<std::string> sweeps;
  for (const auto& sweep : status.at("sweeps")) {
    sweeps.insert(sweep.at("id").get<std::string>().substr(0, 5));
    EXPECT_EQ(sweep.at("priority"), 3) << sweep;
  }
  EXPECT_EQ(sweeps, (std::set<std::string>{"grid-", "third"}));
}

TEST_F(DaemonTest, ACancelStopsWhatAKilledDaemonLeftRunning) {
  start_daemon();
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  kill_service();
  ok({"cancel", "grid.toml"});
  wait_until_unserved();
  expect_nothing_alive();
  Count left = states();
  left.erase("done");
  left.erase("cancelled");
  EXPECT_EQ(left, Count{});
}

TEST_F(DaemonTest, AWorkspaceThatIsMovedAwayEndsTheDaemonAndIsFinishedAtItsNewPlace) {
  start_daemon();
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  fs::rename(folder_ / "results", folder_ / "moved");
  EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "moved/tearless.lock"); }));
  EXPECT_TRUE(test::eventually([&] {  // it says so after it has released the lock
    return test::read_text(folder_ / "moved/service.log").find("results was moved or deleted") != std::string::npos;
  }));
  ok({"--workspace", "moved", "daemon", "--background"});
  ok({"--workspace", "moved", "wait"});
  ok({"--workspace", "moved", "stop"});
  fs::remove_all(folder_ / "results");  // a program may have written a checkpoint there before it had been killed
  fs::rename(folder_ / "moved", folder_ / "results");
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DaemonTest, ADaemonLetsNothingOfItsSocketToItsRuns) {
  start_daemon();
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  const auto supervisor = supervisor_of(some, some.newest_attempt());
  ASSERT_TRUE(supervisor);
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(supervisor->pid) + "/fd")) {
    std::error_code gone;
    EXPECT_THAT(fs::read_symlink(entry, gone).string(), Not(HasSubstr("socket:")));
  }
}

}  // namespace
}  // namespace tearless::harness::daemon_test
