// The scheduler with a launcher that starts no process and a clock that the test sets. Runs are called by numbers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "harness/folders/sweep_directory.h"
#include "harness/schedule/scheduler.h"
#include "tests/support/paths.h"

namespace tearless::harness::scheduler_test {

namespace fs = std::filesystem;
using Runs = std::vector<harness::Run>;
using Ids = std::vector<std::string>;
using Add = Scheduler::Add;

constexpr int kDerived = 100;  // the run number 100 + n derives from the run n
inline std::string id_of(int number);
inline std::string text_of(int number) {
  const std::string of = number < kDerived ? "" : "derived.of = \"" + id_of(number - kDerived) + "\"\n";
  return of + "n = " + std::to_string(number) + "\n";
}
inline std::string id_of(int number) { return run_id(text_of(number)); }
inline Ids ids(const std::vector<int>& numbers) {
  Ids all;
  for (const int number : numbers) all.push_back(id_of(number));
  return all;
}

// Two slots, of which a run takes as many as it has threads; one that must be alone takes all. No GPU. Attempts exist
// as folders only; the test ends them.
class FakeLauncher : public Launcher {
 public:
  std::optional<Refusal> refusal_of(const Needs& needs) const override {
    if (needs.device == "cuda") {
      if (when_refusing) when_refusing();
      return Refusal{.why = "no GPU", .for_good = true};
    }
    int taken = 0;
    for (const auto& [id, held] : alive) taken += held.alone ? kSlots : held.threads;
    const int wanted = needs.alone ? kSlots : std::min(needs.threads, kSlots);
    return taken + wanted > kSlots ? std::optional<Refusal>({.why = "no slot"}) : std::nullopt;
  }
  void start(const Launch& launch) override {
    EXPECT_FALSE(alive.contains(launch.id)) << "started twice at once";
    EXPECT_FALSE(refusal_of(launch.needs));
    if (refuse) throw UserError("no process can be started");
    alive[launch.id] = launch.needs;
    starts.push_back(launch.id);
    const RunDirectory run(launch.folder);
    if (!die_at_once) write_start(run, run.make_attempt(), {{"device", device}, {"numerics", 1}});
  }
  bool adopt(const std::string& id, const fs::path&, const Needs& needs) override {
    if (!survivors.contains(id)) return false;
    alive[id] = needs;
    return true;
  }
  void stop(const std::string& id, Stop how, int grace_seconds) override {
    stopped[id] = how;
    grace = grace_seconds;
  }
  void abandon() override { is_abandoned = true; }
  std::string where(const std::string& id) const override { return alive.contains(id) ? "in a slot" : "nowhere"; }
  void poll() override { ++polls; }

  static constexpr int kSlots = 2;
  bool refuse = false;
  bool die_at_once = false;
  std::string device = "cpu";  // of the next attempts
  std::function<void()> when_refusing;
  std::map<std::string, Needs> alive;
  std::set<std::string> survivors;
  std::map<std::string, Stop> stopped;
  bool is_abandoned = false;
  int grace = 0, polls = 0;
  Ids starts;
};

struct Exit {
  int code = 0;
  int signal = 0;
  std::string asked = "";
  int memory_kills = 0;
  int disk_full = 0;
  std::string log = "";
};
inline const Exit kAsAsked = {.code = kExitStopped, .asked = "stop"};
inline const Exit kKilled = {.code = 137, .signal = SIGKILL};

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() : workspace_(folder_.path()), store_(Store::open_writer(workspace_)) { restart(); }

  // As if the service had been killed and started again. Of the attempts, `survivors` are alive.
  void restart(const std::set<std::string>& survivors = {}) {
    launcher_.survivors = survivors;
    launcher_.alive.clear();
    launcher_.stopped.clear();
    scheduler_ = std::make_unique<Scheduler>(
        *store_, workspace_, launcher_, [this] { return now_; },
        [this](const SchedulerEvent& event) { events_.push_back(event); });
  }
  void restart_beside_all() {
    std::set<std::string> all;
    for (const auto& [id, needs] : launcher_.alive) all.insert(id);
    restart(all);
  }

  static harness::Run job(int number, const std::string& device = "cpu") {
    return {.id = id_of(number),
            .settings = text_of(number),
            .coordinates = {{"n", std::to_string(number)}},
            .seed = 1,
            .needs = {.device = device},
            .updates = 10};
  }
  static Runs jobs(int count, const std::string& device = "cpu") {
    Runs all;
    for (int i = 0; i < count; ++i) all.push_back(job(i, device));
    return all;
  }

  // Submits a sweep to the store alone.
  void submit(const std::string& sweep, const Runs& runs, int64_t priority = 0) {
    store_->submit({.id = sweep,
                    .title = "",
                    .grid_file = "/" + sweep + ".toml",
                    .submitted_at = "",
                    .runs = runs,
                    .program = "/bin/false",
                    .policy = policy_,
                    .reason = "",
                    .priority = priority});
  }
  void add(const std::string& sweep, const Runs& runs, Add how = Add::kSubmit) {
    submit(sweep, runs);
    scheduler_->add(sweep, how);
  }
  // As `tearless run` does with a sweep "s".
  void begin(const Runs& runs, Add how = Add::kSubmit) {
    submit("s", runs);
    scheduler_->begin();
    scheduler_->add("s", how);
  }
  // As a daemon does.
  void begin_with_active() {
    scheduler_->begin();
    scheduler_->add_active();
  }
  void later(double seconds = 100) {
    now_ += seconds;
    scheduler_->tick();
  }
  void pause(const std::string& sweep) { scheduler_->pause(sweep, "on request", OnPause::kStop); }

  // The program writes its result, and its attempt ends.
  void write_result(int number) const {
    const RunDirectory run = workspace_.run(id_of(number));
    make_folders(run.root());
    test::write_text(run.settings(), text_of(number));
    test::write_text(run.scores(), R"({"test.bleu": 20})");
    write_done(run, "done", 10, "max_updates", {"scores.json"});
  }
  void finish(int number) {
    write_result(number);
    end(number, 0);
  }
  void end(int number, const Exit& exit) {
    const RunDirectory run = workspace_.run(id_of(number));
    const fs::path attempt = run.attempt(run.newest_attempt());
    test::write_text(attempt / "log.txt", exit.log);
    test::write_text(attempt / "exit.json", sealed({{"code", exit.code},
                                                    {"signal", exit.signal},
                                                    {"asked", exit.asked},
                                                    {"memory_kills", exit.memory_kills},
                                                    {"disk_full", exit.disk_full}}));
    vanish(number);
  }
  void end(int number, int code, const std::string& log = "") { end(number, Exit{.code = code, .log = log}); }
  // It ends, and its supervisor writes nothing.
  void vanish(int number, const std::string& fault = "") {
    ASSERT_EQ(launcher_.alive.erase(id_of(number)), 1u);
    launcher_.on_end(id_of(number), {.fault = fault});
  }
  void write_checkpoint(int number, int64_t step) const {
    make_folders(workspace_.run(id_of(number)).checkpoint(step));
  }

  RunState state(int number) const { return store_->run(id_of(number))->state; }
  std::vector<RunState> states(int count) const {
    std::vector<RunState> all;
    for (int i = 0; i < count; ++i) all.push_back(state(i));
    return all;
  }
  FailureClass failure(int number) const { return store_->run(id_of(number))->failure; }
  std::string reason(int number) const { return store_->run(id_of(number))->reason; }
  std::string outcome(int number) const { return store_->attempts_of(id_of(number)).back().outcome; }
  int64_t starts(int number) const {
    return std::count(launcher_.starts.begin(), launcher_.starts.end(), id_of(number));
  }
  std::set<std::string> alive() const {
    std::set<std::string> all;
    for (const auto& [id, needs] : launcher_.alive) all.insert(id);
    return all;
  }
  static std::set<std::string> set_of(const std::vector<int>& numbers) {
    const Ids all = ids(numbers);
    return {all.begin(), all.end()};
  }
  std::set<std::string> stopped() const {
    std::set<std::string> all;
    for (const auto& [id, how] : launcher_.stopped) all.insert(id);
    return all;
  }
  bool has_event(const std::string& what) const {
    return std::any_of(events_.begin(), events_.end(), [&](const SchedulerEvent& event) { return event.what == what; });
  }
  int64_t ended(const std::string& sweep) const {
    const SweepCounts counts = scheduler_->counts(sweep);
    return counts.total - counts.waiting - counts.running;
  }
  std::string why(int number) const { return scheduler_->why(ids({number})).at(id_of(number)); }
  bool finished() const { return scheduler_->idle("s"); }
  std::string paused() const { return scheduler_->paused("s"); }

  test::TempFolder folder_;
  Workspace workspace_;
  std::unique_ptr<Store> store_;
  FakeLauncher launcher_;
  double now_ = 1000;
  SweepPolicy policy_;  // of the sweeps that are submitted next
  std::vector<SchedulerEvent> events_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace tearless::harness::scheduler_test
