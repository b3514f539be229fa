// A colleague who may read a workspace: he reads it, and can neither hold nor change it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/harness/run_fixture.h"
#include "tests/support/privileges.h"

namespace tearless::harness::other_user_test {
namespace {

using testing::HasSubstr;

class OtherUserTest : public ServedRunTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    fs::permissions(folder_.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
    fs::create_directory(folder_ / "bin");  // the folder of the build may be closed to others
    for (const char* name : {"tearless", "fake-engine"}) fs::copy_file(test::program(name), folder_ / "bin" / name);
  }

  test::Finished by_somebody_else(const std::vector<std::string>& arguments) const {
    test::Command asked = command(arguments);
    asked.arguments.front() = folder_ / "bin/tearless";
    asked.environment["TEARLESS_ENGINE"] = folder_ / "bin/fake-engine";
    const test::WithoutRoot somebody_else;
    return test::run(asked);
  }

  // Some runs have ended, one is in the middle, all kinds of locks have been taken.
  void begin_work() {
    ok({"run", "grid.toml"});
    expect_that_it_can_verify_resume();
    wait_until_unserved();
    write_grid("\"succeed\"", 60);
    write_other_grid();
    ok({"daemon", "--background", "--jobs", "1"});
    ok({"submit", "other.toml"});
    RunDirectory some("");
    ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  }

  // Its runs are over too soon to be stopped.
  void expect_that_it_can_verify_resume() const {
    EXPECT_THAT(tearless({"verify-resume", "1"}).output, HasSubstr("1 run: "));
  }

  void expect_readable(const char* when) const {
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"status"}, {"runs", "all"}, {"table", "last"}, {"verify"}}) {
      const test::Finished read = by_somebody_else(command);
      EXPECT_EQ(read.code, 0) << when << testing::PrintToString(command) << read.output << read.errors;
    }
  }
};

TEST_F(OtherUserTest, HoldsNothingThatACommandOfTheOwnerWaitsFor) {
  begin_work();
  std::vector<int> held;
  std::set<std::string> refused;
  {
    const test::WithoutRoot somebody_else;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
      if (fd < 0) {
        refused.insert(entry.path().filename().string());
      } else {
        ::flock(fd, LOCK_EX | LOCK_NB);
        held.push_back(fd);
      }
    }
  }
  EXPECT_EQ(refused, (std::set<std::string>{"lock", "tearless.lock", "programs.lock", "verifying.lock"}));
  EXPECT_GT(held.size(), 50u);
  ok({"wait"});
  ok({"stop"});
  wait_until_unserved();
  ok({"run", "grid.toml"});
  expect_that_it_can_verify_resume();
  ok({"rebuild"});
  ok({"clean"});
  ok({"submit", "grid.toml"});
  ok({"delete", "grid.toml", "--yes"});
  for (const int fd : held) ::close(fd);
}

TEST_F(OtherUserTest, ReadsBesideAServiceAndAfterIt) {
  begin_work();
  expect_readable("beside a service");
  EXPECT_THAT(ok({"status"}).output, HasSubstr("A tearless daemon works here"));
  EXPECT_THAT(by_somebody_else({"status"}).output, HasSubstr("Another tearless is writing to this workspace."));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"stop"}, {"pause"}, {"submit", "grid.toml"}, {"run", "grid.toml"}}) {
    const test::Finished refused = by_somebody_else(command);
    EXPECT_EQ(refused.code, 2) << command.front();
    EXPECT_THAT(refused.errors, testing::ContainsRegex("^tearless: [^\n]*\n$")) << command.front();
  }
  EXPECT_THAT(by_somebody_else({"stop"}).errors, HasSubstr("results is another user's, who alone can change it"));
  kill_service();
  expect_readable("after a kill");
  ok({"wait"});
  wait_until_unserved();
  expect_readable("at rest");
  ok({"verify"});
}

}  // namespace
}  // namespace tearless::harness::other_user_test
