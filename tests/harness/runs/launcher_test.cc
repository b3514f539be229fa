// When an attempt is alive, and that nothing but is_alive() decides that.
#include "harness/runs/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string>

#include "base/files.h"
#include "base/lock_file.h"
#include "base/run_directory.h"
#include "base/sealed_json.h"
#include "tests/support/paths.h"

namespace tearless::harness::launcher_test {
namespace {

namespace fs = std::filesystem;

TEST(IsAlive, WhileAProcessHoldsTheLock) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  EXPECT_FALSE(is_alive(run)) << "no attempt has begun";
  std::optional<LockFile> lock = LockFile::try_acquire(run.lock());
  EXPECT_TRUE(is_alive(run)) << "an attempt is starting";
  lock.reset();
  EXPECT_FALSE(is_alive(run)) << "its lock file stays behind";
}

TEST(IsAlive, WhileASupervisorRunsWhoseLockFileWasRemoved) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ::pause();
    ::_exit(0);
  }
  make_folders(run.attempt(1));
  test::write_text(
      run.attempt(1) / "start.json",
      sealed({{"supervisor",
               {{"pid", supervisor}, {"start_ticks", *process_start_ticks(supervisor)}, {"boot_id", boot_id()}}}}));
  EXPECT_TRUE(is_alive(run));
  make_folders(run.attempt(2));
  EXPECT_TRUE(is_alive(run)) << "an attempt without start.json has not begun";
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  EXPECT_FALSE(is_alive(run));
}

TEST(IsAlive, WhileItsNewestAttemptIsGrantedAndNotEnded) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  test::write_text(run.attempt(run.make_attempt()) / "grant.json", "{}");
  EXPECT_TRUE(is_alive(run)) << "a worker of another machine may have it";
  EXPECT_FALSE(has_process(run));
  test::write_text(run.attempt(1) / "ended.json", "{}");
  EXPECT_FALSE(is_alive(run));
  test::write_text(run.attempt(run.make_attempt()) / "grant.json", "{}");
  EXPECT_TRUE(is_alive(run));
  run.make_attempt();
  EXPECT_FALSE(is_alive(run)) << "a newer attempt makes it worthless";
}

TEST(IsAlive, NotOnceThisProcessHasSupervisedTheAttempt) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  write_start(run, run.make_attempt(), nlohmann::json::object());
  EXPECT_FALSE(is_alive(run));
}

// Another launcher then has one place to extend. The local one watches the supervisor that it finds alive.
TEST(IsAlive, IsWhatTheHarnessAsksInsteadOfARunsLock) {
  static const std::regex kOfARun(R"(is_held\((?!workspace)|->is_alive\()");
  for (const char* line : {"if (LockFile::is_held(run.lock()))", "supervisor && supervisor->is_alive()"}) {
    EXPECT_TRUE(std::regex_search(line, kOfARun)) << line;
  }
  for (const auto& entry : fs::recursive_directory_iterator(test::source_root() / "harness")) {
    const std::string name = fs::relative(entry.path(), test::source_root()).string();
    if (name == "harness/runs/launcher.cc" || name == "harness/launch/local_launcher.cc") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      EXPECT_FALSE(std::regex_search(line, kOfARun)) << name << ": " << line;
    }
  }
}

}  // namespace
}  // namespace tearless::harness::launcher_test
