// The crash matrix of a sweep that workers train. A daemon is started and a grid submitted; two workers train it. At
// each point of it, in the service, the commands, the workers, the supervisors and the training programs, each choice
// of victims is killed. Then, as long as the sweep is not done: ten minutes pass on the service's clock, the daemon is
// started if it is gone, and two more workers come.
//
// Afterwards the table and the files must have the bytes of an undisturbed sweep on one machine, each run exactly one
// result and no failed try; no process may be alive, and `tearless verify` must find nothing.
//
// And at points of it the power fails, of all machines and the disk that they share.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fault.h"
#include "harness/store/store.h"
#include "tests/crash/sweep.h"

namespace tearless::crash::worker_test {
namespace {

namespace fs = std::filesystem;

struct WorkerVictims {
  const char* name;
  uint32_t mask;
};
constexpr WorkerVictims kWorkerVictims[] = {
    {"who is there", fault::kCallingProcess}, {"all", fault::kEverybody},
    {"the service", fault::kDaemon},          {"the workers", fault::kWorker},
    {"the supervisors", fault::kSupervisor},  {"the programs", fault::kProgram}};
constexpr int kMaxRounds = 10;

class WorkerScript {
 public:
  WorkerScript() : faults_(sweep_.folder()) { pass_ten_minutes(); }
  ~WorkerScript() { faults_.kill_all(); }

  test::Faults& faults() { return faults_; }

  void cut_power_at(int64_t point) {
    faults_.keep_shadow(shadow());
    faults_.kill_at(point, fault::kEverybody);
    cuts_power_ = true;
  }

  void play() {
    for (int tries = 0; tries < kMaxRounds && !is_submitted_; ++tries) {
      start_daemon();
      is_submitted_ = run({"submit", "grid.toml", "--executor", "workers"}).code == 0;
    }
    for (int round = 0; round < kMaxRounds; ++round) {
      lose_what_was_not_synced();
      std::vector<std::unique_ptr<test::Background>> workers;
      for (int i = 0; i < 2; ++i) {
        workers.push_back(std::make_unique<test::Background>(command({"worker", "--jobs", "1", "--idle", "3"})));
      }
      for (auto& worker : workers) log_ += "worker: " + worker->wait().output;
      start_daemon();
      if (is_done()) return;
      pass_ten_minutes();
    }
    ADD_FAILURE() << "the sweep does not end\n" << log_;
  }

  void check(const std::string& where) {
    for (int tries = 0; tries < kMaxRounds && run({"stop"}).code != 0; ++tries) start_daemon();
    test::eventually([&] { return faults_.alive().empty(); });
    EXPECT_THAT(faults_.alive(), testing::IsEmpty()) << where;
    EXPECT_EQ(difference(sweep_.result(), undisturbed(Engine::kFake)), "") << where << "\n" << log_;
    for (const auto& [run, attempts] : sweep_.outcomes()) {
      EXPECT_EQ(std::ranges::count(attempts, "done"), 1) << where << ": " << run;
      for (const std::string& outcome : attempts) {
        EXPECT_THAT(outcome, testing::AnyOf("done", "lost", "stopped", "killed"))
            << where << ": " << run << this->run({"explain", run}).output << log_;
      }
    }
    const test::Finished verify = run({"verify"});
    EXPECT_EQ(verify.code, 0) << where << "\n" << verify.output << verify.errors << log_;
  }

 private:
  test::Command command(const std::vector<std::string>& arguments) const {
    test::Command made = sweep_.command(&faults_);
    made.arguments.resize(1);
    made.arguments.insert(made.arguments.end(), arguments.begin(), arguments.end());
    made.environment["XDG_RUNTIME_DIR"] = sweep_.folder().string();  // the socket's folder
    made.environment["TEARLESS_NODE_DIR"] = (sweep_.folder() / "node").string();
    if (arguments.front() != "worker") {
      made.environment["LD_PRELOAD"] = test::program("libfake-clock.so").string();
      made.environment["TEARLESS_FAKE_CLOCK"] = (sweep_.folder() / "clock").string();
    }
    return made;
  }

  fs::path shadow() const { return sweep_.folder() / "shadow"; }
  // When the power has failed.
  void lose_what_was_not_synced() {
    if (!cuts_power_ || faults_.hits() == 0) return;
    cuts_power_ = false;
    test::eventually([&] { return faults_.alive().empty(); });
    for (const fs::path& folder : {sweep_.workspace(), sweep_.cache()}) {
      if (!fs::exists(folder)) continue;
      const fs::path before = folder.string() + ".before";
      fs::rename(folder, before);
      fault::power_cut(shadow(), before, folder);
    }
  }

  test::Finished run(const std::vector<std::string>& arguments) {
    lose_what_was_not_synced();
    const test::Finished finished = test::run(command(arguments));
    log_ += fmt::format("{} → {}\n{}{}", arguments.front(), finished.code, finished.output, finished.errors);
    return finished;
  }
  void start_daemon() {
    for (int tries = 0; tries < kMaxRounds; ++tries) {
      if (run({"daemon", "--background"}).code == 0) return;
    }
    ADD_FAILURE() << "no daemon starts\n" << log_;
  }
  void pass_ten_minutes() { test::write_text(sweep_.folder() / "clock", std::to_string(clock_ += 700)); }

  bool is_done() {
    const test::Finished listed = run({"--json", "runs", "last", "--derived"});
    if (listed.code != 0) return false;
    const auto rows = nlohmann::json::parse(listed.output);
    return std::ranges::all_of(rows, [](const auto& row) { return row.at("state") == "done"; });
  }

  Sweep sweep_{Engine::kFake};
  test::Faults faults_;
  bool is_submitted_ = false, cuts_power_ = false;
  int64_t clock_ = 0;
  std::string log_;
};

// True where the point was reached: services and workers wait by the clock, so not every script passes as many.
bool try_one(int64_t point, const WorkerVictims& victims) {
  WorkerScript script;
  script.faults().kill_at(point, victims.mask);
  script.play();
  script.check(fmt::format("killed: {}, at point {}", victims.name, point));
  return script.faults().hits() > 0;
}

int64_t undisturbed_points_of_workers() {
  static const int64_t points = [] {
    WorkerScript script;
    script.play();
    const int64_t passed = script.faults().points();
    script.check("undisturbed");
    return passed;
  }();
  return points;
}

TEST(WorkerCrashMatrix, AKillBetweenAnyTwoCallsLeavesTheTableOfOneMachine) {
  const int64_t points = undisturbed_points_of_workers();
  std::vector<std::pair<int64_t, WorkerVictims>> trials;
  for (const WorkerVictims& victims : kWorkerVictims) {
    for (const int64_t point : chosen_points(points, 1, 700 + victims.mask)) trials.emplace_back(point, victims);
  }
  std::printf("crash matrix of workers: %ld points x %zu choices of victims, %zu tried (seed %u%s)\n",
              static_cast<long>(points), std::size(kWorkerVictims), trials.size(), seed(),
              asked_for_all() ? ", all" : "");
  std::atomic<size_t> happened = 0;
  in_parallel(trials.size(), [&](size_t i) { happened += try_one(trials[i].first, trials[i].second); });
  std::printf("killed at %zu of %zu\n", happened.load(), trials.size());
  EXPECT_GT(happened.load() * 10, trials.size() * 6);
}

TEST(WorkerPowerCut, LosesNothingThatWasReported) {
  const std::vector<int64_t> points = chosen_points(undisturbed_points_of_workers(), 6, 701);
  std::atomic<size_t> happened = 0;
  in_parallel(points.size(), [&](size_t i) {
    WorkerScript script;
    script.cut_power_at(points[i]);
    script.play();
    script.check(fmt::format("the power failed at point {}", points[i]));
    happened += script.faults().hits() > 0;
  });
  std::printf("power cuts of workers: at %zu of %zu points (seed %u%s)\n", happened.load(), points.size(), seed(),
              asked_for_all() ? ", all" : "");
  EXPECT_GT(happened.load() * 10, points.size() * 6);
}

}  // namespace
}  // namespace tearless::crash::worker_test
