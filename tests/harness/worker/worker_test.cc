// Grids that workers train: the table and the files of a sweep on one machine, byte for byte, whatever is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "harness/grants/board.h"
#include "harness/grants/grant.h"
#include "harness/grants/places.h"
#include "harness/grants/publication.h"
#include "harness/grants/worker_file.h"
#include "tests/harness/run_fixture.h"
#include "tests/harness/slurm/stand_ins.h"

namespace tearless::harness::worker_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Four runs of 12 updates, and a derived one of each.
class WorkerTest : public ServedRunTest {
 protected:
  WorkerTest() { write_slow_grid(0); }

  void write_slow_grid(int sleep_ms) const {
    test::write_text(folder_ / "grid.toml", grid_of("\"succeed\"", sleep_ms) +
                                                "[derived.better]\nextra = 2\n[derived.best]\noutputs = \"better\"\n");
  }

  test::Command worker_command(const char* idle_seconds = "4", std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"worker", "--workspace", "results", "--jobs", "2", "--idle", idle_seconds};
    arguments.insert(arguments.end(), more.begin(), more.end());
    test::Command made = command(arguments);
    made.environment["TEARLESS_NODE_DIR"] = (folder_ / "node").string();
    return made;
  }

  // What a sweep leaves: the table, and the result files of each run.
  std::map<std::string, std::string> results_of(const std::string& workspace) const {
    std::map<std::string, std::string> results;
    results["table"] = ok({"table", "last", "--workspace", workspace}).output;
    for (const auto& entry : fs::directory_iterator(folder_ / workspace / "runs")) {
      for (const char* name : {"DONE", "metrics.jsonl", "scores.json", "run.toml", "outputs/test.hyp"}) {
        if (fs::exists(entry.path() / name)) {
          results[entry.path().filename().string() + "/" + name] = test::read_text(entry.path() / name);
        }
      }
    }
    return results;
  }
  void expect_the_results_of_a_local_sweep() const {
    ok({"run", "grid.toml", "--workspace", "local"});
    EXPECT_EQ(results_of("results"), results_of("local"));
    ok({"verify"});
    for (const auto& entry : fs::directory_iterator(folder_ / "results/runs")) {
      for (const auto& attempt : fs::directory_iterator(entry.path() / "attempts")) {
        for (const auto& file : fs::directory_iterator(attempt.path()))
          EXPECT_FALSE(file.is_directory()) << file.path();
      }
    }
  }
  json rows() const { return json::parse(ok({"--json", "runs", "last", "--derived"}).output); }
  // The worker of a run that has a checkpoint and no result; "" while there is none.
  std::string busy_worker() const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / "results/runs", none)) {
      const RunDirectory run(entry.path());
      const RunDirectory work = folder_of(run, run.newest_attempt());
      if (work.root() != run.root() && work.newest_checkpoint() > 0 && !fs::exists(work.done()))
        return claimant_of(run, run.newest_attempt());
    }
    return "";
  }
  std::vector<pid_t> living_programs() const {
    std::vector<pid_t> programs;
    for (const RunDirectory& run : runs()) {
      const pid_t program = run.newest_begun_attempt() > 0 ? engine_of(run) : 0;
      if (program > 0) programs.push_back(program);
    }
    return programs;
  }
  bool has_a_checkpoint() const { return !busy_worker().empty(); }
};

TEST_F(WorkerTest, OneWorkerTrainsAGridAsThisMachineWould) {
  ok({"submit", "grid.toml", "--executor", "workers"});
  EXPECT_THAT(ok({"explain", "last", "1"}).output, HasSubstr("no worker is there; start one: tearless worker"));
  EXPECT_THAT(ok({"status"}).output, HasSubstr("\n  waiting: no worker is there; start one: tearless worker"));
  const test::Finished worker = test::run(worker_command());
  EXPECT_EQ(worker.code, 0) << worker.errors;
  EXPECT_THAT(worker.output, HasSubstr("ends: idle"));
  ok({"wait", "last"});
  EXPECT_EQ(attempts(), 12) << "each once";
  expect_the_results_of_a_local_sweep();
  EXPECT_THAT(fs::is_empty(folder_ / "node/locks"), true);
}

TEST_F(WorkerTest, ThreeWorkersDoToo) {
  ok({"submit", "grid.toml", "--executor", "workers"});
  std::vector<std::unique_ptr<test::Background>> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(std::make_unique<test::Background>(worker_command()));
  for (auto& worker : workers) EXPECT_EQ(worker->wait().code, 0);
  ok({"wait", "last"});
  EXPECT_EQ(attempts(), 12);
  expect_the_results_of_a_local_sweep();
}

TEST_F(WorkerTest, AWorkerThatIsAskedToEndStopsItsRunsWithCheckpoints) {
  write_slow_grid(80);
  ok({"submit", "grid.toml", "--executor", "workers"});
  test::Background first(worker_command());
  ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
  first.signal(SIGTERM);
  const test::Finished ended = first.wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("ends: asked"));
  EXPECT_EQ(test::run(worker_command()).code, 0);
  ok({"wait", "last"});
  EXPECT_THAT(ok({"explain", "last", "1"}).output, HasSubstr("exit code 75"));
  expect_the_results_of_a_local_sweep();
}

TEST_F(WorkerTest, WhoseTimeIsNearlyOverTakesNothing) {
  ok({"submit", "grid.toml", "--executor", "workers"});
  for (const char* until : {"59s", "90s", "1m", "1:30", "0-00:01:30"}) {
    const test::Finished refused = test::run(worker_command("4", {"--until", until}));
    EXPECT_EQ(refused.code, 2) << until;
    EXPECT_THAT(refused.errors, HasSubstr("leaves no time to train")) << until;
  }
  for (const char* until : {"soon", "10", "1:30h", "1-", "-1:00"}) {
    const test::Finished refused = test::run(worker_command("4", {"--until", until}));
    EXPECT_EQ(refused.code, 2) << until;
    EXPECT_THAT(refused.errors, HasSubstr("is no time such as 3h")) << until;
  }
  EXPECT_EQ(rows().at(0).at("state"), "queued");
  for (const char* until : {"1:30:00", "1-12:00:00", "2h"}) {
    EXPECT_THAT(test::run(worker_command("0", {"--until", until})).output, HasSubstr("ends: idle")) << until;
  }
}

TEST_F(WorkerTest, EndsWithCheckpointsByEachSignalThatASchedulerOrATerminalSends) {
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) {
    write_slow_grid(80);
    ok({"submit", "grid.toml", "--executor", "workers"});
    test::Background worker(worker_command());
    ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
    worker.signal(signal);
    const test::Finished ended = worker.wait();
    EXPECT_EQ(ended.code, 0) << signal;
    EXPECT_THAT(ended.output, HasSubstr("ends: asked")) << signal;
    EXPECT_TRUE(test::eventually([&] {
      return std::ranges::any_of(runs(), [](const RunDirectory& run) {
        const fs::path exit = run.attempt(1) / "exit.json";
        return fs::exists(exit) && json::parse(test::read_text(exit)).at("code") == kExitStopped;
      });
    })) << signal;
    ok({"cancel", "last"});
    ASSERT_TRUE(test::eventually([&] { return tearless({"delete", "last", "--yes"}).code == 0; }));
  }
}

TEST_F(WorkerTest, OneThatNohupHasStartedOutlivesItsTerminal) {
  test::Command nohup = worker_command("0");
  nohup.arguments.insert(nohup.arguments.begin(), {"/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh"});
  ok({"submit", "grid.toml", "--executor", "workers"});
  test::Background worker(nohup);
  ASSERT_TRUE(test::eventually([&] { return attempts() > 0; }));
  worker.signal(SIGHUP);
  EXPECT_THAT(worker.wait().output, HasSubstr("ends: idle"));
}

TEST_F(WorkerTest, RunsWaitForAWorkerThatHasTheirSecrets) {
  std::ofstream(folder_ / "grid.toml", std::ios::app) << "[policy]\nenvironment = [\"HF_*\"]\n";
  test::Command submit = command({"submit", "grid.toml", "--executor", "workers"});
  submit.environment["HF_TOKEN"] = "hush";
  EXPECT_EQ(test::run(submit).code, 0);
  EXPECT_THAT(ok({"status"}).output, HasSubstr("no worker is there; start one: HF_TOKEN=… tearless worker"));
  test::Background without(worker_command("8"));
  EXPECT_TRUE(test::eventually(
      [&] { return ok({"status"}).output.find("no worker has HF_TOKEN; start one:") != std::string::npos; }));
  EXPECT_EQ(without.wait().code, 0);
  EXPECT_EQ(attempts(), 0) << "nothing was granted";
  test::Command with = worker_command("2");
  with.environment["HF_TOKEN"] = "hush";
  EXPECT_EQ(test::run(with).code, 0);
  ok({"wait", "last"});
  expect_the_results_of_a_local_sweep();
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "results")) {
    const std::string text = entry.is_regular_file() ? test::read_text(entry.path()) : "";
    EXPECT_THAT(text, Not(HasSubstr("hush"))) << entry.path();
  }
}

// --- other people's files --------------------------------------------------------------------------------------------

void let_write(const fs::path& path, fs::perms who) { fs::permissions(path, who, fs::perm_options::add); }

TEST_F(WorkerTest, RefusesABoardThatOthersMayWrite) {
  ok({"submit", "grid.toml", "--executor", "workers"});
  for (const char* name : {"queue", "queue/board"}) {
    const fs::path path = folder_ / "results" / name;
    let_write(path, fs::perms::others_write);
    const test::Finished refused = test::run(worker_command());
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.errors,
                HasSubstr("can be written by anybody, who could have your user run anything: chmod o-w"));
    EXPECT_EQ(attempts(), 0);
    fs::permissions(path, fs::perms::others_write, fs::perm_options::remove);
  }
  let_write(folder_ / "results/queue/board", fs::perms::others_write);
  EXPECT_EQ(test::run(worker_command("2", {"--shared"})).code, 0);
  ok({"wait", "last"});
}

TEST_F(WorkerTest, RefusesAProgramThatOthersMayWriteAndTheSweepSaysSo) {
  ok({"submit", "grid.toml", "--executor", "workers"});
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "results/programs")) {
    if (entry.is_regular_file()) let_write(entry.path(), fs::perms::others_write);
  }
  EXPECT_EQ(test::run(worker_command("2")).code, 0);
  EXPECT_EQ(tearless({"wait", "last"}).code, 1);
  EXPECT_THAT(ok({"status"}).output, HasSubstr("chmod o-w"));
  EXPECT_THAT(rows().at(0).at("state"), "queued");
  for (const RunDirectory& run : runs()) EXPECT_FALSE(fs::exists(run.metrics())) << "nothing was trained";
}

TEST_F(WorkerTest, WhateverTheUmaskIsNobodyElseMayWriteWhatAWorkerTrusts) {
  const auto with_umask_0 = [](test::Command made) {
    made.arguments.insert(made.arguments.begin(), {"/bin/sh", "-c", "umask 0; exec \"$@\"", "sh"});
    return made;
  };
  EXPECT_EQ(test::run(with_umask_0(command({"submit", "grid.toml", "--executor", "workers"}))).code, 0);
  EXPECT_EQ(test::run(with_umask_0(worker_command())).code, 0);
  ok({"wait", "last"});
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "results")) {
    static const std::set<std::string> kFiles = {"board",     "grant.json", "claimed",    "start.json",
                                                 "exit.json", "ended.json", "sweep.json", "fake-engine"};
    static const std::set<std::string> kFoldersOfPrograms = {"outputs", "checkpoints"};
    const std::string name = entry.path().filename(), above = entry.path().parent_path().filename();
    const bool is_programs = entry.is_directory()
                                 ? kFoldersOfPrograms.contains(name) || kFoldersOfPrograms.contains(above)
                                 : !kFiles.contains(name);
    const fs::perms others = fs::perms::group_write | fs::perms::others_write;
    if (is_programs || entry.is_symlink()) continue;
    EXPECT_EQ(entry.status().permissions() & others, fs::perms::none) << entry;
  }
}

// A daemon whose clock the test puts forward.
class SilentWorkerTest : public WorkerTest {
 protected:
  SilentWorkerTest() {
    write_slow_grid(80);
    test::write_text(folder_ / "clock", "0");
    test::Command daemon = command({"daemon", "--workspace", "results"});
    daemon.environment["LD_PRELOAD"] = test::program("libfake-clock.so").string();
    daemon.environment["TEARLESS_FAKE_CLOCK"] = (folder_ / "clock").string();
    service_ = std::make_unique<test::Background>(daemon);
    EXPECT_TRUE(test::eventually([&] { return is_served("results"); }));
    ok({"submit", "grid.toml", "--executor", "workers"});
  }
  ~SilentWorkerTest() override {
    tearless({"stop"});
    service_->wait();
  }

  // Ten minutes of silence, again and again: the service may hear what a worker said last only after the first.
  void wait_until_given_up() {
    ASSERT_TRUE(test::eventually([&] {
      test::write_text(folder_ / "clock", std::to_string(clock_ += 700));
      return std::ranges::any_of(runs(), [](const RunDirectory& run) {
        return !claimant_of(run, 1).empty() && fs::exists(run.attempt(1) / "ended.json");
      });
    }));
  }

  std::unique_ptr<test::Background> service_;
  int64_t clock_ = 0;
};

TEST_F(SilentWorkerTest, AfterAKillOfAWorkerItsRunsGoOnElsewhere) {
  {
    test::Background first(worker_command());
    ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
    const std::vector<pid_t> programs = living_programs();
    ASSERT_FALSE(programs.empty());
    first.signal(SIGKILL);
    first.wait();
    for (const pid_t program : programs) {
      EXPECT_TRUE(test::eventually([&] { return ::kill(program, 0) != 0; })) << "what it started ends with it";
    }
  }
  wait_until_given_up();
  test::Background second(worker_command());
  EXPECT_EQ(second.wait().code, 0);
  ok({"wait", "last"});
  expect_the_results_of_a_local_sweep();
}

TEST_F(SilentWorkerTest, ASilentWorkersRunsAreSaidToBeSilentAndAServiceThatStopsNowEndsWithoutThem) {
  test::Background first(worker_command());
  ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
  first.signal(SIGKILL);
  first.wait();
  for (const char* clock : {"70", "140"}) {  // what it said last may be heard after the first jump alone
    ::usleep(2'000'000);
    test::write_text(folder_ / "clock", clock);
  }
  ASSERT_TRUE(test::eventually([&] { return ok({"status"}).output.find(" silent, ") != std::string::npos; }));
  const std::string status = ok({"status"}).output;
  EXPECT_THAT(status, AllOf(HasSubstr(" is silent for "), HasSubstr(" 0 running")));
  EXPECT_THAT(status, HasSubstr("the run is granted again after 10:00"));
  EXPECT_THAT(status, Not(HasSubstr(" left")));
  ok({"stop", "--now"});
  std::future<test::Finished> submits = begin({"submit", "grid.toml"});
  ::usleep(4'000'000);
  EXPECT_FALSE(service_->has_ended());
  test::write_text(folder_ / "clock", "210");  // a grace time of 30 s is over
  EXPECT_TRUE(test::eventually([&] { return service_->has_ended(); }));
  const test::Finished submitted = submits.get();
  EXPECT_EQ(submitted.code, 0);
  EXPECT_THAT(submitted.errors, HasSubstr("waits for the service (process "));
  EXPECT_THAT(service_log(), HasSubstr("adopted")) << "the next service has taken over what the worker holds";
  kill_service();  // else it waits for the grace time of what that holds
}

// A machine that was cut off, and comes back while another one trains its runs.
TEST_F(SilentWorkerTest, TwoLiveCopiesOfARunLeaveOneResult) {
  test::Background first(worker_command("60"));
  ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
  first.signal(SIGSTOP);
  const std::vector<pid_t> programs = living_programs();
  ASSERT_FALSE(programs.empty());
  for (const pid_t program : programs) ::kill(program, SIGSTOP);
  wait_until_given_up();
  test::Background second(worker_command());
  ASSERT_TRUE(test::eventually([&] {
    return std::ranges::any_of(runs(), [](const RunDirectory& run) { return run.newest_begun_attempt() > 1; });
  }));
  for (const pid_t program : programs) ::kill(program, SIGCONT);
  EXPECT_EQ(second.wait().code, 0);
  first.signal(SIGCONT);
  ok({"wait", "last"});
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait().code, 0);
  expect_the_results_of_a_local_sweep();
}

// Also where the service that gave them up is not there any more. Each would take two minutes.
TEST_F(WorkerTest, AttemptsThatWereGivenUpOrDeletedAreStoppedByTheirWorker) {
  write_slow_grid(10'000);
  ok({"submit", "grid.toml", "--executor", "workers"});
  test::Background worker(worker_command("2"));
  ASSERT_TRUE(test::eventually([&] { return living_programs().size() == 2; }));
  const std::vector<pid_t> programs = living_programs();
  kill_service();
  std::vector<RunDirectory> begun;
  for (const RunDirectory& run : runs()) {
    if (run.newest_begun_attempt() > 0) begun.push_back(run);
  }
  end_grant(begun.at(0), 1, FailureClass::kLost, "cut off");
  fs::rename(begun.at(1).root(), folder_ / "deleted");
  for (const pid_t program : programs) EXPECT_TRUE(test::eventually([&] { return ::kill(program, 0) != 0; }));
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait().code, 0);
  EXPECT_EQ(read_attempt(begun[0], 1).asked, "stop");
}

TEST_F(WorkerTest, TheNextServiceGoesOnWithTheWorkers) {
  write_slow_grid(80);
  ok({"submit", "grid.toml", "--executor", "workers"});
  test::Background worker(worker_command("10"));
  ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
  kill_service();
  ok({"wait", "last"});
  EXPECT_EQ(attempts(), 12) << "nothing was begun again";
  EXPECT_EQ(worker.wait().code, 0);
  expect_the_results_of_a_local_sweep();
}

TEST_F(WorkerTest, PauseResumeAndAChangeOfMachinesLoseNothing) {
  write_slow_grid(80);
  ok({"submit", "grid.toml", "--executor", "workers"});
  test::Background worker(worker_command("20"));
  ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
  ok({"pause", "last"});
  ASSERT_TRUE(test::eventually([&] {
    const json all = rows();
    return std::ranges::none_of(all, [](const json& run) { return run.at("state") == "running"; });
  }));
  ok({"copy", "copied"});
  ok({"submit", "grid.toml", "--executor", "none"});  // which resumes it, here
  ok({"wait", "last"});
  EXPECT_THAT(ok({"explain", "last", "1"}).output, Not(HasSubstr("lost")));
  ok({"run", "grid.toml", "--executor", "none", "--workspace", "copied"});
  EXPECT_EQ(results_of("copied"), results_of("results"));
  worker.signal(SIGTERM);
  worker.wait();
  ok({"run", "grid.toml", "--workspace", "local"});
  EXPECT_EQ(results_of("results"), results_of("local"));
  ok({"verify"});
}

TEST_F(WorkerTest, TheExecutorStaysWithTheSweepUntilAnotherIsNamed) {
  ok({"submit", "grid.toml", "--executor", "workers"});
  ok({"submit", "grid.toml"});
  EXPECT_EQ(rows().at(0).at("state"), "queued") << "not on this machine, which was not asked for";
  EXPECT_EQ(tearless({"submit", "grid.toml", "--executor", "moon"}).code, 2);
  for (const char* executor : {"none", "workers"}) {
    EXPECT_THAT(tearless({"submit", "grid.toml", "--executor", executor, "--executor-file", "moons.toml"}).errors,
                HasSubstr("--executor-file moons.toml has no effect: name one of its sections"));
  }
  EXPECT_THAT(ok({"plan", "grid.toml", "--executor", "workers"}).output,
              HasSubstr("Next: tearless run grid.toml --executor workers\n"));
  ok({"submit", "grid.toml", "--executor", "none"});
  ok({"wait", "last"});
  EXPECT_EQ(rows().at(0).at("state"), "done");
}

TEST_F(WorkerTest, WhatNoWorkerHasTakenIsTakenBackWhenTheSweepComesToThisMachine) {
  ok({"submit", "grid.toml", "--executor", "workers"});
  const WorkerFile silent(workers_of(workspace()), {.name = "n9-0a1b2c3d", .host = "n9", .cores = 1});
  ASSERT_TRUE(test::eventually([&] { return attempts() > 0; })) << "granted";
  const std::string status = ok({"status"}).output;
  EXPECT_THAT(status, AllOf(HasSubstr(" granted"), HasSubstr(" 0 running"))) << "which is not running";
  ok({"submit", "grid.toml", "--executor", "none"});
  ok({"wait", "last"});
  EXPECT_EQ(rows().at(0).at("state"), "done");
}

// Grants whose service is the test.
class GrantedTest : public WorkerTest {
 protected:
  GrantedTest() { make_folders(workers_of(workspace())); }
  RunDirectory grant(const std::string& settings, const std::map<std::string, RunFiles>& origins = {}) const {
    const RunDirectory run = workspace().run(run_id(settings));
    write_grant(run, {.id = run.id(),
                      .attempt = run.make_attempt(),
                      .settings = settings,
                      .local = "",
                      .program = {},
                      .needs = {},
                      .origins = origins});
    return run;
  }
};

TEST_F(GrantedTest, AnAttemptThatWasGivenUpBeforeItBeganDoesNotBegin) {
  const RunDirectory run = grant("a = 1\n", {{"1234", {.done = "not seen yet"}}});
  write_board(board_of(workspace()), {});
  test::Background worker(worker_command("30"));
  ASSERT_TRUE(test::eventually([&] { return !entries_of(workers_of(workspace())).empty(); }));
  const fs::path file = entries_of(workers_of(workspace()))[0].path();
  write_board(board_of(workspace()),
              {.seen = {file.stem()}, .grants = {{.id = run.id(), .attempt = 1, .needs = {.executor = kWorkers}}}});
  ASSERT_TRUE(test::eventually([&] { return claimant_of(run, 1) == file.stem(); }));
  end_grant(run, 1);
  ASSERT_TRUE(
      test::eventually([&] { return test::read_text(file).find("given this attempt up") != std::string::npos; }));
  EXPECT_FALSE(run.has_begun(1));
  worker.signal(SIGTERM);
  worker.wait();
}

TEST_F(GrantedTest, AnIdleWorkerStaysAsLongAsTheBoardWantsIt) {
  write_board(board_of(workspace()), {});
  test::Background worker(worker_command("1"));
  ASSERT_TRUE(test::eventually([&] { return !entries_of(workers_of(workspace())).empty(); }));
  const std::string name = entries_of(workers_of(workspace()))[0].path().stem();
  write_board(board_of(workspace()), {.seen = {name}, .stay = {name}});
  ::usleep(4'000'000);
  EXPECT_FALSE(worker.has_ended());
  write_board(board_of(workspace()), {.seen = {name}});
  EXPECT_THAT(worker.wait().output, HasSubstr("ends: idle"));
}

TEST_F(GrantedTest, TakesNothingMoreWhileARunWaitsForFiles) {
  const RunDirectory late = grant("a = 1\n", {{"1234", {.done = "late"}}}), other = grant("a = 2\n", {});
  write_board(board_of(workspace()), {});
  test::Background worker(worker_command("30"));
  ASSERT_TRUE(test::eventually([&] { return !entries_of(workers_of(workspace())).empty(); }));
  const std::string name = entries_of(workers_of(workspace()))[0].path().stem();
  const auto open = [](const RunDirectory& run) {
    return OpenGrant{.id = run.id(), .attempt = 1, .needs = {.executor = kWorkers}};
  };
  fs::rename(late.root(), folder_ / "unseen");
  write_board(board_of(workspace()), {.seen = {name}, .grants = {open(late)}});
  ::usleep(2'500'000);  // two looks at the board
  fs::rename(folder_ / "unseen", late.root());
  ASSERT_TRUE(test::eventually([&] { return claimant_of(late, 1) == name; })) << "once its folder is seen";
  write_board(board_of(workspace()), {.seen = {name}, .grants = {open(late), open(other)}});
  ::usleep(2'500'000);
  EXPECT_EQ(claimant_of(other, 1), "") << "it may need the room that there is";
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait().code, 0);
}

// It would train for nobody: its folder may be a private copy of another machine's.
TEST_F(WorkerTest, ClaimsNothingWhileNoServiceSeesIt) {
  const std::string settings = "a = 1\n";
  const RunDirectory run = workspace().run(run_id(settings));
  make_folders(workers_of(workspace()));
  write_grant(
      run,
      {.id = run.id(), .attempt = run.make_attempt(), .settings = settings, .local = "", .program = {}, .needs = {}});
  write_board(board_of(workspace()),
              {.seen = {"another"}, .grants = {{.id = run.id(), .attempt = 1, .needs = {.executor = kWorkers}}}});
  test::Command lonely = worker_command("0");
  lonely.environment["LD_PRELOAD"] = test::program("libfake-clock.so").string();
  lonely.environment["TEARLESS_FAKE_CLOCK"] = (folder_ / "clock").string();
  test::write_text(folder_ / "clock", "0");
  test::Background worker(lonely);
  for (int64_t clock = 0; !worker.has_ended() && clock < 100'000; clock += 700) {
    test::write_text(folder_ / "clock", std::to_string(clock));
    ::usleep(200'000);
  }
  const test::Finished ended = worker.wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.errors, HasSubstr("no service has seen"));
  EXPECT_EQ(claimant_of(run, 1), "");
}

TEST_F(WorkerTest, AMachineOnWhichRunsFailAtOnceIsLeftOutAndNamed) {
  std::string grid = grid_of("\"crash_once\"", 0);
  grid.replace(grid.find("= 12"), 4, "= 4");  // the first crash is before the first checkpoint
  test::write_text(folder_ / "grid.toml", grid);
  ok({"submit", "grid.toml", "--executor", "workers"});
  const WorkerFile other(workers_of(workspace()), {.name = "n9-0a1b2c3d", .host = "n9", .cores = 1});
  test::Background worker(worker_command("20"));
  const std::string host = this_machine();
  ASSERT_TRUE(test::eventually(
      [&] { return ok({"status"}).output.find("  " + host + " is left out for 60 minutes: ") != std::string::npos; }));
  EXPECT_THAT(ok({"--json", "status"}).output, HasSubstr("\"" + host + " is left out for "));
  const std::string explained = ok({"explain", "last"}).output;
  EXPECT_THAT(explained,
              HasSubstr("exit code 1: index 7 out of range; " + host + " may be at fault: it is tried elsewhere"));
  EXPECT_THAT(explained, AllOf(HasSubstr("no worker has taken it yet, not on " + host), Not(HasSubstr("crashed"))));
  ::usleep(3'000'000);
  for (const RunDirectory& run : runs()) EXPECT_LT(run.newest_begun_attempt(), 2) << "its worker leaves it to others";
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait().code, 0);
}

TEST_F(WorkerTest, SaysWhereThereIsNoBoard) {
  fs::create_directories(folder_ / "results");
  test::Command lost = worker_command();
  lost.environment["LD_PRELOAD"] = test::program("libfake-clock.so").string();
  lost.environment["TEARLESS_FAKE_CLOCK"] = (folder_ / "clock").string();
  test::write_text(folder_ / "clock", "0");
  test::Background worker(lost);
  for (int64_t clock = 0; !worker.has_ended() && clock < 100'000; clock += 130) {
    test::write_text(folder_ / "clock", std::to_string(clock));
    ::usleep(200'000);
  }
  const test::Finished ended = worker.wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.errors, AllOf(HasSubstr("does not see"), HasSubstr("results/queue/board")));
}

// A network file system shows names of other machines late, and in another order.
TEST_F(WorkerTest, WaitsForTheFolderOfWorkersWhereTheBoardIsSeenFirst) {
  make_folders(queue_of(workspace()));
  write_board(board_of(workspace()), {});
  test::Background worker(worker_command("60"));
  ::usleep(1'500'000);
  EXPECT_FALSE(worker.has_ended());
  make_folders(workers_of(workspace()));
  EXPECT_TRUE(test::eventually([&] { return !fs::is_empty(workers_of(workspace())); }));
  worker.signal(SIGTERM);
  EXPECT_THAT(worker.wait().output, HasSubstr("ends: asked"));
}

TEST_F(WorkerTest, SaysWhereThereIsNoWorkspace) {
  test::Command lost = command({"worker", "--workspace", "nowhere"});
  const test::Finished refused = test::run(lost);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("there is no workspace nowhere on this machine"));
}

// --- Slurm: stand-ins of its commands run batch jobs as processes of this machine -----------------------------------

class SlurmTest : public WorkerTest {
 protected:
  SlurmTest() { write_executors("workers = 2\ntime = \"10\"\n"); }

  void write_executors(const std::string& keys) const {
    test::write_text(folder_ / "executors.toml", "[small]\nkind = \"slurm\"\n" + keys);
  }
  test::Finished with_slurm(std::vector<std::string> arguments) const {
    test::Command made = command(std::move(arguments));
    made.environment["PATH"] = stand_ins_.path() + ":" + std::getenv("PATH");
    made.environment["TEARLESS_NODE_DIR"] = (folder_ / "node").string();
    return test::run(made);
  }
  test::Finished submit_to(const std::string& executor) const {
    return with_slurm({"submit", "grid.toml", "--executor", executor, "--executor-file", "executors.toml"});
  }

  StandIns stand_ins_{{"slots=3", "kill_wait=10", "grace_time=0"}};
};

TEST_F(SlurmTest, TrainsAGridByTheWorkersThatItSubmits) {
  EXPECT_EQ(submit_to("small").code, 0);
  EXPECT_EQ(with_slurm({"wait", "last"}).code, 0);
  EXPECT_EQ(attempts(), 12) << "each once";
  expect_the_results_of_a_local_sweep();
}

TEST_F(SlurmTest, AJobThatIsPreemptedCostsNoTry) {
  write_slow_grid(400);
  EXPECT_EQ(submit_to("small").code, 0);
  std::string worker;
  ASSERT_TRUE(test::eventually([&] { return !(worker = busy_worker()).empty(); }));
  const std::string facts = test::read_text(workers_of(workspace()) / (worker + ".jsonl"));
  const std::string job = json::parse(facts.substr(0, facts.find('\n'))).at("job");
  stand_ins_.preempt(job.substr(0, job.find('@')));
  EXPECT_EQ(with_slurm({"wait", "last"}).code, 0);
  EXPECT_THAT(ok({"explain", "last"}).output,
              AllOf(HasSubstr("stopped, on request; exit code 75"), Not(HasSubstr("failed"))));
  expect_the_results_of_a_local_sweep();
}

TEST_F(SlurmTest, APlanSaysWhatItAsksOfTheCluster) {
  const std::vector<std::string> words = {"plan",  "grid.toml",       "--executor",
                                          "small", "--executor-file", "executors.toml"};
  EXPECT_THAT(ok(words).output, HasSubstr("\nExecutor small: 2 workers, 4 runs not timed yet\n")) << "without Slurm";
  std::vector<std::string> in_json = words;
  in_json.insert(in_json.begin(), "--json");
  const json plan = json::parse(ok(in_json).output).at("executor");
  EXPECT_EQ(plan.at("name"), "small");
  EXPECT_EQ(plan.at("workers"), 2);
  EXPECT_EQ(plan.at("runs_without"), 4);
  EXPECT_EQ(json::parse(ok({"--json", "plan", "grid.toml"}).output).contains("executor"), false);
  EXPECT_THAT(tearless({"plan", "grid.toml", "--executor", "large", "--executor-file", "executors.toml"}).errors,
              HasSubstr("there is no executor \"large\""));
  ok({"run", "grid.toml"});
  EXPECT_THAT(ok({"plan", "grid.toml", "--executor", "workers", "--set", "fake.score.other=1"}).output,
              AllOf(HasSubstr("\nExecutor workers: about "), HasSubstr(" core hours")));
}

TEST_F(SlurmTest, ALimitOfGpuHoursIsForAClusterWithGpus) {
  const auto limited = [this](const std::string& executor) {
    return with_slurm(
        {"submit", "grid.toml", "--executor", executor, "--executor-file", "executors.toml", "--max-gpu-hours", "3"});
  };
  EXPECT_THAT(limited("small").errors, HasSubstr("--max-gpu-hours has no effect: the executor small has no GPU"));
  EXPECT_THAT(tearless({"submit", "grid.toml", "--executor", "workers", "--max-gpu-hours", "3"}).errors,
              HasSubstr("--max-gpu-hours limits the jobs of a cluster"));
  EXPECT_THAT(tearless({"submit", "grid.toml", "--max-gpu-hours", "3"}).errors, HasSubstr("name its section"));
  EXPECT_FALSE(fs::exists(folder_ / "results/sweeps"));
  write_executors("options = [\"--gpus=1\"]\n");
  EXPECT_EQ(limited("small").code, 2) << "the stand-in has no such option";
  write_executors("gres = \"gpu:a:1\"\n");
  EXPECT_EQ(limited("small").code, 0);
  EXPECT_TRUE(test::eventually(
      [&] { return with_slurm({"status"}).output.find("small: 0.0 of 3 GPU hours are used") != std::string::npos; }));
}

TEST_F(SlurmTest, WhatSlurmRefusesIsToldBeforeAnythingIsSubmitted) {
  write_executors("partition = \"no\"\n");
  const test::Finished refused = submit_to("small");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--executor small: "));
  EXPECT_THAT(refused.errors, HasSubstr("invalid partition"));
  EXPECT_FALSE(fs::exists(folder_ / "results/sweeps"));
  const test::Finished unknown = submit_to("large");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.errors, AllOf(HasSubstr("large"), HasSubstr("small")));
}

}  // namespace
}  // namespace tearless::harness::worker_test
