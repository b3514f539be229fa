// The scheduler with a launcher that starts no process and a clock that the test sets: what follows each event.
#include "harness/schedule/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "harness/devices/declared_devices.h"
#include "harness/store/sweep_directory.h"
#include "tests/support/paths.h"

namespace tearless::harness::scheduler_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGiB = int64_t{1} << 30;

// Attempts exist as folders only; the test ends them.
class FakeLauncher : public Launcher {
 public:
  void start(const Launch& launch) override {
    EXPECT_FALSE(alive.contains(launch.id)) << "started twice at once";
    if (refuse) throw UserError("no process can be started");
    alive.insert(launch.id);
    starts.push_back(launch.id);
    devices[launch.id] = launch.cuda_device;
    cores[launch.id] = launch.cores;
    if (die_at_once) return;
    const RunDirectory run(launch.folder);
    write_start(run, run.make_attempt(), {{"device", "cpu"}, {"numerics", 1}});
  }
  bool adopt(const std::string& id, const fs::path&) override {
    if (!survivors.contains(id)) return false;
    alive.insert(id);
    return true;
  }
  void stop(const std::string& id, StopReason why) override {
    stopped.insert(id);
    reasons[id] = why;
  }
  void kill(const std::string& id) override { killed.push_back(id); }
  std::map<std::string, std::set<int64_t>> processes() const override { return pids; }

  void end(const std::string& id, LaunchEnd how = LaunchEnd::kUnknown) {
    ASSERT_EQ(alive.erase(id), 1u);
    on_end(id, how);
  }

  bool refuse = false;
  bool die_at_once = false;
  std::set<std::string> alive, stopped, survivors;
  std::map<std::string, StopReason> reasons;
  std::vector<std::string> killed;
  std::vector<std::string> starts;
  std::map<std::string, std::string> devices;
  std::map<std::string, std::vector<int>> cores;
  std::map<std::string, std::set<int64_t>> pids;
};

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() : workspace_(folder_.path()), store_(Store::open_writer(workspace_)) { restart(); }

  Resources resources() {
    if (declared_.empty()) return Resources(machine_);
    auto monitor = std::make_unique<DeclaredDevices>(declared_, "--devices");
    monitor_ = monitor.get();
    machine_.capacity.devices = monitor->devices();
    return Resources(machine_, std::move(monitor));
  }
  static std::vector<Device> gpus(const std::vector<std::string>& uuids) {
    std::vector<Device> devices;
    for (const std::string& uuid : uuids) {
      devices.push_back(
          {.uuid = uuid, .name = uuid, .memory_bytes = 24 * kGiB, .index = static_cast<int>(devices.size())});
    }
    return devices;
  }

  // As if the harness had been killed and started again.
  void restart(double stall_seconds = 1800) {
    stall_seconds_ = stall_seconds;
    scheduler_ = std::make_unique<Scheduler>(
        *store_, workspace_, launcher_, resources(), [this] { return now_; },
        [this](const SchedulerEvent& event) { events_.push_back(event); });
  }

  static std::string id_of(int number) { return run_id(text_of(number)); }
  static std::string text_of(int number) { return "n = " + std::to_string(number) + "\n"; }

  std::vector<harness::Run> jobs(int count, const std::string& device = "cpu") {
    std::vector<harness::Run> all;
    for (int i = 0; i < count; ++i) all.push_back(job(i, device));
    return all;
  }
  harness::Run job(int number, const std::string& device = "cpu") const {
    return {.id = id_of(number),
            .settings = text_of(number),
            .coordinates = {{"n", std::to_string(number)}},
            .seed = 1,
            .needs = {.device = device},
            .updates = 10};
  }

  // Submits a sweep to the store alone.
  void submit(const std::string& sweep, const std::vector<harness::Run>& runs, int64_t priority = 0) {
    store_->submit(
        {.id = sweep,
         .title = "",
         .grid_file = "/" + sweep + ".toml",
         .submitted_at = "",
         .runs = runs,
         .program = "/bin/false",
         .policy = {.stall_seconds = stall_seconds_, .grace_seconds = 30, .memory_bytes = memory_, .tries = tries_},
         .reason = "",
         .priority = priority});
  }

  // As `tearless run` does.
  void begin(const std::vector<harness::Run>& runs, Scheduler::Add how = Scheduler::Add::kSubmit) {
    submit("s", runs);
    scheduler_->begin();
    scheduler_->add("s", how);
  }
  int64_t ended(const std::string& sweep) const {
    const SweepCounts counts = scheduler_->counts(sweep);
    return counts.total - counts.waiting - counts.running;
  }
  bool finished() const { return scheduler_->idle("s"); }
  std::string paused() const { return scheduler_->paused("s"); }
  void interrupt() { scheduler_->pause("s", "interrupted", OnPause::kStop); }

  void finish(const std::string& id) {
    const RunDirectory run = workspace_.run(id);
    test::write_text(run.scores(), R"({"test.bleu": 20})");
    write_done(run, "done", 10, "max_updates", {"scores.json"});
    end(id, 0);
  }

  struct Exit {
    int code = 0;
    int signal = 0;
    std::string asked = "";
    int memory_kills = 0;
    int disk_full = 0;
    std::string log = "";
  };
  void end(const std::string& id, const Exit& exit) {
    const RunDirectory run = workspace_.run(id);
    const fs::path attempt = run.attempt(run.newest_attempt());
    test::write_text(attempt / "log.txt", exit.log);
    test::write_text(attempt / "exit.json", sealed({{"code", exit.code},
                                                    {"signal", exit.signal},
                                                    {"asked", exit.asked},
                                                    {"memory_kills", exit.memory_kills},
                                                    {"disk_full", exit.disk_full}}));
    launcher_.end(id);
  }
  void end(const std::string& id, int code, const std::string& log = "") { end(id, Exit{.code = code, .log = log}); }
  void end_killed(const std::string& id) { end(id, Exit{.code = 137, .signal = SIGKILL}); }

  // As the training program does.
  void write_checkpoint(const std::string& id, int64_t step) {
    make_folders(workspace_.run(id).checkpoints() / ("step-" + std::to_string(step)));
  }

  RunState state(int number) const { return store_->run(id_of(number))->state; }
  int starts(int number) const {
    return static_cast<int>(std::count(launcher_.starts.begin(), launcher_.starts.end(), id_of(number)));
  }
  bool has_event(const std::string& what) const {
    return std::any_of(events_.begin(), events_.end(), [&](const SchedulerEvent& event) { return event.what == what; });
  }

  test::TempFolder folder_;
  Workspace workspace_;
  std::unique_ptr<Store> store_;
  FakeLauncher launcher_;
  Resources::Options machine_{.capacity = {.cores = {0, 1}}};
  DeclaredDevices* monitor_ = nullptr;  // of the scheduler, if declare() was called
  std::string declared_;
  double now_ = 1000;
  double stall_seconds_ = 1800;
  int64_t memory_ = 0;                // SweepPolicy::memory_bytes
  std::map<std::string, int> tries_;  // SweepPolicy::tries
  std::vector<SchedulerEvent> events_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, FillsItsSlotsInOrderAndRecordsResults) {
  begin(jobs(3));
  EXPECT_EQ(launcher_.starts, (std::vector<std::string>{id_of(0), id_of(1)}));
  EXPECT_EQ(state(2), RunState::kQueued);
  finish(id_of(0));
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_EQ(store_->result_of(id_of(0)).scores.at("test.bleu"), 20);
  EXPECT_EQ(launcher_.starts.back(), id_of(2));
  finish(id_of(1));
  EXPECT_FALSE(finished());
  finish(id_of(2));
  EXPECT_TRUE(finished());
  EXPECT_EQ(ended("s"), 3);
}

TEST_F(SchedulerTest, NeverTrainsADoneRunAgain) {
  begin(jobs(1));
  finish(id_of(0));
  restart();
  begin(jobs(1));
  EXPECT_TRUE(finished());
  EXPECT_EQ(starts(0), 1);
}

TEST_F(SchedulerTest, RecordsAResultThatIsNotInTheStore) {
  const std::vector<harness::Run> wanted = jobs(1);
  fs::create_directories(workspace_.run(id_of(0)).root());
  test::write_text(workspace_.run(id_of(0)).settings(), text_of(0));
  test::write_text(workspace_.run(id_of(0)).scores(), R"({"test.bleu": 7})");
  write_done(workspace_.run(id_of(0)), "done", 10, "max_updates", {"scores.json"});
  begin(wanted);
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_EQ(store_->result_of(id_of(0)).scores.at("test.bleu"), 7);
  EXPECT_TRUE(launcher_.starts.empty());
}

TEST_F(SchedulerTest, TrainsADeletedRunAgain) {
  begin(jobs(1));
  finish(id_of(0));
  fs::remove_all(workspace_.run(id_of(0)).root());
  restart();
  begin(jobs(1));
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, ACrashIsTriedThreeTimesAndThenFails) {
  begin(jobs(1));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(starts(0), attempt);
    end(id_of(0), 1, "index out of range");
    now_ += 100;
    scheduler_->tick();
  }
  EXPECT_EQ(starts(0), 3);
  EXPECT_EQ(state(0), RunState::kFailed);
  EXPECT_EQ(store_->run(id_of(0))->failure, FailureClass::kCrashed);
  EXPECT_TRUE(finished());
}

TEST_F(SchedulerTest, CrashesCountedBeforeARestartStillCount) {
  begin(jobs(1));
  end(id_of(0), 1);
  now_ += 100;
  scheduler_->tick();
  end(id_of(0), 1);
  restart();
  begin(jobs(1));
  end(id_of(0), 1);
  EXPECT_EQ(state(0), RunState::kFailed);
}

TEST_F(SchedulerTest, AFailedRunIsTriedAgainOnlyOnRequest) {
  const std::vector<harness::Run> wanted = jobs(1);
  submit("s", wanted);
  store_->move(id_of(0), RunState::kQueued, RunState::kFailed, FailureClass::kCrashed, "x");
  begin(wanted);
  EXPECT_EQ(starts(0), 0);
  restart();
  begin(jobs(1), Scheduler::Add::kRetry);
  EXPECT_EQ(starts(0), 1);
}

TEST_F(SchedulerTest, UnrequestedStopsCountAsNoTryAndAreDelayed) {
  begin(jobs(1));
  for (int attempt = 1; attempt <= 10; ++attempt) {
    EXPECT_EQ(starts(0), attempt);
    end(id_of(0), kExitStopped);
    EXPECT_EQ(starts(0), attempt);  // it ended at once: not again at once
    now_ += 61;
    scheduler_->tick();
  }
  EXPECT_EQ(starts(0), 11);
  EXPECT_EQ(state(0), RunState::kRunning);
}

TEST_F(SchedulerTest, RunsOfFilesThatAreNotAsPlannedWaitUntilTheseChange) {
  const std::string file = folder_ / "train.en", other = folder_ / "dev.en";
  test::write_text(file, "wrong");
  test::write_text(other, "right");
  std::vector<harness::Run> runs = jobs(5);
  for (harness::Run& run : runs) run.data = std::make_shared<const InputFiles>(InputFiles{{file, sha256("right")}});
  runs[4].data = std::make_shared<const InputFiles>(InputFiles{{other, sha256("right")}});
  begin(runs);
  EXPECT_EQ(launcher_.starts, (std::vector<std::string>{id_of(0), id_of(1)}));
  end(id_of(0), kExitData, "the file is not the one");
  const std::string reason = file + " has the SHA-256 " + sha256("wrong") + ", but the run was planned with " +
                             sha256("right") + "; the run continues when that file is back";
  for (const int waiting : {0, 2, 3}) {
    EXPECT_EQ(state(waiting), RunState::kWaitingData);
    EXPECT_EQ(store_->run(id_of(waiting))->reason, reason);
  }
  EXPECT_EQ(launcher_.starts.back(), id_of(4)) << "of another file";
  end(id_of(1), kExitData);
  EXPECT_EQ(state(1), RunState::kWaitingData);
  finish(id_of(4));
  EXPECT_TRUE(finished()) << "nothing is left that would be started";
  EXPECT_EQ(scheduler_->counts("s").total, 1);

  for (int look = 0; look < 100; ++look) {
    now_ += 10;
    scheduler_->tick();
  }
  EXPECT_EQ(launcher_.starts.size(), 3u) << "nothing has changed";

  test::write_text(file, "right");
  now_ += 10;
  scheduler_->tick();
  EXPECT_EQ(launcher_.starts.size(), 3u) << "somebody may still write to it";
  now_ += 10;
  scheduler_->tick();
  EXPECT_EQ(launcher_.starts.size(), 5u);
  EXPECT_EQ(scheduler_->counts("s").total, 5);
  for (const int run : {0, 1, 2, 3}) finish(id_of(run));
  EXPECT_TRUE(finished());
  EXPECT_EQ(ended("s"), 5);
}

TEST_F(SchedulerTest, RefusedDataCountAsNoTryHoweverOftenTheyChange) {
  const std::string file = folder_ / "train.en";
  std::vector<harness::Run> runs = jobs(1);
  runs[0].data = std::make_shared<const InputFiles>(InputFiles{{file, sha256("right")}});
  begin(runs);
  end(id_of(0), 1);  // one of three tries
  for (int time = 0; time < 10; ++time) {
    now_ += 100;
    scheduler_->tick();
    scheduler_->tick();
    now_ += 100;
    scheduler_->tick();
    ASSERT_EQ(state(0), RunState::kRunning) << time;
    end(id_of(0), kExitData);
    ASSERT_EQ(state(0), RunState::kWaitingData) << time;
    test::write_text(file, "wrong " + std::to_string(time));
  }
  now_ += 100;
  scheduler_->tick();
  now_ += 100;
  scheduler_->tick();
  end(id_of(0), 1);
  EXPECT_EQ(state(0), RunState::kQueued);
  now_ += 100;
  scheduler_->tick();
  end(id_of(0), 1);
  EXPECT_EQ(state(0), RunState::kFailed) << "crashes count as before";
}

TEST_F(SchedulerTest, WhereTheProgramNamesNoFilesOnlyARequestOrARestartTriesAgain) {
  begin(jobs(2));
  end(id_of(0), kExitData, "my data are gone");
  EXPECT_EQ(state(0), RunState::kWaitingData);
  EXPECT_THAT(store_->run(id_of(0))->reason, testing::HasSubstr("my data are gone"));
  EXPECT_EQ(state(1), RunState::kRunning) << "it may have other data";
  finish(id_of(1));
  for (int look = 0; look < 10; ++look) {
    now_ += 10;
    scheduler_->tick();
  }
  EXPECT_EQ(starts(0), 1);
  scheduler_->add("s", Scheduler::Add::kSubmit);
  EXPECT_EQ(starts(0), 2);
  end(id_of(0), kExitData);
  restart();
  scheduler_->begin();
  scheduler_->add_active();
  EXPECT_EQ(starts(0), 3);
}

TEST_F(SchedulerTest, AServiceThatStartsNothingLeavesRunsThatWaitForDataAlone) {
  begin(jobs(1));
  end(id_of(0), kExitData, "gone");
  restart();
  scheduler_->start_no_more();
  scheduler_->begin();
  scheduler_->add("s", Scheduler::Add::kRestart);
  EXPECT_EQ(state(0), RunState::kWaitingData);
  scheduler_->cancel("s");
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(SchedulerTest, ARequestToHoldOutweighsThatTheDataAreGone) {
  begin(jobs(1));
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  end(id_of(0), kExitData);
  EXPECT_EQ(state(0), RunState::kHeld);
}

TEST_F(SchedulerTest, ALostAttemptIsQueuedAgain) {
  begin(jobs(1));
  launcher_.end(id_of(0));  // no exit.json
  EXPECT_EQ(store_->run(id_of(0))->failure, FailureClass::kLost);
  now_ += 100;
  scheduler_->tick();
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, OutOfMemoryIsTriedOnceMoreAloneAndThenFails) {
  begin(jobs(2));
  end(id_of(0), kExitOutOfMemory);
  now_ += 100;
  scheduler_->tick();
  EXPECT_EQ(starts(0), 1);  // its neighbour still runs
  finish(id_of(1));
  EXPECT_EQ(starts(0), 2);
  end(id_of(0), kExitOutOfMemory);
  EXPECT_EQ(state(0), RunState::kFailed);
  EXPECT_EQ(store_->run(id_of(0))->failure, FailureClass::kOutOfMemory);
}

TEST_F(SchedulerTest, NothingStartsBesideARunThatMustRunAlone) {
  begin(jobs(3));
  end(id_of(0), kExitOutOfMemory);  // room for the third
  finish(id_of(1));
  now_ += 100;
  finish(id_of(2));
  EXPECT_EQ(launcher_.alive, (std::set<std::string>{id_of(0)}));
}

TEST_F(SchedulerTest, RefusedSettingsAndDivergenceAreNeverRetried) {
  begin(jobs(2));
  end(id_of(0), kExitSettingsRefused, "unknown setting");
  write_done(workspace_.run(id_of(1)), "diverged", 4, "loss is not finite", {});
  end(id_of(1), kExitDiverged);
  EXPECT_EQ(state(0), RunState::kFailed);
  EXPECT_EQ(state(1), RunState::kDiverged);
  EXPECT_EQ(store_->result_of(id_of(1)).diverged_step, 4);
  EXPECT_EQ(launcher_.starts.size(), 2u);
}

TEST_F(SchedulerTest, TheSameCrashOfThreeRunsPausesTheSweep) {
  begin(jobs(5));
  // What a real program says of one defect: paths, updates, times and addresses differ.
  end(id_of(0), 1, "[10:31:02] /data/runs/0123456789abcdef: no such file (update 1200, 0x7ffc12)");
  end(id_of(1), 1, "[10:44:59] /data/runs/fedcba9876543210: no such file (update 7, 0x7ffe98)");
  EXPECT_TRUE(paused().empty());
  end(id_of(2), 1, "[11:00:00] /data/runs/00112233aabbccdd: no such file (update 31, 0x7ff001)");
  EXPECT_NE(paused().find("no such file"), std::string::npos);
  const size_t started = launcher_.starts.size();
  end(id_of(3), 1, "another reason");
  EXPECT_EQ(launcher_.starts.size(), started);
  EXPECT_TRUE(finished());
  EXPECT_EQ(state(4), RunState::kQueued);
}

TEST_F(SchedulerTest, DifferentCrashesDoNotPause) {
  begin(jobs(3));
  const char* reasons[] = {"out of beans", "out of rice", "out of tea"};
  for (int i = 0; i < 3; ++i) end(id_of(i), 1, reasons[i]);
  EXPECT_TRUE(paused().empty());
}

TEST_F(SchedulerTest, TheTimeLeftCountsWhatRunsAndWhatWaits) {
  begin(jobs(3));  // 10 updates each; two of them run
  std::string metrics;
  const auto at_update = [&](int step) {
    metrics += "{\"step\": " + std::to_string(step) + ", \"name\": \"train.loss\", \"value\": 1}\n";
    for (int i = 0; i < 2; ++i) test::write_text(workspace_.run(id_of(i)).metrics(), metrics);
    scheduler_->tick();
  };
  at_update(1);
  EXPECT_EQ(scheduler_->seconds_left("s"), std::nullopt);  // no speed yet
  now_ += 2;
  at_update(5);
  EXPECT_EQ(scheduler_->seconds_left("s"), (5 + 5 + 10) / (2.0 + 2.0));
}

TEST_F(SchedulerTest, ARunWithoutNewOutputIsStoppedAsStalled) {
  restart(60);
  begin(jobs(1));
  scheduler_->tick();
  now_ += 50;
  test::write_text(workspace_.run(id_of(0)).metrics(), "{\"step\": 1, \"name\": \"train.loss\", \"value\": 1}\n");
  scheduler_->tick();  // a sign
  now_ += 50;
  scheduler_->tick();
  EXPECT_TRUE(launcher_.stopped.empty());
  now_ += 20;
  scheduler_->tick();
  EXPECT_EQ(launcher_.stopped.count(id_of(0)), 1u);
  EXPECT_EQ(launcher_.reasons.at(id_of(0)), StopReason::kStall);
  end(id_of(0), {.code = 137, .signal = 9, .asked = "stall"});
  EXPECT_EQ(store_->attempts_of(id_of(0)).at(0).outcome, "stalled");
  EXPECT_EQ(starts(0), 2);  // tried again
}

TEST_F(SchedulerTest, AStopEndsAllRunsStartsNoneAndQueuesThem) {
  begin(jobs(3));
  interrupt();
  EXPECT_EQ(launcher_.stopped.size(), 2u);
  end(id_of(0), kExitStopped);
  EXPECT_FALSE(finished());
  end(id_of(1), kExitStopped);
  EXPECT_TRUE(finished());
  EXPECT_EQ(launcher_.starts.size(), 2u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(state(i), RunState::kQueued);
}

TEST_F(SchedulerTest, ARestartAdoptsLiveAttemptsAndRecordsEndedOnes) {
  begin(jobs(3));
  const RunDirectory first = workspace_.run(id_of(0)), second = workspace_.run(id_of(1));
  test::write_text(second.scores(), "{}");  // ended without a harness
  write_done(second, "done", 10, "max_updates", {"scores.json"});
  launcher_.alive.clear();
  launcher_.survivors = {id_of(0)};
  restart();
  begin(jobs(3));
  EXPECT_TRUE(has_event("adopted"));
  EXPECT_EQ(state(0), RunState::kRunning);
  EXPECT_EQ(state(1), RunState::kDone);
  EXPECT_EQ(starts(0), 1);
  EXPECT_EQ(starts(2), 1);  // one slot is the adopted one's
  finish(id_of(0));
  EXPECT_EQ(state(0), RunState::kDone);
}

TEST_F(SchedulerTest, AnAttemptWithoutARecordedEndIsLostAfterARestart) {
  begin(jobs(1));
  launcher_.alive.clear();
  restart();
  begin(jobs(1));
  EXPECT_EQ(store_->attempts_of(id_of(0)).at(0).outcome, "lost");
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, AChangedRunTomlIsRefusedAndTheOthersContinue) {
  const std::vector<harness::Run> wanted = jobs(3);
  fs::create_directories(workspace_.run(id_of(0)).root());
  test::write_text(workspace_.run(id_of(0)).settings(), "n = 0 # mine\n");
  begin(wanted);
  EXPECT_EQ(state(0), RunState::kFailed);
  EXPECT_NE(store_->run(id_of(0))->reason.find("run.toml was changed by hand"), std::string::npos);
  EXPECT_EQ(test::read_text(workspace_.run(id_of(0)).settings()), "n = 0 # mine\n");
  EXPECT_EQ(state(1), RunState::kRunning);
  EXPECT_EQ(state(2), RunState::kRunning) << "in the slot that the first one was to have";
}

TEST_F(SchedulerTest, WhatCannotBeStartedPausesAndLosesNothing) {
  launcher_.refuse = true;
  begin(jobs(2));
  EXPECT_EQ(paused(), "no process can be started");
  EXPECT_TRUE(finished());
  EXPECT_EQ(state(0), RunState::kQueued);
  EXPECT_EQ(scheduler_->counts("s").waiting, 2);
}

TEST_F(SchedulerTest, ASupervisorThatNeverBeganAnAttemptPausesTheSweep) {
  for (const auto& [how, sentence] : {std::pair{LaunchEnd::kMachine, "is the disk full"},
                                      std::pair{LaunchEnd::kRefused, "another program is using"}}) {
    restart();
    launcher_.die_at_once = true;
    begin(jobs(1));
    launcher_.end(id_of(0), how);
    EXPECT_NE(paused().find(sentence), std::string::npos) << paused();
    EXPECT_EQ(state(0), RunState::kQueued);
  }
}

TEST_F(SchedulerTest, ASupervisorKilledBeforeItsAttemptBeganIsNoAttempt) {
  launcher_.die_at_once = true;
  begin(jobs(1));
  workspace_.run(id_of(0)).make_attempt();  // made, and killed before start.json
  launcher_.end(id_of(0));
  EXPECT_TRUE(paused().empty());
  EXPECT_TRUE(store_->attempts_of(id_of(0)).empty());
  launcher_.die_at_once = false;
  now_ += 100;
  scheduler_->tick();
  finish(id_of(0));
  EXPECT_EQ(state(0), RunState::kDone);
  const RunResult result = store_->result_of(id_of(0), 1);
  EXPECT_FALSE(result.stale);
  EXPECT_EQ(result.trained_on.size(), 1u);
}

TEST_F(SchedulerTest, ProgressResetsTheCountOfTries) {
  begin(jobs(1));
  for (int64_t step = 1; step <= 6; ++step) {  // more crashes than are tried, a checkpoint between any two
    write_checkpoint(id_of(0), step);
    end(id_of(0), 1, "flaky");
    now_ += 100;
    scheduler_->tick();
  }
  EXPECT_EQ(starts(0), 7);
  for (int i = 0; i < 2; ++i) {
    end(id_of(0), 1, "flaky");
    now_ += 100;
    scheduler_->tick();
  }
  EXPECT_EQ(state(0), RunState::kFailed);  // the third in a row that got nowhere
}

TEST_F(SchedulerTest, KillsFromOutsideCountAsNoTryButThreeWithoutProgressPauseTheSweep) {
  begin(jobs(1));
  for (int64_t step = 1; step <= 5; ++step) {
    write_checkpoint(id_of(0), step);
    end_killed(id_of(0));
    EXPECT_TRUE(paused().empty()) << step;
    EXPECT_EQ(starts(0), step + 1);  // at once: it got somewhere
    now_ += 100;
    scheduler_->tick();
  }
  EXPECT_EQ(store_->attempts_of(id_of(0)).at(4).outcome, "killed");
  end_killed(id_of(0));  // the second since the last checkpoint
  EXPECT_TRUE(paused().empty());
  now_ += 100;
  scheduler_->tick();
  end_killed(id_of(0));
  EXPECT_NE(paused().find("killed from outside 3 times"), std::string::npos);
  EXPECT_EQ(state(0), RunState::kQueued);
}

TEST_F(SchedulerTest, AKillByTheKernelForMemoryIsTriedOnceMoreAlone) {
  begin(jobs(2));
  end(id_of(0), Exit{.code = 137, .signal = SIGKILL, .memory_kills = 1});
  EXPECT_EQ(starts(0), 1);  // not while another one runs
  now_ += 100;
  finish(id_of(1));
  EXPECT_EQ(starts(0), 2);
  end(id_of(0), Exit{.code = 137, .signal = SIGKILL, .memory_kills = 1});
  EXPECT_EQ(state(0), RunState::kFailed);
  EXPECT_EQ(store_->run(id_of(0))->failure, FailureClass::kOutOfMemory);
}

TEST_F(SchedulerTest, AFailingMachinePausesTheSweepAndCountsNoTry) {
  for (const Exit& exit : {Exit{.code = kExitMachine}, Exit{.code = 1, .disk_full = 1}}) {
    restart();
    begin(jobs(3));
    end(id_of(0), exit);
    EXPECT_FALSE(paused().empty());
    EXPECT_EQ(state(0), RunState::kQueued);
    EXPECT_EQ(store_->attempts_of(id_of(0)).back().outcome, "machine");
    end(id_of(1), kExitStopped);
    EXPECT_TRUE(finished());
  }
}

TEST_F(SchedulerTest, AnEndThatCouldNotBeRecordedIsAMachineFailure) {
  begin(jobs(1));
  launcher_.end(id_of(0), LaunchEnd::kMachine);
  EXPECT_EQ(store_->attempts_of(id_of(0)).back().outcome, "machine");
  const std::string folder = workspace_.run(id_of(0)).root().string();
  EXPECT_EQ(store_->run(id_of(0))->reason, "the end of its attempt could not be written into " + folder);
  EXPECT_NE(paused().find("could not be written into " + folder), std::string::npos);
}

TEST_F(SchedulerTest, ARequestedStopNeverCountsAsATry) {
  for (const Exit& exit :
       {Exit{.code = 143, .signal = SIGTERM, .asked = "stop"}, Exit{.code = 137, .signal = 9, .asked = "stop"},
        Exit{.code = 1, .asked = "stop"}, Exit{.code = 139, .signal = SIGSEGV, .asked = "stop"}}) {
    for (int i = 0; i < 4; ++i) {
      restart();
      begin(jobs(1));
      interrupt();
      EXPECT_EQ(launcher_.reasons.at(id_of(0)), StopReason::kRequest);
      end(id_of(0), exit);
      EXPECT_EQ(state(0), RunState::kQueued);
      EXPECT_EQ(store_->attempts_of(id_of(0)).back().outcome, "stopped");
    }
  }
}

TEST_F(SchedulerTest, ASupervisorThatDoesNotReactIsKilledAndTheRunIsStopped) {
  begin(jobs(1));
  interrupt();
  now_ += 44;
  scheduler_->tick();
  EXPECT_TRUE(launcher_.killed.empty());  // its grace time is not over
  now_ += 2;
  scheduler_->tick();
  EXPECT_EQ(launcher_.killed, std::vector<std::string>{id_of(0)});
  launcher_.end(id_of(0));  // without exit.json
  EXPECT_EQ(store_->attempts_of(id_of(0)).back().outcome, "stopped");
  EXPECT_EQ(store_->run(id_of(0))->reason, "its supervisor did not react and was killed");
  EXPECT_EQ(state(0), RunState::kQueued);
}

TEST_F(SchedulerTest, OutputPreventsAStallUntilTheLogIsFull) {
  restart(60);
  begin(jobs(1));
  const fs::path log = workspace_.run(id_of(0)).attempt(1) / "log.txt";
  std::string text;
  for (int i = 0; i < 5; ++i) {  // a slow preparation that says how far it is
    test::write_text(log, text += "still learning subwords\n");
    now_ += 50;
    scheduler_->tick();
  }
  EXPECT_TRUE(launcher_.stopped.empty());
  for (int i = 0; i < 4; ++i) {
    text.resize(text.size() + (3 << 20), 'x');
    test::write_text(log, text);
    now_ += 50;
    scheduler_->tick();
  }
  EXPECT_EQ(launcher_.reasons[id_of(0)], StopReason::kStall);
}

TEST_F(SchedulerTest, AZeroStallTimeoutMeansNever) {
  restart(0);
  begin(jobs(1));
  now_ += 1e9;
  scheduler_->tick();
  EXPECT_TRUE(launcher_.stopped.empty());
}

TEST_F(SchedulerTest, ALiveAttemptThatIsNotInTheStoreIsAdopted) {
  const std::vector<harness::Run> wanted = jobs(1);
  make_folders(workspace_.run(id_of(0)).root());
  launcher_.survivors.insert(id_of(0));
  begin(wanted);
  EXPECT_TRUE(launcher_.starts.empty());
  EXPECT_EQ(state(0), RunState::kRunning);
  EXPECT_TRUE(has_event("adopted"));
}

TEST_F(SchedulerTest, AnAdoptedRunTakesItsSlot) {
  machine_.capacity.devices = gpus({"GPU-a"});
  restart();
  const std::vector<harness::Run> wanted = jobs(3);
  begin(wanted);
  ASSERT_EQ(launcher_.starts.size(), 2u);
  launcher_.survivors = launcher_.alive;
  launcher_.alive.clear();
  restart();
  begin(wanted);
  EXPECT_EQ(launcher_.starts.size(), 2u);  // both cores are taken by those that live on
  finish(id_of(0));
  EXPECT_EQ(launcher_.starts.size(), 3u);
}

TEST_F(SchedulerTest, AnAdoptedRunTakesItsDevice) {
  machine_.capacity.devices = gpus({"GPU-a"});
  restart();
  std::vector<harness::Run> wanted = jobs(2, "cuda");
  begin(wanted);
  ASSERT_EQ(launcher_.starts.size(), 1u);
  const RunDirectory run = workspace_.run(id_of(0));
  write_start(run, 1, {{"cuda_device", "GPU-a"}, {"device", "GPU"}, {"numerics", 1}});
  launcher_.survivors = launcher_.alive;
  launcher_.alive.clear();
  restart();
  begin(wanted);
  EXPECT_EQ(launcher_.starts.size(), 1u);
  finish(id_of(0));
  EXPECT_EQ(launcher_.devices.at(id_of(1)), "GPU-a");
}

TEST_F(SchedulerTest, ADeviceIsAssignedOnce) {
  machine_.capacity.devices = gpus({"GPU-a", "GPU-b"});
  restart();
  begin(jobs(3, "cuda"));
  EXPECT_EQ(launcher_.starts.size(), 2u);
  EXPECT_NE(launcher_.devices[id_of(0)], launcher_.devices[id_of(1)]);
  finish(id_of(0));
  EXPECT_EQ(launcher_.devices[id_of(2)], launcher_.devices[id_of(0)]);
}

TEST_F(SchedulerTest, RunsShareADeviceOnlyWhenAllAreTaken) {
  machine_.capacity.devices = gpus({"GPU-a", "GPU-b"});
  machine_.runs_per_gpu = 2;
  restart();
  begin(jobs(5, "cuda"));
  ASSERT_EQ(launcher_.starts.size(), 4u);
  EXPECT_NE(launcher_.devices[id_of(0)], launcher_.devices[id_of(1)]);
  std::map<std::string, int> runs;
  for (int i = 0; i < 4; ++i) ++runs[launcher_.devices[id_of(i)]];
  EXPECT_EQ(runs["GPU-a"], 2);
  EXPECT_EQ(runs["GPU-b"], 2);
  finish(id_of(2));
  EXPECT_EQ(launcher_.devices[id_of(4)], launcher_.devices[id_of(2)]);
}

TEST_F(SchedulerTest, ARunForAMissingDeviceIsHeld) {
  begin(jobs(1, "cuda"));
  EXPECT_EQ(state(0), RunState::kHeld);
  EXPECT_TRUE(finished());
}

TEST_F(SchedulerTest, ThreadsCountAsCores) {
  std::vector<harness::Run> wanted = jobs(3);
  wanted[1].needs.threads = 8;  // more than there are: it gets all, once they are free
  begin(wanted);
  EXPECT_EQ(launcher_.starts, (std::vector<std::string>{id_of(0), id_of(2)}));
  finish(id_of(0));
  EXPECT_EQ(starts(1), 0);
  finish(id_of(2));
  EXPECT_EQ(starts(1), 1);
}

// --- several sweeps --------------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, ASweepOfHigherPriorityGoesFirstAndRunningAttemptsGoOn) {
  begin(jobs(4));
  submit("urgent", {job(10), job(11)});
  store_->set_priority("urgent", 5);
  scheduler_->add("urgent", Scheduler::Add::kSubmit);
  EXPECT_EQ(launcher_.alive, (std::set<std::string>{id_of(0), id_of(1)}));
  finish(id_of(0));
  finish(id_of(1));
  EXPECT_EQ(launcher_.alive, (std::set<std::string>{id_of(10), id_of(11)}));
  EXPECT_EQ(scheduler_->counts("s").waiting, 2);
}

TEST_F(SchedulerTest, APriorityThatIsSetLaterReordersWhatWaits) {
  begin(jobs(3));
  submit("later", {job(10)});
  scheduler_->add("later", Scheduler::Add::kSubmit);
  scheduler_->set_priority("later", 1);
  finish(id_of(0));
  EXPECT_EQ(starts(10), 1);
  EXPECT_EQ(starts(2), 0);
  EXPECT_EQ(store_->sweep("later")->priority, 1);
}

TEST_F(SchedulerTest, RowsOfTheTableBecomeCompleteOneAfterAnother) {
  std::vector<harness::Run> wanted = jobs(4);
  for (int i = 0; i < 4; ++i) wanted[static_cast<size_t>(i)].rank = i % 2;
  begin(wanted);
  EXPECT_EQ(launcher_.starts, (std::vector<std::string>{id_of(0), id_of(2)}));
}

TEST_F(SchedulerTest, TheLongestRunOfARankGoesFirst) {
  std::vector<harness::Run> wanted = jobs(3);
  wanted[2].updates = 99;
  begin(wanted);
  EXPECT_EQ(launcher_.starts, (std::vector<std::string>{id_of(2), id_of(0)}));
}

TEST_F(SchedulerTest, ARunThatTwoSweepsWantIsTrainedOnce) {
  begin(jobs(1));
  submit("t", {job(0), job(1)});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  finish(id_of(0));
  finish(id_of(1));
  EXPECT_EQ(launcher_.starts.size(), 2u);
  EXPECT_TRUE(scheduler_->idle("s"));
  EXPECT_TRUE(scheduler_->idle("t"));
  EXPECT_EQ(ended("t"), 2);
  for (const SchedulerEvent& event : events_) {
    if (event.what != "done" || event.id != id_of(0)) continue;
    EXPECT_EQ(event.sweeps, (std::vector<std::string>{"s", "t"}));
  }
}

TEST_F(SchedulerTest, APausedSweepStopsItsAttemptsUnlessAnotherSweepWantsThem) {
  begin(jobs(2));
  submit("t", {job(1)});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  scheduler_->pause("s", "paused on request", OnPause::kStop);
  EXPECT_EQ(launcher_.stopped, (std::set<std::string>{id_of(0)}));
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  now_ += 100;
  scheduler_->tick();
  EXPECT_EQ(starts(0), 1);
  EXPECT_EQ(store_->sweep("s")->state, SweepState::kPaused);
  EXPECT_EQ(scheduler_->why(id_of(0)), "its sweep is paused: paused on request");
  scheduler_->resume("s");
  EXPECT_EQ(starts(0), 2);
  EXPECT_EQ(store_->sweep("s")->state, SweepState::kActive);
  EXPECT_EQ(store_->attempts_of(id_of(0)).at(0).outcome, "stopped");
}

TEST_F(SchedulerTest, APausedSweepStaysPausedInTheNextProcess) {
  begin(jobs(1));
  scheduler_->pause("s", "paused on request", OnPause::kStop);
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  restart();
  scheduler_->begin();
  EXPECT_TRUE(store_->active_sweeps().empty());
  scheduler_->add("s", Scheduler::Add::kRestart);
  EXPECT_EQ(starts(0), 1);
  scheduler_->resume("s");
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, ACancelledSweepKeepsItsResultsAndTheRunsOfOthers) {
  begin(jobs(4));
  submit("t", {job(2)});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  finish(id_of(0));  // run 2, which both want, takes its slot
  scheduler_->cancel("s");
  EXPECT_EQ(launcher_.stopped, (std::set<std::string>{id_of(1)}));
  end(id_of(1), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_EQ(state(1), RunState::kCancelled);
  EXPECT_EQ(state(2), RunState::kRunning);
  EXPECT_EQ(state(3), RunState::kCancelled);
  EXPECT_TRUE(scheduler_->idle("s"));
  scheduler_->resume("s");  // it is over; only a new submission makes it active
  EXPECT_EQ(store_->sweep("s")->state, SweepState::kCancelled);
  submit("s", jobs(4));
  scheduler_->add("s", Scheduler::Add::kSubmit);
  EXPECT_EQ(state(1), RunState::kRunning);
}

TEST_F(SchedulerTest, ASweepThatIsSubmittedAgainBeforeItsCancelledRunHasStoppedTrainsIt) {
  begin(jobs(1));
  scheduler_->cancel("s");
  submit("s", jobs(1));
  scheduler_->add("s", Scheduler::Add::kSubmit);
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, ANewSubmissionReleasesNoRunThatIsBeingHeld) {
  begin(jobs(1));
  scheduler_->hold(id_of(0));
  scheduler_->add("s", Scheduler::Add::kSubmit);
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kHeld);
}

TEST_F(SchedulerTest, ARunningRunOfASweepThatWasNotAddedCanBeCancelled) {
  begin(jobs(1));
  launcher_.survivors = launcher_.alive;
  launcher_.alive.clear();
  restart();
  scheduler_->begin();
  EXPECT_TRUE(scheduler_->cancel_run(id_of(0)));
  EXPECT_TRUE(scheduler_->is_stopping_any());
  EXPECT_EQ(state(0), RunState::kRunning) << "until its attempt has ended";
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(SchedulerTest, ARequestedStopDelaysNothing) {
  begin(jobs(1));
  scheduler_->pause("s", "paused on request", OnPause::kStop);
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  scheduler_->resume("s");
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, ACancelledRunWhoseLastUpdateWasMadeKeepsItsResult) {
  begin(jobs(1));
  EXPECT_TRUE(scheduler_->cancel_run(id_of(0)));
  finish(id_of(0));
  EXPECT_EQ(state(0), RunState::kDone);
}

TEST_F(SchedulerTest, AHeldRunWaitsForItsReleaseWhateverElseIsAsked) {
  begin(jobs(3));
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  EXPECT_TRUE(scheduler_->hold(id_of(2)));
  EXPECT_EQ(state(2), RunState::kHeld);
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kHeld);
  finish(id_of(1));
  EXPECT_TRUE(finished());
  scheduler_->add("s", Scheduler::Add::kSubmit);
  EXPECT_TRUE(finished());
  EXPECT_TRUE(scheduler_->hold(id_of(0))) << "again";
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  EXPECT_TRUE(scheduler_->release(id_of(2)));
  EXPECT_EQ(launcher_.alive, (std::set<std::string>{id_of(0), id_of(2)}));
  EXPECT_FALSE(scheduler_->hold(id_of(1))) << "it is done";
  EXPECT_FALSE(scheduler_->release("0000000000000000"));
}

TEST_F(SchedulerTest, ARunThatIsReleasedBeforeItHasStoppedIsQueuedAgain) {
  begin(jobs(1));
  scheduler_->hold(id_of(0));
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  now_ += 100;
  scheduler_->tick();
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, AnAdoptedAttemptThatIsQuietForTooLongIsStoppedToo) {
  stall_seconds_ = 60;
  begin(jobs(1));
  launcher_.survivors = launcher_.alive;
  launcher_.alive.clear();
  restart(60);
  scheduler_->begin();
  scheduler_->add("s", Scheduler::Add::kRestart);
  scheduler_->tick();
  now_ += 61;
  scheduler_->tick();
  EXPECT_EQ(launcher_.reasons[id_of(0)], StopReason::kStall);
}

TEST_F(SchedulerTest, ANewSubmissionMayChangeTheThreadsOfWhatWaits) {
  std::vector<harness::Run> wanted = jobs(3);
  wanted[2].needs.threads = 2;
  begin(wanted);
  finish(id_of(0));
  EXPECT_EQ(starts(2), 0) << "two threads do not fit beside run 1";
  wanted[2].needs.threads = 1;
  submit("s", wanted);
  scheduler_->add("s", Scheduler::Add::kSubmit);
  EXPECT_EQ(starts(2), 1);
}

TEST_F(SchedulerTest, AFailedRunIsRetriedOnRequest) {
  begin(jobs(1));
  end(id_of(0), kExitSettingsRefused, "unknown setting");
  EXPECT_FALSE(scheduler_->retry("0000000000000000"));
  EXPECT_TRUE(scheduler_->retry(id_of(0)));
  EXPECT_EQ(starts(0), 2);
  EXPECT_FALSE(scheduler_->retry(id_of(0))) << "it runs";
}

TEST_F(SchedulerTest, TheSameCrashPausesOneSweepAndTheOtherGoesOn) {
  begin(jobs(3));
  submit("t", {job(10), job(11), job(12), job(13)});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  for (int i = 0; i < 3; ++i) end(id_of(i), 1, "no such file");
  EXPECT_FALSE(scheduler_->paused("s").empty());
  EXPECT_TRUE(scheduler_->paused("t").empty());
  EXPECT_FALSE(scheduler_->idle("t"));
  EXPECT_EQ(launcher_.alive, (std::set<std::string>{id_of(10), id_of(11)}));
}

TEST_F(SchedulerTest, AnotherProcessGoesOnWithTheActiveSweepsInTheirOrder) {
  begin(jobs(3));
  submit("t", {job(10)});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  launcher_.survivors = {id_of(0)};
  launcher_.alive.clear();
  restart();
  scheduler_->begin();
  EXPECT_EQ(store_->active_sweeps(), (std::vector<std::string>{"s", "t"}));
  for (const std::string& sweep : store_->active_sweeps()) scheduler_->add(sweep, Scheduler::Add::kRestart);
  EXPECT_EQ(launcher_.alive, (std::set<std::string>{id_of(0), id_of(1)}));
  EXPECT_EQ(scheduler_->counts("s").total, 3);
  EXPECT_EQ(scheduler_->counts("s").running, 2);
  EXPECT_EQ(scheduler_->progress("s").size(), 2u);
  EXPECT_TRUE(scheduler_->progress("t").empty());
}

TEST_F(SchedulerTest, AfterAStopNothingIsStartedAndTheSweepsStayActive) {
  begin(jobs(3));
  scheduler_->stop();
  EXPECT_TRUE(scheduler_->is_stopping_any());
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  end(id_of(1), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_FALSE(scheduler_->is_stopping_any());
  EXPECT_TRUE(finished());
  EXPECT_EQ(launcher_.starts.size(), 2u);
  EXPECT_EQ(store_->sweep("s")->state, SweepState::kActive);
}

// --- what random_sequences_test.cc has found ---------------------------------------------------------------------

TEST_F(SchedulerTest, TheFirstAttemptThatIsAdoptedBeforeItHasBegunIsNumberOne) {
  launcher_.die_at_once = true;  // launched, and no start.json yet
  begin(jobs(1));
  launcher_.survivors = std::exchange(launcher_.alive, {});
  restart();
  begin(jobs(1));
  scheduler_->tick();
  EXPECT_TRUE(store_->attempts_of(id_of(0)).empty());
  const RunDirectory run = workspace_.run(id_of(0));
  write_start(run, run.make_attempt(), {{"device", "cpu"}, {"numerics", 1}});
  finish(id_of(0));
  ASSERT_EQ(store_->attempts_of(id_of(0)).size(), 1u);
  EXPECT_EQ(store_->attempts_of(id_of(0))[0].number, 1);
}

TEST_F(SchedulerTest, TheNextProcessStartsTheRunsOfHigherPriorityFirst) {
  submit("s", jobs(3));
  submit("urgent", {job(10), job(11)}, /*priority=*/5);
  scheduler_->begin();
  scheduler_->add_active();
  EXPECT_EQ(launcher_.starts, (std::vector<std::string>{id_of(10), id_of(11)}));
}

TEST_F(SchedulerTest, TheNextProcessFindsWhatQueuedRunsOfEachActiveSweepHaveInTheirFolders) {
  submit("s", {job(0)});
  submit("t", {job(1), job(2)});
  for (int i = 0; i < 2; ++i) fs::create_directories(workspace_.run(id_of(i)).root());
  test::write_text(workspace_.run(id_of(0)).settings(), text_of(0));
  test::write_text(workspace_.run(id_of(0)).scores(), "{}");
  write_done(workspace_.run(id_of(0)), "done", 10, "max_updates", {"scores.json"});
  launcher_.survivors = {id_of(1)};
  scheduler_->begin();
  scheduler_->add_active();
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_TRUE(has_event("adopted"));
  EXPECT_EQ(launcher_.starts, std::vector<std::string>{id_of(2)});
}

TEST_F(SchedulerTest, ASweepThatIsSubmittedAgainGoesBehindTheOthersNowAndInTheNextProcess) {
  begin(jobs(3));
  submit("t", {job(10)});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  submit("s", jobs(3));
  scheduler_->add("s", Scheduler::Add::kSubmit);
  finish(id_of(0));
  EXPECT_EQ(launcher_.starts.back(), id_of(10));
}

TEST_F(SchedulerTest, TheNextProcessFinishesACancellation) {
  begin(jobs(3));
  scheduler_->cancel("s");
  launcher_.survivors = {id_of(0)};  // the other attempt ends, and nobody sees it
  launcher_.alive.clear();
  launcher_.stopped.clear();
  store_->requeue(id_of(2), "as in a database that was rebuilt");
  restart();
  scheduler_->begin();
  EXPECT_EQ(state(1), RunState::kCancelled);
  EXPECT_EQ(state(2), RunState::kCancelled);
  EXPECT_EQ(launcher_.stopped, (std::set<std::string>{id_of(0)}));
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(SchedulerTest, TheNextProcessFinishesAHold) {
  begin(jobs(2));
  scheduler_->hold(id_of(0));
  scheduler_->hold(id_of(1));
  scheduler_->release(id_of(1));
  launcher_.survivors = launcher_.alive;
  launcher_.alive.clear();
  launcher_.stopped.clear();
  restart();
  scheduler_->begin();
  scheduler_->add_active();
  EXPECT_EQ(launcher_.stopped, (std::set<std::string>{id_of(0)}));
  launcher_.alive.clear();
  launcher_.survivors.clear();
  restart();
  scheduler_->begin();
  EXPECT_EQ(state(0), RunState::kHeld);
  EXPECT_EQ(state(1), RunState::kQueued);
}

TEST_F(SchedulerTest, ACancelKeepsTheRunsOfASweepThatWasNotAdded) {
  begin(jobs(3));
  submit("t", {job(0), job(2)});
  store_->set_sweep_state("t", SweepState::kPaused, "paused on request");
  scheduler_->cancel("s");
  EXPECT_EQ(launcher_.stopped, (std::set<std::string>{id_of(0), id_of(1)}));
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kQueued);
  EXPECT_EQ(state(2), RunState::kQueued);
  EXPECT_EQ(scheduler_->why(id_of(2)), "its sweep is paused: paused on request");
  scheduler_->add("t", Scheduler::Add::kRestart);
  scheduler_->resume("t");
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerTest, ARunOfAPausedSweepWaitsInThePlaceOfTheOtherSweepThatWantsIt) {
  submit("s", {job(5)});
  submit("t", {job(0), job(1), job(2), job(5)});
  scheduler_->begin();
  scheduler_->add("t", Scheduler::Add::kSubmit);
  scheduler_->add("s", Scheduler::Add::kSubmit);
  scheduler_->pause("s", "paused on request", OnPause::kStop);
  finish(id_of(0));
  EXPECT_EQ(launcher_.starts.back(), id_of(2));
}

TEST_F(SchedulerTest, ACancelStopsWhatAPausedSweepAloneWantsStill) {
  begin(jobs(1));
  submit("t", jobs(1));
  scheduler_->add("t", Scheduler::Add::kSubmit);
  scheduler_->pause("t", "paused on request", OnPause::kStop);
  EXPECT_TRUE(launcher_.stopped.empty());
  scheduler_->cancel("s");
  EXPECT_EQ(launcher_.stopped, (std::set<std::string>{id_of(0)}));
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kQueued);
}

TEST_F(SchedulerTest, ACancelledSweepHasNoJobsWhenAnotherSweepWantsItsRuns) {
  begin(jobs(1));
  scheduler_->cancel("s");
  submit("t", jobs(1));
  scheduler_->add("t", Scheduler::Add::kSubmit);  // before its attempt has stopped
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_TRUE(scheduler_->idle("s"));
  EXPECT_EQ(scheduler_->counts("s").running, 0);
  scheduler_->cancel("t");
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kCancelled);
  restart();
  submit("t", jobs(1));
  scheduler_->begin();
  scheduler_->add("t", Scheduler::Add::kSubmit);
  scheduler_->add("s", Scheduler::Add::kRestart);  // cancelled, as the store says
  EXPECT_EQ(scheduler_->counts("s").running, 0);
  EXPECT_EQ(scheduler_->paused("s"), "it was cancelled");
}

TEST_F(SchedulerTest, ACancelOfItsSweepReleasesNoRunThatIsBeingHeld) {
  begin(jobs(2));
  scheduler_->hold(id_of(0));
  scheduler_->cancel("s");
  EXPECT_FALSE(scheduler_->release(id_of(1))) << "it is being cancelled, not held";
  for (int i = 0; i < 2; ++i) end(id_of(i), Exit{.code = kExitStopped, .asked = "stop"});
  EXPECT_EQ(state(0), RunState::kHeld);
  EXPECT_EQ(state(1), RunState::kCancelled);
  EXPECT_FALSE(scheduler_->retry(id_of(1))) << "nobody would work on it";
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(SchedulerTest, ARunThatOneSweepQueuesAgainIsAJobOfItsOtherSweepsToo) {
  begin(jobs(1));
  submit("t", jobs(1));
  scheduler_->add("t", Scheduler::Add::kSubmit);
  scheduler_->cancel_run(id_of(0));
  end(id_of(0), Exit{.code = kExitStopped, .asked = "stop"});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  EXPECT_FALSE(scheduler_->idle("s"));
  EXPECT_EQ(scheduler_->counts("s").running, 1);
}

TEST_F(SchedulerTest, ARunForAMissingDeviceIsHeldAgainWhenItIsReleased) {
  begin(jobs(1, "cuda"));
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  EXPECT_EQ(state(0), RunState::kHeld);
  EXPECT_TRUE(finished());
}

TEST_F(SchedulerTest, TheAttemptsOfADeletedFolderAreForgottenWithIt) {
  begin(jobs(1));
  for (int i = 0; i < 3; ++i) {
    end(id_of(0), 1, "flaky");
    now_ += 100;
    scheduler_->tick();
  }
  EXPECT_EQ(state(0), RunState::kFailed);
  fs::remove_all(workspace_.run(id_of(0)).root());
  EXPECT_TRUE(scheduler_->retry(id_of(0)));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(state(0), RunState::kRunning) << i;
    end(id_of(0), 1, "flaky");
    now_ += 100;
    scheduler_->tick();
  }
  EXPECT_EQ(state(0), RunState::kFailed) << "three tries, as before";
  EXPECT_EQ(store_->attempts_of(id_of(0)).size(), 3u);
}

TEST_F(SchedulerTest, AnAdoptedAttemptThatHasTheMachineToItselfKeepsIt) {
  begin(jobs(2));
  end(id_of(0), kExitOutOfMemory);
  now_ += 100;
  finish(id_of(1));
  ASSERT_EQ(launcher_.alive, (std::set<std::string>{id_of(0)}));
  launcher_.survivors = std::exchange(launcher_.alive, {});
  restart();
  begin({job(0), job(2)});
  EXPECT_EQ(starts(2), 0);
  finish(id_of(0));
  EXPECT_EQ(starts(2), 1);
}

// --- policy of a sweep -----------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, ASweepMaySayHowManyTriesAClassOfFailureHas) {
  tries_ = {{"crashed", 5}, {"out_of_memory", 1}};
  begin(jobs(2));
  for (int i = 0; i < 4; ++i) {
    end(id_of(0), 1, "cause " + std::to_string(i));
    EXPECT_EQ(state(0), RunState::kQueued) << i;
    now_ += 100;
    scheduler_->tick();
  }
  end(id_of(0), 1);
  EXPECT_EQ(state(0), RunState::kFailed);
  end(id_of(1), kExitOutOfMemory);
  EXPECT_EQ(state(1), RunState::kFailed);
}

TEST_F(SchedulerTest, ARunOfTwoSweepsHasTheTriesOfTheMorePatientOne) {
  tries_ = {{"crashed", 1}};
  begin(jobs(1));
  tries_ = {{"crashed", 2}};
  submit("t", jobs(1));
  scheduler_->add("t", Scheduler::Add::kSubmit);
  end(id_of(0), 1);
  EXPECT_EQ(state(0), RunState::kQueued);
  now_ += 100;
  scheduler_->tick();
  end(id_of(0), 1);
  EXPECT_EQ(state(0), RunState::kFailed);
}

// --- stalls ---------------------------------------------------------------------------------------------------------

class StallTest : public SchedulerTest {
 protected:
  // A run that reports every 10 seconds.
  void train(const std::string& phase, int reports) {
    begin(jobs(1));
    const RunDirectory run = workspace_.run(id_of(0));
    if (!phase.empty()) test::write_text(run.attempt(1) / "phase", phase + "\n");
    report(reports);
  }
  void report(int reports) {
    const RunDirectory run = workspace_.run(id_of(0));
    for (int i = 0; i < reports; ++i) {
      std::ofstream(run.metrics(), std::ios::app) << R"({"step": 1, "name": "train.loss", "value": 1})"
                                                  << "\n";
      wait(10);
    }
  }
  void wait(double seconds) {
    now_ += seconds;
    scheduler_->tick();
  }
  bool is_stalled() const { return launcher_.reasons.contains(id_of(0)); }
};

TEST_F(StallTest, ARunThatTrainedAndReportsNothingForThirtyTimesItsLongestGapIsStalled) {
  train("training", 8);
  wait(280);
  EXPECT_FALSE(is_stalled());
  wait(30);
  ASSERT_TRUE(is_stalled()) << "310 s; the gaps were 10 s";
  EXPECT_EQ(launcher_.reasons.at(id_of(0)), StopReason::kStall);
}

TEST_F(StallTest, ALongerGapBeforeAllowsALongerOne) {
  train("training", 4);
  wait(40);
  report(4);
  wait(1000);
  EXPECT_FALSE(is_stalled()) << "30 times 50 s";
  wait(700);
  EXPECT_TRUE(is_stalled());
}

TEST_F(StallTest, WhatARunDoesBesideTrainingMayTakeAsLongAsTheSweepAllows) {
  train("evaluating", 8);
  wait(1700);
  EXPECT_FALSE(is_stalled());
  wait(200);
  EXPECT_TRUE(is_stalled());
}

TEST_F(StallTest, AProgramThatReportsNoPhaseMayBeQuietAsLongAsTheSweepAllows) {
  train("", 8);
  wait(1700);
  EXPECT_FALSE(is_stalled());
}

TEST_F(StallTest, TheFirstReportsSayNothingAboutARhythm) {
  train("training", 3);
  wait(1000);
  EXPECT_FALSE(is_stalled());
}

// --- what runs use of the machine ----------------------------------------------------------------------------------

class SharedMachineTest : public SchedulerTest {
 protected:
  harness::Run sized(int number, int64_t bytes, const std::string& device = "cpu",
                     const std::string& shape = "a") const {
    harness::Run run = job(number, device);
    run.needs.memory_bytes = bytes;
    run.needs.resource_class = shape;
    run.updates = 1'000'000;
    return run;
  }
  std::vector<harness::Run> sized_jobs(int count, int64_t bytes, const std::string& device = "cpu") const {
    std::vector<harness::Run> all;
    for (int i = 0; i < count; ++i) all.push_back(sized(i, bytes, device));
    return all;
  }
  void declare(const std::string& devices) {
    declared_ = devices;
    restart();
  }
  void measure(const std::string& id, int64_t peak_bytes) {
    test::write_text(workspace_.run(id).attempt(1) / "measured.json", sealed({{"peak_memory_bytes", peak_bytes}}));
  }
  // Some processes on the only GPU: those of our runs, and others.
  void use_gpu(const std::map<int64_t, int64_t>& bytes_of_pids) {
    DeviceUse use;
    for (const auto& [pid, bytes] : bytes_of_pids) {
      use.used_bytes += bytes;
      use.processes.push_back({.pid = pid, .bytes = bytes});
    }
    monitor_->set_use("declared-0", use);
  }
  void tick_later(double seconds = 10) {
    now_ += seconds;
    scheduler_->tick();
  }
};

TEST_F(SharedMachineTest, MemoryLimitsHowManyRunsThereAreOnTheCpu) {
  machine_.capacity = {.cores = {0, 1, 2, 3}, .memory_bytes = 64 * kGiB};
  restart();
  begin(sized_jobs(4, 20 * kGiB));
  EXPECT_EQ(launcher_.starts.size(), 2u) << "20 GiB with a margin of 30 % each";
  EXPECT_EQ(scheduler_->why(id_of(2)),
            "it needs 26.0 GiB of memory, but this machine has 12.0 GiB of 64.0 GiB unreserved");
  EXPECT_EQ(scheduler_->why(id_of(0)),
            "on the CPU with 1 thread, 26.0 GiB reserved (20.0 GiB estimated, with a margin of 30 %)");
}

TEST_F(SharedMachineTest, AMeasuredPeakReplacesTheEstimate) {
  machine_.capacity = {.cores = {0, 1, 2, 3}, .memory_bytes = 64 * kGiB};
  restart();
  begin(sized_jobs(8, 20 * kGiB));
  measure(id_of(0), 10 * kGiB);
  finish(id_of(0));
  EXPECT_EQ(launcher_.alive.size(), 4u) << "26 GiB for the one that was placed before, 11 GiB for each other";
}

TEST_F(SharedMachineTest, WhatARunUsesNowCountsIfItIsMoreThanTheEstimate) {
  machine_.capacity = {.cores = {0, 1, 2, 3}, .memory_bytes = 64 * kGiB};
  restart();
  begin({sized(0, 1 * kGiB)});
  measure(id_of(0), 40 * kGiB);
  tick_later();
  submit("t", {sized(1, 1 * kGiB), sized(2, 1 * kGiB)});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  EXPECT_EQ(starts(1), 1) << "44 GiB fit beside the 1.3 GiB of the first";
  EXPECT_EQ(starts(2), 0);
}

TEST_F(SharedMachineTest, WhatAUserDeclaresCountsAsItStands) {
  machine_.capacity = {.cores = {0, 1, 2, 3}, .memory_bytes = 64 * kGiB};
  restart();
  memory_ = 16 * kGiB;
  begin(sized_jobs(4, 60 * kGiB));
  EXPECT_EQ(launcher_.starts.size(), 4u);
}

TEST_F(SharedMachineTest, APeakIsKeptForTheNextProcess) {
  machine_.capacity = {.cores = {0, 1, 2, 3}, .memory_bytes = 64 * kGiB};
  restart();
  begin({sized(0, 20 * kGiB)});
  measure(id_of(0), 10 * kGiB);
  finish(id_of(0));
  restart();
  begin(sized_jobs(8, 20 * kGiB));
  EXPECT_EQ(launcher_.alive.size(), 4u) << "11 GiB each";
}

TEST_F(SharedMachineTest, RunsAreBoundToCoresOfTheirOwnOnlyIfThatIsAsked) {
  begin(jobs(2));
  EXPECT_TRUE(launcher_.cores.at(id_of(0)).empty());
  finish(id_of(0));
  finish(id_of(1));
  machine_.pin = true;
  restart();
  submit("t", {job(2), job(3)});
  scheduler_->begin();
  scheduler_->add("t", Scheduler::Add::kSubmit);
  EXPECT_EQ(launcher_.cores.at(id_of(2)), (std::vector<int>{0}));
  EXPECT_EQ(launcher_.cores.at(id_of(3)), (std::vector<int>{1}));
}

TEST_F(SharedMachineTest, AnAdoptedRunKeepsItsCores) {
  machine_.pin = true;
  restart();
  begin(jobs(2));
  finish(id_of(0));
  write_start(workspace_.run(id_of(1)), 1, {{"device", "cpu"}, {"numerics", 1}, {"cores", {1}}});
  launcher_.survivors = launcher_.alive;
  launcher_.alive.clear();
  restart();
  submit("t", {job(2)});
  scheduler_->begin();
  scheduler_->add("t", Scheduler::Add::kSubmit);
  EXPECT_EQ(launcher_.cores.at(id_of(2)), (std::vector<int>{0}));
}

TEST_F(SharedMachineTest, ARunOfWhichNothingIsKnownHasItsGpuToItself) {
  declare("1 x 24GiB");
  begin(jobs(2, "cuda"));
  EXPECT_EQ(launcher_.starts.size(), 1u);
  EXPECT_EQ(scheduler_->why(id_of(1)), "it needs a whole GPU, but GPU 0 is taken whole by a run");
}

TEST_F(SharedMachineTest, AGpuThatOthersUseTakesNoRun) {
  declare("1 x 24GiB");
  begin({sized(0, kGiB, "cuda")});
  launcher_.pids[id_of(0)] = {7, 8};
  use_gpu({{7, kGiB}, {4711, kGiB}});
  tick_later();
  finish(id_of(0));
  submit("t", {sized(1, kGiB, "cuda")});
  scheduler_->add("t", Scheduler::Add::kSubmit);
  EXPECT_EQ(starts(1), 0);
  EXPECT_EQ(scheduler_->why(id_of(1)), "it needs 1.2 GiB, but GPU 0 is used by process 4711");
  use_gpu({});
  tick_later();
  EXPECT_EQ(starts(1), 1) << "it is looked at although nothing runs";
}

TEST_F(SharedMachineTest, ARunThatRanOutOfMemoryBesideOthersHasAGpuToItselfNext) {
  declare("1 x 24GiB");
  machine_.runs_per_gpu = 2;
  restart();
  begin(sized_jobs(3, 5 * kGiB, "cuda"));
  ASSERT_EQ(launcher_.alive.size(), 2u);
  end(id_of(0), kExitOutOfMemory);
  EXPECT_EQ(state(0), RunState::kQueued);
  tick_later(100);
  EXPECT_THAT(scheduler_->why(id_of(0)), testing::HasSubstr("a whole GPU"));
}

// A machine of one GPU on which one run makes 10 updates a second, two make 18 together and three no more than that.
TEST_F(SharedMachineTest, AsManyRunsShareAGpuAsTogetherMakeTheMostUpdates) {
  declare("1 x 24GiB");
  begin(sized_jobs(12, 2 * kGiB, "cuda"));
  std::map<std::string, double> made;
  const auto rate = [](size_t runs) { return runs == 1 ? 10.0 : 18.0; };
  std::string why;
  for (int second = 0; second < 6000; second += 10) {
    for (const std::string& id : launcher_.alive) {
      made[id] += 10 * rate(launcher_.alive.size()) / static_cast<double>(launcher_.alive.size());
      std::ofstream(workspace_.run(id).metrics(), std::ios::app)
          << nlohmann::json{{"step", static_cast<int64_t>(made[id])}, {"name", "train.loss"}, {"value", 1}} << "\n";
      launcher_.pids[id] = {static_cast<int64_t>(std::hash<std::string>{}(id) >> 1)};
    }
    std::map<int64_t, int64_t> use;
    for (const std::string& id : launcher_.alive) use[*launcher_.pids[id].begin()] = 2 * kGiB;
    use_gpu(use);
    tick_later(10);
    why = scheduler_->why(*launcher_.alive.begin());
    if (launcher_.alive.size() > 3) break;
  }
  EXPECT_EQ(launcher_.alive.size(), 3u) << "the third was tried; runs that run are not stopped";
  EXPECT_THAT(why, testing::HasSubstr("2 per GPU: 1 run makes 10 updates/s, 2 make 18, 3 make 18"));
}

}  // namespace
}  // namespace tearless::harness::scheduler_test
