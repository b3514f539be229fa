// The crash matrix of a service that gets requests. A script: a grid is submitted, a run of it is paused and resumed,
// another sweep is submitted and cancelled. It is played twice: with a daemon that ends on the way, and a second one
// that takes over what runs; and without, so that commands start the services. At each point of it, in the service, the
// commands, the supervisors and the training programs, each choice of victims is killed. Someone who sees that a
// request did not succeed repeats it.
//
// Afterwards the table and the files of the grid's runs must have the bytes of an undisturbed sweep, each of its runs
// exactly one result and no failed try, the cancelled sweep no result; no process may be alive, and `tearless verify`
// must find nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "base/fault.h"
#include "harness/store/store.h"
#include "tests/crash/sweep.h"

namespace tearless::crash::service_test {
namespace {

struct DaemonVictims {
  const char* name;
  uint32_t mask;
};
constexpr DaemonVictims kDaemonVictims[] = {
    {"who is there", fault::kCallingProcess}, {"all", fault::kEverybody},
    {"the service", fault::kDaemon},          {"the commands", fault::kHarness},
    {"the supervisors", fault::kSupervisor},  {"the programs", fault::kProgram}};
constexpr int kMaxRepeats = 6;

class Script {
 public:
  explicit Script(bool has_daemon) : has_daemon_(has_daemon), faults_(sweep_.folder()) {
    std::string grid = test::read_text(sweep_.folder() / "grid.toml");
    const auto replace = [&](const std::string& before, const std::string& after) {
      const size_t at = grid.find(before);
      ASSERT_NE(at, std::string::npos) << before;
      grid.replace(at, before.size(), after);
    };
    replace("[set]\n", "[set]\n\"fake.sleep_ms\" = 20\n");  // it is not part of a run's id
    test::write_text(sweep_.folder() / "grid.toml", grid);
    replace("\"fake.updates\" = 7", "\"fake.updates\" = 100000");
    replace("\"a\", \"b\"", "\"c\"");
    test::write_text(sweep_.folder() / "other.toml", grid);
  }
  ~Script() { faults_.kill_all(); }

  test::Faults& faults() { return faults_; }

  void play() {
    start_daemon();
    request({"submit", "grid.toml", "--jobs", "1"});
    request({"pause", "grid.toml", "2"}, kRefused);  // it may be done already
    if (has_daemon_) request({"stop"});
    start_daemon();
    request({"resume", "grid.toml", "2"}, kRefused);
    request({"submit", "other.toml", "--jobs", "1"});
    request({"cancel", "other.toml"});
    request({"wait", "grid.toml"});
    if (has_daemon_) request({"stop"});
  }

  void check(const std::string& where) {
    request({"cancel", "other.toml"});
    if (has_daemon_) request({"stop"});
    test::eventually([&] { return faults_.alive().empty(); });
    EXPECT_THAT(faults_.alive(), testing::IsEmpty()) << where;
    Result result = sweep_.result();
    for (const std::string& id : runs_of("other.toml", harness::RunState::kCancelled, where)) {
      std::erase_if(result.files, [&](const auto& file) { return file.first.starts_with(id); });
    }
    EXPECT_EQ(difference(result, undisturbed(Engine::kFake)), "") << where << "\n" << log_;
    const std::map<std::string, std::vector<std::string>> outcomes = sweep_.outcomes();
    for (const std::string& id : runs_of("grid.toml", harness::RunState::kDone, where)) {
      const std::vector<std::string>& attempts = outcomes.at(id);
      EXPECT_EQ(std::count(attempts.begin(), attempts.end(), "done"), 1) << where << ": " << id;
    }
    for (const auto& [run, attempts] : outcomes) {
      for (const std::string& outcome : attempts) {
        EXPECT_TRUE(outcome == "done" || outcome == "lost" || outcome == "stopped" || outcome == "killed")
            << where << ": " << run << " " << outcome << "\n"
            << log_;
      }
    }
    const test::Finished verify = tearless({"verify"});
    EXPECT_EQ(verify.code, 0) << where << "\n" << verify.output << verify.errors << log_;
  }

 private:
  static constexpr int kDone = 0, kRefused = 1;  // exit codes

  test::Finished tearless(const std::vector<std::string>& arguments) const {
    test::Command command = sweep_.command(&faults_);
    command.arguments.resize(1);
    command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
    command.environment["XDG_RUNTIME_DIR"] = sweep_.folder().string();  // the socket's folder
    return test::run(command);
  }

  bool succeeds(const std::vector<std::string>& arguments, int most = kDone) {
    const test::Finished finished = tearless(arguments);
    for (const std::string& word : arguments) log_ += word + " ";
    log_ += fmt::format("→ {}\n{}{}", finished.code, finished.output, finished.errors);
    return finished.code >= 0 && finished.code <= most;
  }
  void start_daemon() {
    if (!has_daemon_) return;
    for (int tries = 0; tries < kMaxRepeats; ++tries) {
      if (succeeds({"daemon", "--background", "--jobs", "1"})) return;
    }
    ADD_FAILURE() << "no daemon starts\n" << log_;
  }
  // `most`: the exit codes up to this one are a success.
  void request(const std::vector<std::string>& arguments, int most = kDone) {
    for (int tries = 0; tries < kMaxRepeats; ++tries) {
      if (succeeds(arguments, most)) return;
      start_daemon();
    }
    ADD_FAILURE() << arguments.at(0) << " never succeeds\n" << log_;
  }

  // The runs of the newest sweep of a grid; the test fails if one is in another state.
  std::vector<std::string> runs_of(const std::string& grid, harness::RunState state, const std::string& where) const {
    std::vector<std::string> runs;
    const auto store = harness::Store::open_reader(harness::Workspace(sweep_.workspace()));
    for (const harness::Sweep& sweep : store->sweeps()) {
      if (!sweep.grid_file.ends_with("/" + grid)) continue;
      for (const harness::RunRecord& run : store->runs_of(sweep.id)) {
        EXPECT_EQ(name_of(run.state), name_of(state)) << where << ": " << grid << " " << run.id << "\n" << log_;
        runs.push_back(run.id);
      }
    }
    return runs;
  }

  Sweep sweep_{Engine::kFake};
  bool has_daemon_;
  test::Faults faults_;
  std::string log_;
};

// True where the point was reached: commands and daemon wait by the clock, so not every script passes as many.
bool try_one(bool has_daemon, int64_t point, const DaemonVictims& victims) {
  const std::string where = fmt::format("killed: {}, at point {}", victims.name, point);
  Script script(has_daemon);
  script.faults().kill_at(point, victims.mask);
  script.play();
  script.check(where);
  return script.faults().hits() > 0;
}

void try_all(bool has_daemon) {
  int64_t points = 0;
  {
    Script script(has_daemon);
    script.play();
    points = script.faults().points();
    script.check("undisturbed");
  }
  std::vector<std::pair<int64_t, DaemonVictims>> trials;
  for (const DaemonVictims& victims : kDaemonVictims) {
    for (const int64_t point : chosen_points(points, 2, 300 + victims.mask)) trials.emplace_back(point, victims);
  }
  std::printf("crash matrix of a service: %ld points x %zu choices of victims, %zu tried (seed %u%s)\n",
              static_cast<long>(points), std::size(kDaemonVictims), trials.size(), seed(),
              asked_for_all() ? ", all" : "");
  std::atomic<size_t> happened = 0;
  in_parallel(trials.size(), [&](size_t i) { happened += try_one(has_daemon, trials[i].first, trials[i].second); });
  std::printf("killed at %zu of %zu\n", happened.load(), trials.size());
  EXPECT_GT(happened.load() * 10, trials.size() * 8);
}

TEST(ServiceCrashMatrix, OfADaemonAKillBetweenAnyTwoCallsLeavesTheSameTable) { try_all(/*has_daemon=*/true); }
TEST(ServiceCrashMatrix, OfServicesThatCommandsStartAKillBetweenAnyTwoCallsLeavesTheSameTable) {
  try_all(/*has_daemon=*/false);
}

}  // namespace
}  // namespace tearless::crash::service_test
