// Stop requests before training begins, and failures of the machine: each has its exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>

#include "base/fault.h"
#include "base/lock_file.h"
#include "tests/e2e/small_training.h"
#include "tests/support/faults.h"

namespace tearless::engine_stop_test {
namespace {

namespace fs = std::filesystem;
using testing::MatchesRegex;
using Settings = std::map<std::string, std::string>;

class EngineStop : public testing::Test {
 protected:
  EngineStop() { test::write_small_corpus(folder_.path()); }

  test::Command command(std::vector<std::string> arguments, const Settings& changes = {}) const {
    Settings settings = test::small_settings();
    for (const auto& [key, value] : changes) settings[key] = value;
    if (!fs::exists(config())) test::write_text(config(), test::toml_of(settings));
    arguments.insert(arguments.begin(), test::program("tearless-engine").string());
    return {.arguments = std::move(arguments),
            .environment = {{"TEARLESS_CACHE", (folder_ / "cache").string()}},
            .folder = folder_.path()};
  }
  test::Command prepare() const { return command({"prepare", config().string()}); }
  test::Command train(const Settings& changes = {}) const {
    return command({"train", "--config", config().string()}, changes);
  }
  /// Through a shell that limits it.
  static test::Command limited(const std::string& limit, test::Command command) {
    std::string line = limit + "; exec";
    for (const std::string& argument : command.arguments) line += " '" + argument + "'";
    command.arguments = {"/bin/sh", "-c", line};
    return command;
  }
  fs::path config() const { return folder_ / "settings.toml"; }
  RunDirectory run() const {
    for (const auto& entry : fs::directory_iterator(folder_ / "runs")) return RunDirectory(entry.path());
    return RunDirectory(folder_ / "none");
  }
  /// Runs `asked` again and again; a request to stop arrives at its first call (of those kinds) that changes something
  /// outside the process, then at its second, and so on to the last.
  void expect_stop_at_every_call(test::Command asked, uint32_t kinds, const std::string& phase, int64_t at_least) {
    test::Faults faults(folder_.path());
    fault::FaultPlan& plan = faults.plan();
    asked.environment.merge(faults.environment());
    plan.kinds = kinds;
    plan.action = fault::kSignal;
    plan.error = SIGTERM;
    std::snprintf(plan.phase, sizeof plan.phase, "%s", phase.c_str());
    for (int64_t point = 1;; ++point) {
      for (const char* made : {"cache", "runs"}) fs::remove_all(folder_ / made);
      plan.first = plan.last = point;
      plan.points = plan.hits = 0;
      const int code = test::run(asked).code;
      if (plan.hits == 0) {  // it has fewer calls
        EXPECT_GT(point, at_least);
        return;
      }
      ASSERT_EQ(code, kExitStopped) << "at call " << point;
    }
  }

  test::TempFolder folder_;
};

TEST_F(EngineStop, AtAnyCallOfAPreparation) {
  expect_stop_at_every_call(prepare(), fault::kLock | fault::kMakeFolder | fault::kRename, "", /*at_least=*/4);
  EXPECT_EQ(test::run(prepare()).code, kExitDone);
}

TEST_F(EngineStop, WhenAnAttemptBegins) {
  expect_stop_at_every_call(train({{"train.max_epochs", "1"}, {"train.epoch_updates", "1"}}), fault::kPhase,
                            "preparing", /*at_least=*/1);
  EXPECT_EQ(test::read_text(run().attempt(1) / "phase"), "publishing");
}

TEST_F(EngineStop, WhileItWaitsForTheLockOfTheCache) {
  ASSERT_EQ(test::run(prepare()).code, kExitDone);
  fs::path entry;
  for (const auto& found : fs::directory_iterator(folder_ / "cache" / "prepared")) {
    if (found.is_directory()) entry = found.path();
  }
  fs::remove_all(entry);
  const LockFile held = LockFile::acquire(entry.string() + ".lock");
  const auto stop_once_it_waits = [&](const test::Command& command) {
    test::Background engine(command);
    // As /proc/locks shows who waits: "1: -> FLOCK  ADVISORY  WRITE PID …"
    const std::string waiting = "-> FLOCK  ADVISORY  WRITE " + std::to_string(engine.pid()) + " ";
    ASSERT_TRUE(test::eventually([&] { return test::read_text("/proc/locks").find(waiting) != std::string::npos; }));
    engine.signal(SIGTERM);
    EXPECT_EQ(engine.wait().code, kExitStopped);
  };
  stop_once_it_waits(prepare());
  stop_once_it_waits(train());
  EXPECT_EQ(test::read_text(run().attempt(1) / "phase"), "preparing");
  EXPECT_FALSE(fs::exists(run().metrics()));
}

#ifndef __SANITIZE_ADDRESS__  // whose own start must come first
// LibTorch's initialisers take a good part of a second; the loader says in which order it calls what.
TEST_F(EngineStop, IsHandledBeforeTheLibrariesAreInitialised) {
  test::Command asked = train();
  asked.arguments.emplace_back("--help");
  asked.environment["LD_DEBUG"] = "files";
  const std::string said = test::run(asked).errors;
  const size_t ours = said.find("calling preinit: "), torch = said.find("calling init: ");
  ASSERT_NE(torch, std::string::npos) << "this loader does not print the order";
  EXPECT_LT(ours, torch);
}

// A model that does not fit: the allocation of LibTorch fails, not the machine.
TEST_F(EngineStop, OutOfMemoryHasItsOwnExitCode) {
  const test::Finished ended =
      test::run(limited("ulimit -v 16000000",
                        train({{"model.d_model", "16384"}, {"model.d_ff", "65536"}, {"model.encoder_layers", "8"}})));
  EXPECT_EQ(ended.code, kExitOutOfMemory) << ended.errors;
  EXPECT_THAT(ended.errors, MatchesRegex("tearless-engine: out of memory[^\n]*\n"));
}
#endif

// Descriptors run out: like a full disk, not a fault of the settings.
TEST_F(EngineStop, AMachineErrorHasItsOwnExitCode) {
  for (test::Command command : {prepare(), train()}) {
    test::Faults faults(folder_.path());
    faults.fail(fault::kOpen, EMFILE, 1, 1);
    command.environment.merge(faults.environment());
    const test::Finished ended = test::run(command);
    EXPECT_EQ(ended.code, kExitMachine) << ended.errors;
    EXPECT_THAT(ended.errors, MatchesRegex("tearless-engine: cannot [^\n]*: Too many open files\n"));
  }
  EXPECT_EQ(test::run(prepare()).code, kExitDone);
}

}  // namespace
}  // namespace tearless::engine_stop_test
