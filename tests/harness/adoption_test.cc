// A service that is killed while a supervisor has begun and not yet written start.json: its successor knows of the
// attempt by the run's lock alone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fault.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/faults.h"

namespace tearless::harness::adoption_test {
namespace {

using testing::HasSubstr;

class AdoptionTest : public ServedRunTest {
 protected:
  AdoptionTest() {
    test::write_text(folder_ / "grid.toml",
                     "[set]\n\"fake.updates\" = 12\n\"fake.sleep_ms\" = 150\n[axis]\n\"model.kind\" = [\"a\"]\n");
  }

  // Leaves a service that has taken over, and a supervisor that has stopped before its first call of `kind` (a
  // fault::Kind): of taking the run's lock, of making its attempt's folder, or of writing start.json.
  void restart_the_service_before(fault::Kind kind) {
    test::Faults faults(folder_.path());
    faults.plan().kinds = kind;
    faults.plan().roles = fault::kSupervisor;
    faults.plan().action = fault::kSignal;
    faults.plan().error = SIGSTOP;
    faults.plan().first = faults.plan().last = 1;
    test::Command daemon = command({"daemon", "--background"});
    daemon.environment.merge(faults.environment());
    ASSERT_EQ(test::run(daemon).code, 0) << service_log();
    ok({"submit", "grid.toml"});
    ASSERT_TRUE(test::eventually([&] { return faults.hits() == 1; }));
    for (int i = 0; i < faults.plan().processes; ++i) {
      const fault::FaultPlan::Process& process = faults.plan().process[i];
      if (process.role == fault::kSupervisor) supervisor_ = process.pid;
      if (process.role == fault::kDaemon) ::kill(process.pid, SIGKILL);
    }
    ASSERT_GT(supervisor_, 0);
    ASSERT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); }));
    ok({"daemon", "--background"});
  }
  ~AdoptionTest() override {
    if (supervisor_ > 0) ::kill(supervisor_, SIGKILL);
  }

  nlohmann::json rows(const std::string& query) const {
    return nlohmann::json::parse(ok({"--json", "sql", query}).output);
  }
  std::string state() const { return rows("SELECT state FROM runs_view").at(0).at("state"); }
  std::string outcomes() const {
    std::string all;
    for (const auto& row : rows("SELECT attempt, outcome FROM attempts_view ORDER BY attempt")) {
      all += fmt::format("{}{} {}", all.empty() ? "" : ", ", row.at("attempt").get<int>(),
                         row.at("outcome").get<std::string>());
    }
    return all;
  }

  pid_t supervisor_ = 0;
};

TEST_F(AdoptionTest, ASupervisorThatHadNoLockWhenItsServiceDiedNeverBegins) {
  restart_the_service_before(fault::kLock);
  ASSERT_TRUE(test::eventually([&] { return attempts() == 1; }));  // of the second service
  ok({"cancel", "all"});
  ASSERT_TRUE(test::eventually([&] { return state() == "cancelled"; }));
  ::kill(supervisor_, SIGCONT);
  ASSERT_TRUE(test::eventually([&] { return ::kill(supervisor_, 0) != 0; }));
  EXPECT_EQ(attempts(), 1);
  EXPECT_EQ(outcomes(), "1 stopped");
}

TEST_F(AdoptionTest, ASupervisorThatHasOnlyItsLockIsNeitherDoubledNorKilled) {
  restart_the_service_before(fault::kMakeFolder);
  EXPECT_THAT(service_log(), HasSubstr("adopted"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the service looks again, and finds no attempt yet
  EXPECT_EQ(attempts(), 0);
  EXPECT_EQ(state(), "running");
  ::kill(supervisor_, SIGCONT);
  ok({"wait", "all"});
  EXPECT_EQ(test::read_text(runs().at(0).root() / "starts.txt"), "1\n");
  EXPECT_EQ(outcomes(), "1 done");
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(AdoptionTest, ARequestToPauseTheRunReachesTheSupervisorOnceItHasBegun) {
  restart_the_service_before(fault::kWrite);
  EXPECT_EQ(attempts(), 1) << "the folder, without start.json";
  ok({"pause", "1"});
  EXPECT_EQ(state(), "running");
  ::kill(supervisor_, SIGCONT);
  EXPECT_TRUE(test::eventually([&] { return state() == "held"; }));
  EXPECT_EQ(outcomes(), "1 stopped");
  ok({"resume", "1"});
  ok({"wait", "all"});
  EXPECT_EQ(outcomes(), "1 stopped, 2 done");
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(AdoptionTest, ASupervisorThatIsKilledBeforeItHasBegunIsReplacedAndNoAttempt) {
  restart_the_service_before(fault::kWrite);
  ::kill(supervisor_, SIGKILL);
  ok({"wait", "all"});
  EXPECT_EQ(outcomes(), "2 done");
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(AdoptionTest, TheFolderOfARunThatAKillLeftWithoutItsSettingsIsNoDamage) {
  const std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", std::regex_replace(grid, std::regex("\"a\""), "\"a\", \"b\""));
  ok({"daemon", "--background", "--jobs", "1"});
  ok({"submit", "grid.toml"});
  ok({"cancel", "all"});
  const std::string second = rows("SELECT run FROM sweep_runs_view WHERE place = 1").at(0).at("run");
  const RunDirectory run(folder_ / "results/runs" / second);
  fs::create_directories(run.root());
  EXPECT_EQ(tearless({"verify"}).code, 0);
  fs::create_directories(run.attempt(1));
  EXPECT_THAT(tearless({"verify"}).output, HasSubstr("its folder has no run.toml"));
}

}  // namespace
}  // namespace tearless::harness::adoption_test
