// What a service says over its socket, and to whom.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/harness/run_fixture.h"
#include "tests/support/connection.h"
#include "tests/support/privileges.h"

namespace tearless::harness::socket_test {
namespace {

using nlohmann::json;

class SocketTest : public ServedRunTest {
 protected:
  SocketTest() {
    fs::create_directories(runtime());
    fs::permissions(runtime(), fs::perms::owner_all);
    ::setenv("XDG_RUNTIME_DIR", runtime().c_str(), 1);
  }
  ~SocketTest() override {
    fs::permissions(runtime(), fs::perms::owner_all);  // or it is not looked for there
    tearless({"stop", "--now"});
    test::eventually([&] { return !LockFile::is_held(folder_ / "results/tearless.lock"); });
    runtime_before_ ? ::setenv("XDG_RUNTIME_DIR", runtime_before_->c_str(), 1) : ::unsetenv("XDG_RUNTIME_DIR");
  }

  fs::path runtime() const { return folder_ / "runtime"; }
  fs::path socket() const {
    for (const auto& entry : fs::directory_iterator(runtime())) return entry.path();
    return runtime() / "none";
  }
  // What it answers, until it closes the connection.
  std::string ask(const std::string& request) const {
    test::Connection connection(socket());
    connection.send(request + "\n");
    return connection.hear();
  }

 private:
  std::optional<std::string> runtime_before_ =
      std::getenv("XDG_RUNTIME_DIR") ? std::optional<std::string>(std::getenv("XDG_RUNTIME_DIR")) : std::nullopt;
};

TEST_F(SocketTest, AnotherUserIsNotHeardWhateverTheModeOfTheSocket) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ok({"daemon", "--background"});
  for (const fs::path& way : {folder_.path(), runtime(), socket()}) fs::permissions(way, fs::perms::all);
  {
    const test::WithoutRoot somebody_else;
    EXPECT_EQ(ask("{\"request\": \"status\"}"), "");
    EXPECT_EQ(ask("{\"request\": \"stop\"}"), "");
  }
  EXPECT_EQ(json::parse(ask("{\"request\": \"status\"}")).at("stays"), true) << "it was not stopped";
}

TEST_F(SocketTest, AServiceIsFoundWhateverRuntimeFolderACommandHas) {
  ok({"daemon", "--background"});
  fs::create_directories(folder_ / "elsewhere");
  fs::permissions(folder_ / "elsewhere", fs::perms::owner_all);
  ::setenv("XDG_RUNTIME_DIR", (folder_ / "elsewhere").c_str(), 1);
  EXPECT_THAT(ok({"status"}).output, testing::HasSubstr("A tearless daemon works here (process "));
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(json::parse(ask("{\"request\": \"status\"}")).at("stays"), true) << "they started no other one";
  EXPECT_THAT(ok({"stop"}).output, testing::HasSubstr(" ends; "));
  wait_until_unserved();
  EXPECT_THAT(ok({"stop"}).output, testing::StartsWith("Nothing to stop"));
}

TEST_F(SocketTest, AStopThatReachesNobodySaysWhoHoldsTheWorkspace) {
  for (const bool is_service : {false, true}) {
    const LockFile held = lock_for_writing(workspace(), is_service);
    const test::Finished stop = tearless({"stop"});
    EXPECT_EQ(stop.code, 2);
    EXPECT_THAT(stop.errors, testing::HasSubstr(is_service ? "takes no requests; results/service.log may say why"
                                                           : "a rebuild or repair of results is under way"));
  }
}

TEST_F(SocketTest, ACopyOfAWorkspaceHasNotItsService) {
  ok({"daemon", "--background"});
  fs::copy(folder_ / "results", folder_ / "copy", fs::copy_options::recursive);
  EXPECT_THAT(ok({"--workspace", "copy", "stop"}).output, testing::StartsWith("Nothing to stop"));
  EXPECT_EQ(json::parse(ask("{\"request\": \"status\"}")).at("stays"), true) << "it was not stopped";
}

// The program reports six updates and then nothing more, so that its speed does not change any more.
TEST_F(SocketTest, UpdatesAreCountedOnceHoweverOftenTheirGridIsSubmitted) {
  write_grid("\"stall\"", 300);
  fs::copy(folder_ / "grid.toml", folder_ / "other.toml");
  ok({"daemon", "--background", "--jobs", "1"});
  ok({"submit", "grid.toml"});
  const auto sweeps = [&] { return json::parse(ask("{\"request\": \"status\"}")).at("sweeps"); };
  ASSERT_TRUE(test::eventually([&] {
    const json sweep = sweeps().at(0);
    return sweep.at("attempts").size() == 1 && sweep.at("attempts")[0].at("step") == 6;
  }));
  const json once = sweeps().at(0);
  EXPECT_EQ(once.at("total"), 4);
  EXPECT_EQ(once.at("waiting"), 3);
  EXPECT_EQ(once.at("running"), 1);
  // A slow machine may look first when all six updates are reported, and then knows no speed.
  if (const double speed = once.at("attempts")[0].at("updates_per_second"); speed > 0) {
    EXPECT_NEAR(once.at("seconds_left").get<double>() * speed, 4 * 12 - 6, 1e-6);
  }

  for (const char* grid : {"grid.toml", "other.toml", "other.toml", "grid.toml"}) {
    ok({"submit", grid});
    for (const json& sweep : sweeps()) {
      for (const char* count : {"total", "waiting", "running", "seconds_left"}) {
        EXPECT_EQ(sweep.at(count), once.at(count)) << sweep.at("id") << " " << count << ", after " << grid;
      }
    }
  }
  EXPECT_EQ(sweeps().size(), 2u);
}

// Far more than the kernel keeps for a client that does not read.
TEST_F(SocketTest, AnAnswerThatIsBeingSentIsWaitedForWhenTheServiceEnds) {
  ok({"daemon", "--background"});
  json request = {{"request", "why"}, {"runs", json::array()}};
  for (int i = 0; i < 100'000; ++i) request["runs"].push_back(fmt::format("{:016x}", i));
  test::Connection slow(socket());
  ASSERT_TRUE(slow.send(request.dump() + "\n"));
  EXPECT_TRUE(test::eventually([&] { return slow.is_answering(); }));
  EXPECT_THAT(ok({"stop"}).output, testing::HasSubstr(" ends; "));
  EXPECT_EQ(json::parse(slow.hear()).at("why").size(), 100'000u);
  wait_until_unserved();
}

TEST_F(SocketTest, AServiceThatIsStoppedIsNamedAtOnceAndNotWaitedFor) {
  ok({"daemon", "--background"});
  const pid_t pid = service_pid();
  ::kill(pid, SIGSTOP);
  ASSERT_TRUE(test::eventually([&] { return last_writer(workspace())->process.is_stopped(); }));
  const std::string sentence = fmt::format(
      "the tearless that works in results (process {}) is stopped, as by Ctrl-Z; to continue it: kill -CONT {}", pid,
      pid);
  EXPECT_THAT(ok({"status"}).output, testing::HasSubstr(sentence)) << "what is recorded is shown all the same";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"submit", "grid.toml"}, {"stop"}}) {
    const test::Finished refused = tearless(command);
    EXPECT_EQ(refused.code, 2) << command.front();
    EXPECT_EQ(refused.errors, "tearless: " + sentence + "\n") << command.front();
  }
  ::kill(pid, SIGCONT);
  EXPECT_THAT(ok({"stop", "--wait"}).output, testing::EndsWith("It has ended.\n"));
}

}  // namespace
}  // namespace tearless::harness::socket_test
