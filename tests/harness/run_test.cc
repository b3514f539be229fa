// `tearless run` as a whole, with real processes: the harness, its supervisors, and a training program that fails on
// request. Whatever is killed, no run is lost, none is trained twice, and what it leaves are the bytes of an
// undisturbed one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "harness/runs/attempt_files.h"
#include "harness/store/store.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness::run_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(RunTest, TrainsAGridOnceAndNeverAgain) {
  const test::Finished first = tearless({"run", "grid.toml"});
  EXPECT_EQ(first.code, 0) << first.output << first.errors;
  EXPECT_THAT(first.output, HasSubstr("4 runs: 4 done"));
  EXPECT_THAT(first.output, HasSubstr("Next: tearless table grid.toml"));
  EXPECT_EQ(attempts(), 4);
  const test::Finished second = tearless({"run", "grid.toml"});
  EXPECT_EQ(second.code, 0);
  EXPECT_EQ(attempts(), 4);
  EXPECT_THAT(second.output, Not(HasSubstr("started")));
  fs::copy_file(folder_ / "grid.toml", folder_ / "another.toml");
  EXPECT_EQ(tearless({"run", "another.toml"}).code, 0);
  EXPECT_EQ(attempts(), 4) << "grids that share runs share results";
}

TEST_F(RunTest, AsManyRunsAreActiveAsJobsSays) {
  const auto started_before_the_first_end = [](const std::string& output) {
    const std::string before = output.substr(0, output.find("  done"));
    int started = 0;
    for (size_t at = 0; (at = before.find("  started", at)) != std::string::npos; ++at) ++started;
    return started;
  };
  EXPECT_EQ(started_before_the_first_end(tearless({"run", "grid.toml", "--jobs", "1"}).output), 1);
  fs::remove_all(folder_ / "results");
  EXPECT_EQ(started_before_the_first_end(tearless({"run", "grid.toml", "--jobs", "4"}).output), 4);

  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml",
                   std::regex_replace(grid, std::regex("\\[set\\]"), "[set]\n\"fake.device\" = \"cuda\""));
  test::write_text(folder_ / "gpus.txt", "gpu GPU-0 1000000 0 Fake GPU\n");
  for (const int runs_per_gpu : {1, 3}) {
    fs::remove_all(folder_ / "results");
    const auto on_one_gpu = with_gpus(command({"run", "grid.toml", "--runs-per-gpu", std::to_string(runs_per_gpu)}));
    EXPECT_EQ(started_before_the_first_end(test::run(on_one_gpu).output), runs_per_gpu);
  }
}

TEST_F(RunTest, EveryFailureHasItsStateAndTheExitCodeSaysThatSomethingFailed) {
  write_grid(
      "\"succeed\", \"diverge\", \"out_of_memory\", \"out_of_memory_once\", \"half_write\", \"crash_once\", "
      "\"stop_once\"",
      0);
  test::Finished finished = tearless({"run", "grid.toml", "--only", "model.kind=a", "--only", "seed=1"});
  EXPECT_EQ(finished.code, 1) << finished.output << finished.errors;
  const auto store = Store::open_reader(Workspace(folder_ / "results"));
  std::map<std::string, std::string> states;
  for (const RunRecord& run : store->runs_of(store->sweeps().at(0).id)) {
    states[label_on(run.coordinates, "fake.behaviour")] =
        std::string(name_of(run.state)) + " " + std::string(name_of(run.failure));
  }
  EXPECT_EQ(states, (std::map<std::string, std::string>{{"succeed", "done "},
                                                        {"diverge", "diverged "},
                                                        {"out_of_memory", "failed out_of_memory"},
                                                        {"out_of_memory_once", "done "},
                                                        {"half_write", "failed crashed"},
                                                        {"crash_once", "done "},
                                                        {"stop_once", "done "}}));
  EXPECT_THAT(finished.output, HasSubstr("tearless log"));
}

TEST_F(RunTest, AReasonThatManyRunsShareIsPrintedOnce) {
  write_grid("\"refuse_late\"", 0);
  const test::Finished finished = tearless({"run", "grid.toml"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.output,
              testing::ContainsRegex("4 runs: 4 failed\n  failed: [0-9a-f]{16} and 3 more: exit code 2\nTo see why: "));
}

TEST_F(RunTest, AFailedRunIsTriedAgainOnRequestAlone) {
  write_grid("\"refuse_late\"", 0);
  std::vector<std::string> one = {"run", "grid.toml", "--only", "model.kind=a", "--only", "seed=1"};
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(tearless(one).code, 1);
    EXPECT_EQ(attempts(), 1);
  }
  one.emplace_back("--retry");
  EXPECT_EQ(tearless(one).code, 1);
  EXPECT_EQ(attempts(), 2);
}

TEST_F(RunTest, ASubmissionTriesFailedRunsAgainOnRequestAlone) {
  write_grid("\"refuse_late\"", 0);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  for (const auto& [options, expected] :
       std::vector<std::pair<std::vector<std::string>, int64_t>>{{{}, 4}, {{"--retry"}, 8}}) {
    std::vector<std::string> submit = {"submit", "grid.toml"};
    submit.insert(submit.end(), options.begin(), options.end());
    ok(submit);
    tearless({"wait"});
    EXPECT_EQ(attempts(), expected);
  }
}

TEST_F(RunTest, DivergenceIsAResultNotAFailure) {
  write_grid("\"diverge\"", 0);
  const test::Finished finished = tearless({"run", "grid.toml"});
  EXPECT_EQ(finished.code, 0) << finished.output;
  EXPECT_THAT(tearless({"table", "grid.toml"}).output, HasSubstr("div. (2/2)"));
}

TEST_F(RunTest, AStalledRunIsStoppedAndQueuedAgain) {
  write_grid("\"stall\"", 0);
  test::Background harness(
      command({"run", "grid.toml", "--only", "model.kind=a", "--only", "seed=1", "--stall-timeout", "0.01"}));
  ASSERT_TRUE(test::eventually([&] { return attempts() > 0 && read_attempt(runs().at(0), 1).signal == SIGTERM; }));
  harness.signal(SIGINT);
  EXPECT_THAT(harness.wait().output, HasSubstr("queued again: stalled: no new output"));
  expect_nothing_alive();
}

TEST_F(RunTest, StatusShowsHowFarARunIs) {
  write_grid("\"succeed\"", 500);
  test::Background harness(command({"run", "grid.toml"}));
  const std::regex line("  [0-9a-f]{8} .* [0-9]+/12 +[0-9.]+ ");
  EXPECT_TRUE(test::eventually([&] { return std::regex_search(tearless({"status"}).output, line); }));
  harness.signal(SIGINT);
  EXPECT_EQ(harness.wait().code, 130);
}

TEST_F(RunTest, CtrlCStopsWithCheckpointsAndASecondRunResumes) {
  write_grid("\"succeed\"", 60);
  RunDirectory some("");
  {
    test::Background harness(command({"run", "grid.toml"}));
    ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
    harness.signal(SIGINT);
    const test::Finished interrupted = harness.wait();
    EXPECT_EQ(interrupted.code, 130);
    EXPECT_THAT(interrupted.output, HasSubstr("To continue: tearless run grid.toml"));
  }
  expect_nothing_alive();
  EXPECT_EQ(read_attempt(some, 1).code, kExitStopped);
  write_grid("\"succeed\"", 0);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 0);
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(RunTest, AttemptsThatEndedWithoutAServiceAreRecorded) {
  write_grid("\"succeed\"", 20);
  {
    test::Background harness(command({"run", "grid.toml", "--jobs", "4"}));
    ASSERT_TRUE(test::eventually([&] { return attempts() == 4; }));
    kill_service(&harness);
  }
  ASSERT_TRUE(test::eventually([&] {
    const std::vector<RunDirectory> all = runs();
    return std::all_of(all.begin(), all.end(), [](const RunDirectory& run) {
      return fs::exists(run.done()) && !LockFile::is_held(run.lock());
    });
  }));
  const test::Finished next = tearless({"run", "grid.toml"});
  EXPECT_EQ(next.code, 0);
  EXPECT_THAT(next.output, HasSubstr("4 runs: 4 done"));
  EXPECT_EQ(attempts(), 4);
}

TEST_F(RunTest, AKilledSupervisorEndsItsEngineAndTheRunIsResumed) {
  write_grid("\"succeed\"", 60);
  test::Background harness(command({"run", "grid.toml"}));
  RunDirectory victim("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&victim));
  ::kill(static_cast<pid_t>(supervisor_of(victim, 1)->pid), SIGKILL);
  const test::Finished finished = harness.wait();
  EXPECT_EQ(finished.code, 0) << finished.output;
  EXPECT_THAT(finished.output, HasSubstr("queued again: lost"));
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(RunTest, WhileASweepRunsReadersReadAndARebuildIsRefused) {
  write_grid("\"succeed\"", 60);
  test::Background harness(command({"run", "grid.toml"}));
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  EXPECT_THAT(tearless({"status"}).output, HasSubstr("running"));
  const test::Finished rebuild = tearless({"rebuild"});
  EXPECT_EQ(rebuild.code, 2);
  EXPECT_THAT(rebuild.errors, HasSubstr("process " + std::to_string(service_pid())));
  EXPECT_EQ(harness.wait().code, 0);
}

TEST_F(RunTest, RunsWhoseServiceIsKilledStartAnotherOneAndGoOn) {
  write_grid("\"succeed\"", 60);
  test::Background first(command({"run", "grid.toml"}));
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  test::Background second(command({"run", "grid.toml"}));
  ASSERT_TRUE(test::eventually([&] { return !second.output().empty(); }));
  kill_service();
  for (test::Background* run : {&first, &second}) {
    const test::Finished finished = run->wait();
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_THAT(finished.output, HasSubstr("4 runs: 4 done"));
  }
  EXPECT_EQ(attempts(), 4) << "the live attempts were adopted, and no run was started twice";
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(RunTest, AKilledRunLeavesItsSweepToTheService) {
  write_grid("\"succeed\"", 60);
  {
    test::Background run(command({"run", "grid.toml"}));
    RunDirectory some("");
    ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  }
  wait_until_unserved();
  EXPECT_EQ(attempts(), 4);
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(RunTest, ThePlanSaysHowLongTheRestWillTake) {
  EXPECT_EQ(tearless({"run", "grid.toml", "--only", "seed=1"}).code, 0);
  const auto plan = nlohmann::json::parse(tearless({"plan", "grid.toml", "--json"}).output);
  EXPECT_EQ(plan.at("estimate").at("runs"), 2);
  EXPECT_EQ(plan.at("estimate").at("ended_runs"), 2);
  EXPECT_EQ(plan.at("estimate").at("cpu_seconds"), 2 * 12 * 0.5) << "12 updates, half a second each";
  const int64_t disk = plan.at("estimate").at("disk_bytes");
  EXPECT_GT(disk, 0);
  EXPECT_EQ(disk % 2, 0) << "two runs, each as large as the larger of those that have ended";
  const std::string text = tearless({"plan", "grid.toml"}).output;
  EXPECT_THAT(text, HasSubstr("Time: about 0:"));
  EXPECT_THAT(text, testing::ContainsRegex("Disk: about [0-9.]+ [A-Za-z]+; [0-9.]+ [A-Za-z]+ are free\n"));
}

TEST_F(RunTest, ARemovedLockFileLetsNoSecondWriterIn) {
  write_grid("\"succeed\"", 60);
  test::Background harness(command({"run", "grid.toml"}));
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  fs::remove(folder_ / "results/tearless.lock");
  EXPECT_EQ(tearless({"rebuild"}).code, 2);
  EXPECT_THAT(tearless({"status"}).output, HasSubstr("A tearless service works here (process "));
  EXPECT_EQ(harness.wait().code, 0);
}

TEST_F(RunTest, ALostDatabaseIsRebuiltToTheSameTable) {
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 0);
  const std::string table = tearless({"table", "grid.toml"}).output;
  fs::remove(folder_ / "results/tearless.db");
  const test::Finished rebuilt = tearless({"rebuild"});
  EXPECT_EQ(rebuilt.code, 0) << rebuilt.errors;
  EXPECT_THAT(rebuilt.output, HasSubstr("4 runs and 1 sweep"));
  EXPECT_EQ(tearless({"table", "grid.toml"}).output, table);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 0);
  EXPECT_EQ(attempts(), 4);
}

TEST_F(RunTest, ARunWhoseCorpusIsMissingWaitsAndSaysForWhat) {
  test::write_text(
      folder_ / "grid.toml",
      "title = \"t\"\nseeds = 1\n[set]\n\"data.train\" = \"corpus.txt\"\n[axis]\n\"model.kind\" = [\"a\"]\n");
  const test::Finished waiting = tearless({"run", "grid.toml"});
  EXPECT_EQ(waiting.code, 1);
  EXPECT_THAT(waiting.output, HasSubstr("corpus.txt is missing"));
  test::write_text(folder_ / "corpus.txt", "hello\n");
  const test::Finished ready = tearless({"run", "grid.toml"});
  EXPECT_EQ(ready.code, 0) << ready.output;
  EXPECT_THAT(tearless({"status", "--json"}).output, HasSubstr("cancelled"));  // what waited under its provisional id
}

// A test program may be of another build than what it starts (TEARLESS_DRIVERS in tests/CMakeLists.txt).
TEST_F(RunTest, WhatIsTestedIsOfTheBuildWhoseTestsTheseAre) {
  if (const char* folder = std::getenv("TEARLESS_BIN")) {
    EXPECT_EQ(test::program("tearless"), fs::path(folder) / "tearless");
  }
  EXPECT_TRUE(fs::exists(test::program("tearless")));
}

TEST_F(RunTest, SmokeRunsTheFirstSeedOfEveryCellInAWorkspaceOfItsOwn) {
  test::write_text(folder_ / "grid.toml", R"(title = "t"
seeds = [7, 3, 5]
[axis]
"model.kind" = ["a", "b", "c"]
[[exclude]]
when = {"model.kind" = "b"}
why = "none of its seeds"
)");
  const auto cells = [&] {
    return ok({"sql", "--csv", "SELECT coordinates, seed FROM sweep_runs_view ORDER BY sweep, place", "--workspace",
               "results/smoke"})
        .output;
  };
  EXPECT_THAT(ok({"run", "grid.toml", "--smoke"}).output, HasSubstr("2 runs: 2 done\n"));
  EXPECT_EQ(cells(), "coordinates,seed\n\"{\"\"model.kind\"\":\"\"a\"\"}\",7\n\"{\"\"model.kind\"\":\"\"c\"\"}\",7\n");
  EXPECT_THAT(
      ok({"run", "grid.toml", "--smoke", "--only", "seed=5", "--only", "seed=3", "--only", "model.kind=c"}).output,
      HasSubstr("1 run: 1 done\n"));
  EXPECT_THAT(cells(), HasSubstr("\"\"c\"\"}\",3\n")) << "in the grid's order";
  EXPECT_TRUE(runs().empty()) << "it is no result";
}

TEST_F(RunTest, ACalibrationTrainsOneRunOfEachShapeAndThePlanEstimatesTheOthers) {
  test::write_text(folder_ / "grid.toml", R"(title = "t"
seeds = 3
[set]
"fake.updates" = 12
[axis]
"model.kind" = ["a", "b"]
"fake.shape" = ["small", "large"]
)");
  EXPECT_THAT(ok({"plan", "grid.toml"}).output,
              HasSubstr("Time: 12 runs of 2 resource classes have not been timed: tearless run grid.toml "
                        "--calibrate\n"));
  const test::Finished calibration = ok({"run", "grid.toml", "--calibrate"});
  EXPECT_THAT(calibration.output, HasSubstr("2 runs: 2 done\n"));
  EXPECT_THAT(calibration.output, HasSubstr("Next, with an estimate of the time: tearless plan grid.toml\n"));
  EXPECT_TRUE(runs().empty()) << "it is no result";

  const auto estimate = [&] {
    return nlohmann::json::parse(ok({"plan", "grid.toml", "--json"}).output).at("estimate");
  };
  // The fake program takes half a second an update, it says.
  EXPECT_EQ(estimate().at("calibrated_runs"), 12);
  EXPECT_DOUBLE_EQ(estimate().at("cpu_seconds"), 12 * 12 * 0.5);
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, HasSubstr(", by calibration\n"));
  EXPECT_THAT(
      ok({"run", "grid.toml", "--calibrate"}).output,
      HasSubstr("Nothing to calibrate: runs like these have been timed, or wait for their data. Next: tearless plan "
                "grid.toml\n"));

  // Runs that have ended count instead, as soon as there are some; a new resource class is calibrated alone.
  ok({"run", "grid.toml", "--only", "fake.shape=small", "--only", "seed=1"});
  EXPECT_EQ(estimate().at("calibrated_runs"), 6);
  EXPECT_EQ(estimate().at("ended_runs"), 2);
  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid.replace(grid.find("\"large\""), 7, "\"large\", \"huge\""));
  EXPECT_THAT(ok({"plan", "grid.toml"}).output,
              testing::ContainsRegex("Time: 10 of 16 runs: about .*calibration\n"
                                     "      6 runs of one resource class have not been timed: tearless run grid.toml "
                                     "--calibrate\n"));
  EXPECT_THAT(ok({"run", "grid.toml", "--calibrate"}).output, HasSubstr("1 run: 1 done\n"));
  EXPECT_EQ(estimate().at("runs_without"), 0);
}

// A pass over a corpus that is not prepared.
TEST_F(RunTest, APlanSaysOfHowManyRunsItDoesNotKnowTheLength) {
  test::write_text(folder_ / "grid.toml", "[axis]\n\"fake.updates\" = [0, 12]\n\"model.kind\" = [\"a\", \"b\"]\n");
  EXPECT_THAT(ok({"plan", "grid.toml"}).output,
              HasSubstr("To run: 4 runs, 24 updates at most, without 2 runs whose updates are not known yet; "));
}

TEST_F(RunTest, ACalibrationLeavesOutWhatWaitsForDataWhatWasTimedAndWhatHasNoShape) {
  test::write_text(folder_ / "there", "hello\n");
  test::write_text(folder_ / "grid.toml", R"(title = "t"
[axis]
"data.train" = ["absent", "there"]
"fake.shape" = ["small", "large", "unknown"]
)");
  EXPECT_EQ(tearless({"run", "grid.toml", "--only", "fake.shape=large"}).code, 1) << "one waits, one is done";
  EXPECT_THAT(ok({"run", "grid.toml", "--calibrate"}).output, HasSubstr("1 run: 1 done\n"));
  const nlohmann::json plan = nlohmann::json::parse(ok({"plan", "grid.toml", "--json"}).output);
  EXPECT_EQ(plan.at("estimate").at("runs"), 1) << "small";
  EXPECT_EQ(plan.at("estimate").at("runs_without"), 1) << "unknown";
  EXPECT_THAT(ok({"plan", "grid.toml"}).output, testing::Not(HasSubstr("--calibrate")));
  EXPECT_THAT(ok({"run", "grid.toml", "--calibrate"}).output, HasSubstr("Nothing to calibrate: "));
}

TEST_F(RunTest, AnUnreadableCalibrationIsSaidAndThePlanIsWithoutIt) {
  fs::create_directories(folder_ / "results/smoke");
  test::write_text(folder_ / "results/smoke/tearless.db", "no database");
  const test::Finished plan = ok({"plan", "grid.toml"});
  EXPECT_THAT(plan.errors, HasSubstr("the estimate is without calibrations: "));
  EXPECT_THAT(plan.output, HasSubstr("have not been timed"));
}

TEST_F(RunTest, TheCommandsThatASmokeRunPrintsFindItsRuns) {
  write_grid("\"refuse_late\"", 0);
  const test::Finished smoke = tearless({"run", "grid.toml", "--smoke"});
  EXPECT_EQ(smoke.code, 1);
  EXPECT_THAT(
      smoke.output,
      HasSubstr(" --workspace results/smoke. To try failed runs again: tearless run grid.toml --smoke --retry"));
}

TEST_F(RunTest, RefusedSettingsStartNothing) {
  write_grid("\"succeed\", \"refuse\"", 0);
  const test::Finished refused = tearless({"run", "grid.toml"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("grid.toml:"));
  EXPECT_THAT(refused.errors, HasSubstr("this behaviour is refused"));
  EXPECT_FALSE(fs::exists(folder_ / "results"));
}

TEST_F(RunTest, ATamperedRunFolderIsNamedAndTheOthersContinue) {
  EXPECT_EQ(tearless({"run", "grid.toml", "--only", "seed=1"}).code, 0);
  const RunDirectory victim = runs().at(0);
  fs::remove(victim.done());
  test::write_text(victim.settings(), "# mine\n" + test::read_text(victim.settings()));
  const test::Finished finished = tearless({"run", "grid.toml"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.output, HasSubstr("run.toml was changed by hand"));
  EXPECT_THAT(finished.output, HasSubstr("4 runs: 3 done, 1 failed"));
  EXPECT_THAT(test::read_text(victim.settings()), testing::StartsWith("# mine\n"));
}

TEST_F(RunTest, AReadOnlyWorkspaceIsNamed) {
  fs::permissions(folder_.path(),
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  test::Command run = command({"run", "grid.toml"});
  // Root writes where it may not. It keeps its name and loses that right: another user might not reach the programs.
  if (::geteuid() == 0) {
    const std::vector<std::string> setpriv = {"/usr/bin/setpriv", "--bounding-set", "-dac_override,-dac_read_search"};
    run.arguments.insert(run.arguments.begin(), setpriv.begin(), setpriv.end());
  }
  const test::Finished finished = test::run(run);
  fs::permissions(folder_.path(), fs::perms::owner_all);
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.errors, HasSubstr("results"));
}

TEST_F(RunTest, StatusOfAnEmptyFolderMakesNothing) {
  const test::Finished status = tearless({"status"});
  EXPECT_EQ(status.code, 0);
  EXPECT_THAT(status.output, HasSubstr("Nothing has been run"));
  EXPECT_FALSE(fs::exists(folder_ / "results"));
}

TEST_F(RunTest, LogAndSqlShowWhatHappened) {
  write_grid("\"crash_once\"", 0);
  EXPECT_EQ(tearless({"run", "grid.toml", "--only", "model.kind=a", "--only", "seed=1"}).code, 0);
  const std::string id = runs().at(0).root().filename().string();
  EXPECT_EQ(tearless({"log", id.substr(0, 6), "--attempt", "1"}).output, "about to crash\nindex 7 out of range\n");
  EXPECT_EQ(nlohmann::json::parse(ok({"log", id, "--attempt", "1", "--json"}).output),
            (nlohmann::json{{"run", id}, {"attempt", 1}, {"text", "about to crash\nindex 7 out of range\n"}}));
  EXPECT_THAT(tearless({"log", id, "-f", "--json"}).errors, HasSubstr("--json and --follow contradict each other"));
  EXPECT_EQ(tearless({"log", "zzz"}).code, 2);
  const test::Finished answer = tearless({"sql", "SELECT run, outcome FROM attempts_view ORDER BY attempt", "--json"});
  EXPECT_EQ(nlohmann::json::parse(answer.output),
            (nlohmann::json{{{"run", id}, {"outcome", "crashed"}}, {{"run", id}, {"outcome", "done"}}}));
  EXPECT_EQ(tearless({"sql", "SELECT attempt AS a, 'x,\"y' AS a FROM attempts_view ORDER BY attempt", "--csv"}).output,
            "a,a:2\n1,\"x,\"\"y\"\n2,\"x,\"\"y\"\n");
  EXPECT_EQ(tearless({"sql", "SELECT 1", "--csv", "--json"}).code, 2);
  EXPECT_EQ(nlohmann::json::parse(tearless({"sql", "SELECT 1 AS a, 2 AS a, 3 AS 'a:2', 4 AS a", "--json"}).output),
            nlohmann::json::parse(R"([{"a": 1, "a:2": 3, "a:3": 2, "a:4": 4}])"))
      << "columns of one name are all there";
  EXPECT_THAT(tearless({"sql"}).output, HasSubstr("scores_view"));
  EXPECT_EQ(tearless({"sql", "DELETE FROM runs"}).code, 2);
}

TEST_F(RunTest, MistypedCommandsAndGridsGetASuggestion) {
  const test::Finished mistyped = tearless({"staus"});
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_EQ(mistyped.errors,
            "tearless: there is no command \"staus\" (did you mean \"status\"?); tearless --help lists them\n");
  for (const auto& [word, meant] : {std::pair("help", "--help"), {"ls", "runs"}, {"rm", "delete"}})
    EXPECT_THAT(tearless({word, "x"}).errors,
                HasSubstr(fmt::format("no command \"{}\" (did you mean \"{}\"?)", word, meant)));
  EXPECT_EQ(tearless({"run"}).code, 2);
  EXPECT_EQ(tearless({"run", "nowhere.toml"}).code, 2);
  const test::Finished help = tearless({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("\n  plan  "));
  EXPECT_THAT(help.output, testing::Not(HasSubstr("supervise"))) << "which is not for people";
  std::vector<std::string> groups;
  std::istringstream lines(help.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(':')) groups.push_back(line);
  }
  EXPECT_THAT(groups, testing::ElementsAre("Options:", "Train a grid:", "Direct what trains:",
                                           "Look at sweeps and runs:", "Results:", "Keep a workspace:"));
  EXPECT_THAT(tearless({"--version"}).output, HasSubstr("tearless "));
}

TEST_F(RunTest, AWorkspaceInTheEnvironmentThatLooksLikeAnOptionIsRefused) {
  for (const char* value : {"--help", "-w"}) {
    test::Command status = command({"status"});
    status.environment["TEARLESS_WORKSPACE"] = value;
    const test::Finished refused = test::run(status);
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.errors, std::string("tearless: TEARLESS_WORKSPACE=") + value +
                                  " looks like an option; name a folder, such as ./" + value + "\n");
  }
  EXPECT_FALSE(fs::exists(folder_ / "--help"));
}

TEST_F(RunTest, AMachineThatAllowsTooFewDescriptorsIsNoFaultOfTearless) {
  ok({"run", "grid.toml"});
  for (const int limit : {5, 8, 12}) {
    for (const char* arguments : {"status", "submit grid.toml", "plan grid.toml", "explain all"}) {
      test::Command limited = command({});
      limited.arguments = {
          "/bin/bash", "-c",
          fmt::format("ulimit -n {}; exec timeout 20 {} {}", limit, test::program("tearless").string(), arguments)};
      EXPECT_THAT(finish(limited).errors, testing::Not(HasSubstr("bug in tearless"))) << limit << " " << arguments;
    }
  }
}

// --- the supervisor alone ------------------------------------------------------------------------------------------

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() : run_(folder_ / "run") {
    fs::create_directories(run_.root());
    test::write_text(run_.settings(), "");
    test::write_text(run_.local(), "");
  }

  test::Command supervise(const std::string& engine_body) const {
    const fs::path engine = folder_ / "engine";
    test::write_text(engine, "#!/bin/sh\n" + engine_body + "\n");
    fs::permissions(engine, fs::perms::owner_all);
    return {.arguments = {test::program("tearless").string(), "supervise", run_.root().string(), "--engine",
                          engine.string(), "--stamp", R"({"numerics": 5})", "--grace", "1"}};
  }

  test::TempFolder folder_;
  RunDirectory run_;
};

TEST_F(SupervisorTest, RecordsHowItBeganAndEnded) {
  EXPECT_EQ(test::run(supervise("echo attempt $TEARLESS_ATTEMPT of $2; exit 9")).code, 0);
  const AttemptRecord record = read_attempt(run_, 1);
  EXPECT_EQ(record.code, 9);
  EXPECT_EQ(record.signal, 0);
  EXPECT_EQ(record.numerics, 5);
  EXPECT_FALSE(record.host.empty() || record.processor.empty() || record.started_at.empty() || record.ended_at.empty());
  EXPECT_EQ(last_log_line(run_, 1), "attempt 1 of " + run_.root().string());
}

TEST_F(SupervisorTest, ASecondOneFindsTheLockTakenAndStartsNothing) {
  const LockFile lock = LockFile::acquire(run_.lock());
  EXPECT_EQ(test::run(supervise("exit 0")).code, 69);
  EXPECT_EQ(run_.newest_attempt(), 0);
}

TEST_F(SupervisorTest, AnEngineThatIgnoresTheRequestIsKilledAfterItsGrace) {
  test::Background supervisor(supervise("trap '' TERM; echo deaf; while :; do sleep 0.1; done"));
  ASSERT_TRUE(test::eventually([&] { return last_log_line(run_, 1) == "deaf"; }));
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().code, 0);
  EXPECT_EQ(read_attempt(run_, 1).signal, SIGKILL);
  EXPECT_EQ(read_attempt(run_, 1).asked, "stop");
}

TEST_F(SupervisorTest, ProcessesThatTheEngineLeavesAreKilled) {
  EXPECT_EQ(test::run(supervise("sleep 1000 & exit 0")).code, 0);
  EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(run_.lock()); }));  // the child had inherited it
}

TEST_F(SupervisorTest, AProgramThatCannotBeStartedIsInTheLog) {
  test::Command command = supervise("");
  command.arguments[4] = "/nowhere/engine";
  EXPECT_EQ(test::run(command).code, 0);
  EXPECT_EQ(read_attempt(run_, 1).code, 127);
  EXPECT_THAT(last_log_line(run_, 1), HasSubstr("cannot start /nowhere/engine"));
}

}  // namespace
}  // namespace tearless::harness::run_test
