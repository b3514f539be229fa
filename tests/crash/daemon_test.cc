// The crash matrix of a daemon. A script of requests: a grid is submitted, a run of it is held and released, another
// sweep is submitted and cancelled, the daemon ends, and a second one takes over what runs. At each point of it, in the
// daemon, the commands, the supervisors and the training programs, each choice of victims is killed. Someone who sees
// that a request did not succeed starts a daemon and repeats it.
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

namespace tearless::crash::daemon_test {
namespace {

struct DaemonVictims {
  const char* name;
  uint32_t mask;
};
constexpr DaemonVictims kDaemonVictims[] = {
    {"who is there", fault::kCallingProcess}, {"all", fault::kEverybody},
    {"the daemon", fault::kDaemon},           {"the commands", fault::kHarness},
    {"the supervisors", fault::kSupervisor},  {"the programs", fault::kProgram}};
constexpr int kMaxRepeats = 6;

class Script {
 public:
  Script() : faults_(sweep_.folder()) {
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
    request({"submit", "grid.toml"});
    request({"hold", "grid.toml", "2"}, kRefused);  // it may be done already
    request({"stop"});
    start_daemon();
    request({"release", "grid.toml", "2"}, kRefused);
    request({"submit", "other.toml"});
    request({"cancel", "other.toml"});
    request({"wait", "grid.toml"});
    request({"stop"});
  }

  void check(const std::string& where) {
    request({"cancel", "other.toml"});  // again, and without a daemon: returns when its run has stopped
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
  test::Faults faults_;
  std::string log_;
};

// True where the point was reached: commands and daemon wait by the clock, so not every script passes as many.
bool try_one(int64_t point, const DaemonVictims& victims) {
  const std::string where = fmt::format("killed: {}, at point {}", victims.name, point);
  Script script;
  script.faults().kill_at(point, victims.mask);
  script.play();
  script.check(where);
  return script.faults().hits() > 0;
}

TEST(DaemonCrashMatrix, AKillBetweenAnyTwoCallsLeavesTheSameTable) {
  int64_t points = 0;
  {
    Script script;
    script.play();
    points = script.faults().points();
    script.check("undisturbed");
  }
  std::vector<std::pair<int64_t, DaemonVictims>> trials;
  for (const DaemonVictims& victims : kDaemonVictims) {
    for (const int64_t point : chosen_points(points, 2, 300 + victims.mask)) trials.emplace_back(point, victims);
  }
  std::printf("crash matrix of a daemon: %ld points x %zu choices of victims, %zu tried (seed %u%s)\n",
              static_cast<long>(points), std::size(kDaemonVictims), trials.size(), seed(),
              asked_for_all() ? ", all" : "");
  std::atomic<size_t> happened = 0;
  in_parallel(trials.size(), [&](size_t i) { happened += try_one(trials[i].first, trials[i].second); });
  std::printf("killed at %zu of %zu\n", happened.load(), trials.size());
  EXPECT_GT(happened.load() * 10, trials.size() * 8);
}

}  // namespace
}  // namespace tearless::crash::daemon_test
