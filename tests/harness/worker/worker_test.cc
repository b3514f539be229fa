// Grids that workers train: the table and the files of a sweep on one machine, byte for byte, whatever is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/harness/run_fixture.h"

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
        EXPECT_FALSE(fs::exists(attempt.path() / "work")) << attempt.path();
      }
    }
  }
  json rows() const { return json::parse(ok({"--json", "runs", "last", "--derived"}).output); }
  bool has_a_checkpoint() const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / "results/runs", none)) {
      const RunDirectory run(entry.path());
      const RunDirectory work = folder_of(run, run.newest_attempt());
      if (work.root() != run.root() && work.newest_checkpoint() > 0 && !fs::exists(work.done())) return true;
    }
    return false;
  }
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
  EXPECT_THAT(test::run(worker_command("4", {"--until", "59s"})).output, HasSubstr("ends: until"));
  EXPECT_EQ(rows().at(0).at("state"), "queued");
  EXPECT_EQ(test::run(worker_command("4", {"--until", "soon"})).code, 2);
}

// Ten minutes of silence pass on the service's clock.
TEST_F(WorkerTest, AfterAKillOfAWorkerItsRunsGoOnElsewhere) {
  write_slow_grid(80);
  test::Command daemon = command({"daemon", "--workspace", "results"});
  daemon.environment["LD_PRELOAD"] = test::program("libfake-clock.so").string();
  daemon.environment["TEARLESS_FAKE_CLOCK"] = (folder_ / "clock").string();
  test::write_text(folder_ / "clock", "0");
  test::Background service(daemon);
  ASSERT_TRUE(test::eventually([&] { return is_served("results"); }));
  ok({"submit", "grid.toml", "--executor", "workers"});
  {
    test::Background first(worker_command());
    ASSERT_TRUE(test::eventually([&] { return has_a_checkpoint(); }));
    first.signal(SIGKILL);
    first.wait();
  }
  // Again and again: the service may hear what the worker said last only after the first ten minutes.
  int64_t clock = 0;
  ASSERT_TRUE(test::eventually([&] {
    test::write_text(folder_ / "clock", std::to_string(clock += 700));
    return ok({"explain", "last", "1"}).output.find("gives no sign of life") != std::string::npos;
  }));
  test::Background second(worker_command());
  EXPECT_EQ(second.wait().code, 0);
  ok({"wait", "last"});
  expect_the_results_of_a_local_sweep();
  ok({"stop"});
  service.wait();
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
  ok({"submit", "grid.toml", "--executor", "none"});
  ok({"wait", "last"});
  EXPECT_EQ(rows().at(0).at("state"), "done");
}

TEST_F(WorkerTest, SaysWhereThereIsNoWorkspace) {
  test::Command lost = command({"worker", "--workspace", "nowhere"});
  const test::Finished refused = test::run(lost);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("there is no workspace nowhere on this machine"));
}

}  // namespace
}  // namespace tearless::harness::worker_test
