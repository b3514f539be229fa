// `tearless run` with real processes, in a folder of its own: the harness, its supervisors, and a training program that
// fails on request (tests/support/fake_engine.cc).
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "harness/runs/attempt_files.h"
#include "harness/store/writer.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace tearless::harness {

namespace fs = std::filesystem;

// Four runs of 12 updates; slow enough to be caught in the middle where a test wants that.
inline std::string grid_of(const std::string& behaviours, int sleep_ms) {
  return "title = \"A fake grid\"\nseeds = 2\n[set]\n\"fake.updates\" = 12\n\"fake.sleep_ms\" = " +
         std::to_string(sleep_ms) + "\n[axis]\n\"model.kind\" = [\"a\", \"b\"]\n\"fake.behaviour\" = [" + behaviours +
         "]\n[table]\nscores = [\"test.score\"]\n";
}

// A file of an attempt, as if the program had written it: exit.json has its checksum.
inline void write_before_exit(const RunDirectory& run, const std::string& name, const std::string& text,
                              int attempt = 1) {
  test::write_text(run.attempt(attempt) / name, text);
  nlohmann::json exit = read_sealed(run.attempt(attempt) / "exit.json").value();
  exit["files"] = checksums_for_exit(run, attempt);
  test::write_text(run.attempt(attempt) / "exit.json", sealed(exit));
}

class RunTest : public testing::Test {
 public:
  RunTest() { write_grid("\"succeed\"", 0); }
  ~RunTest() override {
    for (const char* workspace : {"results", "results/smoke"}) {
      if (is_served(workspace)) tearless({"stop", "--now", "--workspace", workspace});
      wait_until_unserved(workspace);
    }
  }

  // Sanitized commands are slower, so the runs are too: what is to be caught in the middle must not be over.
  void write_grid(const std::string& behaviours, int sleep_ms) {
    const char* const sanitized = std::getenv("TEARLESS_SANITIZED");
    if (sanitized && *sanitized) sleep_ms *= 4;
    test::write_text(folder_ / "grid.toml", grid_of(behaviours, sleep_ms));
  }

  test::Command command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), test::program("tearless").string());
    return {.arguments = std::move(arguments),
            .environment = {{"TEARLESS_ENGINE", test::program("fake-engine").string()}},
            .folder = folder_.path()};
  }
  /// On a machine with the GPUs that are in gpus.txt (tests/support/fake_nvml.cc).
  test::Command with_gpus(test::Command command) const {
    command.environment["TEARLESS_NVML"] = test::program("libfake-nvml.so").string();
    command.environment["TEARLESS_FAKE_NVML"] = (folder_ / "gpus.txt").string();
    return command;
  }
  /// Runs a command. A `tearless run` has ended with the service that it started, so that a test may do what it likes
  /// with the workspace; not so for those who have a daemon.
  test::Finished tearless(std::vector<std::string> arguments) const {
    return arguments.front() == "run" ? finish(command(std::move(arguments)))
                                      : test::run(command(std::move(arguments)));
  }
  test::Finished finish(const test::Command& run) const {
    const test::Finished finished = test::run(run);
    if (!has_daemon_) wait_until_unserved();
    return finished;
  }
  bool is_served(const char* workspace = "results") const {
    return LockFile::is_held(folder_.path() / workspace / "tearless.lock");
  }
  void wait_until_unserved(const char* workspace = "results") const {
    test::eventually([&] { return !is_served(workspace); });
  }
  /// Runs a command; the test fails if the command does.
  test::Finished ok(const std::vector<std::string>& arguments) const {
    const test::Finished finished = tearless(arguments);
    EXPECT_EQ(finished.code, 0) << testing::PrintToString(arguments) << finished.output << finished.errors;
    return finished;
  }

  // An interactive login shell for a terminal, which types `tearless`.
  test::Command login_shell() const {
    test::Command shell = command({});
    shell.arguments = {"/bin/bash", "--noprofile", "--login", "-i", "-O", "huponexit"};
    shell.environment["PATH"] = test::program("").string() + ":" + std::getenv("PATH");
    shell.environment["HOME"] = folder_.path().string();
    return shell;
  }

  std::vector<RunDirectory> runs() const {
    std::vector<RunDirectory> all;
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(folder_ / "results/runs", absent)) all.emplace_back(entry.path());
    std::sort(all.begin(), all.end(), [](const RunDirectory& a, const RunDirectory& b) { return a.root() < b.root(); });
    return all;
  }

  // A run that is in the middle of its updates.
  bool wait_for_a_run_in_the_middle(RunDirectory* found) const {
    return test::eventually([&] {
      for (const RunDirectory& run : runs()) {
        const bool begun =
            fs::exists(run.metrics()) && read_metrics(run, 0).lines.size() >= 4 && !fs::exists(run.done());
        if (begun && supervisor_of(run, run.newest_attempt())) {
          *found = run;
          return true;
        }
      }
      return false;
    });
  }

  // other.toml: grid.toml with other runs.
  void write_other_grid() {
    std::string other = test::read_text(folder_ / "grid.toml");
    other.replace(other.find("\"a\", \"b\""), 8, "\"c\", \"d\"");
    test::write_text(folder_ / "other.toml", other);
  }

  // Submits a grid to a daemon that trains one run at a time and has another one before it, until free_the_daemon().
  void queue(const std::string& grid) {
    has_daemon_ = true;
    test::write_text(folder_ / "blocker.toml",
                     "[set]\n\"fake.updates\" = 100000\n\"fake.sleep_ms\" = 1000\n[axis]\n\"model.kind\" = [\"z\"]\n");
    ok({"daemon", "--background", "--jobs", "1"});
    ok({"submit", "blocker.toml", "--priority", "1"});
    ok({"submit", grid});
  }
  // Nothing is left of the other one.
  void free_the_daemon() const {
    ok({"cancel", "blocker.toml"});
    EXPECT_TRUE(test::eventually([&] { return tearless({"delete", "blocker.toml", "--yes"}).code == 0; }));
  }

  // A command that runs beside the test.
  std::future<test::Finished> begin(const std::vector<std::string>& arguments) {
    return std::async(std::launch::async, [this, arguments] { return tearless(arguments); });
  }

  Workspace workspace() const { return Workspace(folder_ / "results"); }

  pid_t service_pid() const {
    const std::optional<Writer> service = last_writer(workspace());
    return service ? static_cast<pid_t>(service->process.pid) : 0;
  }
  std::string service_log() const {
    const fs::path log = folder_ / "results/service.log";
    return fs::exists(log) ? test::read_text(log) : "";
  }
  // The service, and if it is given the `tearless run` that would start another one.
  void kill_service(test::Background* run = nullptr) const {
    if (run) run->signal(SIGKILL);
    const pid_t pid = service_pid();
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); }));
    if (run) run->wait();
  }

  pid_t engine_of(const RunDirectory& run) const {
    const auto supervisor = supervisor_of(run, run.newest_begun_attempt());
    if (!supervisor) return 0;
    const std::string pid = std::to_string(supervisor->pid);
    pid_t engine = 0;
    std::ifstream("/proc/" + pid + "/task/" + pid + "/children") >> engine;
    return engine;
  }

  int64_t attempts() const {
    int64_t count = 0;
    for (const RunDirectory& run : runs()) count += run.newest_attempt();
    return count;
  }

  // The result files of all runs, by name.
  std::map<std::string, std::string> results() const {
    std::map<std::string, std::string> bytes;
    for (const RunDirectory& run : runs()) {
      const std::string id = run.root().filename().string();
      bytes[id + "/metrics"] = test::read_text(run.metrics());
      bytes[id + "/scores"] = test::read_text(run.scores());
    }
    return bytes;
  }

  // The same grid, undisturbed, in a folder of its own (and without pauses, which are not part of a run's
  // id).
  std::map<std::string, std::string> undisturbed() const {
    RunTest other;
    const std::string grid = test::read_text(folder_ / "grid.toml");
    test::write_text(other.folder_ / "grid.toml",
                     std::regex_replace(grid, std::regex("sleep_ms\" = \\d+"), "sleep_ms\" = 0"));
    EXPECT_EQ(other.tearless({"run", "grid.toml"}).code, 0);
    return other.results();
  }

  void expect_nothing_alive() const {
    for (const RunDirectory& run : runs()) EXPECT_FALSE(LockFile::is_held(run.lock())) << run.root();
  }

  void TestBody() override {}

  test::TempFolder folder_;
  bool has_daemon_ = false;
};

// For tests that start a daemon, or leave a service with work to do.
class ServedRunTest : public RunTest {
 public:
  ServedRunTest() { has_daemon_ = true; }
};

}  // namespace tearless::harness
