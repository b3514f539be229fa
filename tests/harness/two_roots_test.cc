// A workspace whose folders are on a network disk: its index is elsewhere, belongs to it and to one machine, and can be
// lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/sealed_json.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::two_roots_test {
namespace {

using testing::HasSubstr;

class TwoRootsTest : public RunTest {
 protected:
  test::Finished there(std::vector<std::string> arguments, const char* state = "state", bool waits = true) const {
    test::Command apart = command(std::move(arguments));
    apart.environment["TEARLESS_NETWORK_DISKS"] = (folder_ / "results").string();
    apart.environment["XDG_STATE_HOME"] = (folder_ / state).string();
    const test::Finished finished = test::run(apart);
    if (waits) test::eventually([&] { return !LockFile::is_held(index() / "tearless.lock"); });
    return finished;
  }
  fs::path index() const {
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(folder_ / "state/tearless", absent)) return entry.path();
    return folder_ / "none";
  }
  void expect_refused(const std::string& sentence) const {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"run", "grid.toml"},
                                                                                         {"submit", "grid.toml"},
                                                                                         {"status"},
                                                                                         {"table", "grid.toml"},
                                                                                         {"rebuild"},
                                                                                         {"verify"}}) {
      const test::Finished refused = there(command);
      EXPECT_EQ(refused.code, 2) << command.front();
      EXPECT_THAT(refused.errors, HasSubstr(sentence)) << command.front();
    }
  }
};

TEST_F(TwoRootsTest, ItsIndexIsInTheStateFolderAndIsRebuiltWhenItIsLost) {
  const test::Finished run = there({"run", "grid.toml"});
  ASSERT_EQ(run.code, 0) << run.errors;
  EXPECT_FALSE(fs::exists(folder_ / "results/tearless.db"));
  EXPECT_TRUE(fs::exists(index() / "tearless.db"));
  EXPECT_EQ(results(), undisturbed());
  const std::string table = there({"table", "grid.toml"}).output;
  EXPECT_EQ(there({"verify"}).code, 0);
  fs::remove_all(folder_ / "state");
  EXPECT_THAT(there({"table", "grid.toml"}).errors,
              HasSubstr("rebuild it from them: tearless rebuild --workspace results"));
  EXPECT_THAT(there({"run", "grid.toml"}).errors, HasSubstr("was missing: rebuilt from 4 run folders"));
  EXPECT_EQ(there({"table", "grid.toml"}).output, table);
  EXPECT_EQ(attempts(), 4);
}

TEST_F(TwoRootsTest, AResultThatWasChangedInItsFolderIsRefused) {
  ASSERT_EQ(there({"run", "grid.toml"}).code, 0);
  test::write_text(runs().at(0).scores(), "{}");
  EXPECT_THAT(there({"table", "grid.toml"}).errors, HasSubstr("scores.json is not what the run had written"));
}

TEST_F(TwoRootsTest, AnotherMachineThatUsesItIsNamedAndCanBeReplaced) {
  ASSERT_EQ(there({"run", "grid.toml"}).code, 0);
  const fs::path claim = folder_ / "results/index.json";
  nlohmann::json record = *read_sealed(claim);
  record["machine"] = "elsewhere";
  test::write_text(claim, sealed(record));
  expect_refused("results is used from the machine elsewhere, which has its index");
  fs::remove(claim);
  expect_refused(index().string() + " is the index of another workspace");
  fs::remove_all(index());
  EXPECT_EQ(there({"run", "grid.toml"}).code, 0);
  EXPECT_EQ(attempts(), 4);
}

TEST_F(TwoRootsTest, TheIndexOfAWorkspaceThatWasMovedAwayIsNotTakenForThatOfItsSuccessor) {
  ASSERT_EQ(there({"run", "grid.toml"}).code, 0);
  fs::rename(folder_ / "results", folder_ / "moved");
  fs::create_directories(folder_ / "results");
  expect_refused("is the index of another workspace, which was at results before");
}

TEST_F(TwoRootsTest, AnIndexBesideTheFoldersIsThatOfTheMachineWhoseDiskItIs) {
  ASSERT_EQ(tearless({"run", "grid.toml"}).code, 0);
  expect_refused("results/tearless.db is the index of the machine whose disk that is");
}

TEST_F(TwoRootsTest, ADamagedClaimIsNamed) {
  ASSERT_EQ(there({"run", "grid.toml"}).code, 0);
  test::write_text(folder_ / "results/index.json", "{\"machine\": 7");
  expect_refused("results/index.json is damaged; delete it");
}

TEST_F(TwoRootsTest, WithoutALocalDiskForTheIndexNothingIsBegun) {
  const test::Finished refused = there({"run", "grid.toml"}, "results/state");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("set XDG_STATE_HOME to a folder on a local disk"));
  EXPECT_FALSE(fs::exists(folder_ / "results/runs"));
}

TEST_F(TwoRootsTest, TheIndexOfARunningServiceIsFoundWhateverStateFolderACommandHas) {
  const auto with = [&](std::vector<std::string> arguments, const std::map<std::string, std::string>& places) {
    test::Command apart = command(std::move(arguments));
    apart.environment["TEARLESS_NETWORK_DISKS"] = (folder_ / "results").string();
    apart.environment.insert(places.begin(), places.end());
    return test::run(apart);
  };
  const std::map<std::string, std::string> ours = {{"XDG_STATE_HOME", (folder_ / "state").string()}};
  ASSERT_EQ(with({"daemon", "--background"}, ours).code, 0);
  for (const auto& places : {std::map<std::string, std::string>{{"XDG_STATE_HOME", (folder_ / "other").string()}},
                             {{"HOME", (folder_ / "home").string()}}}) {
    EXPECT_THAT(with({"status"}, places).output + with({"daemon", "--background"}, places).output,
                HasSubstr("A tearless daemon (process "));
    EXPECT_EQ(with({"submit", "grid.toml"}, places).code, 0);
    EXPECT_FALSE(fs::exists(folder_ / "other") || fs::exists(folder_ / "home"));
  }
  EXPECT_THAT(with({"stop", "--wait"}, {{"XDG_STATE_HOME", (folder_ / "other").string()}}).output,
              testing::EndsWith("It has ended.\n"));
  EXPECT_FALSE(LockFile::is_held(index() / "tearless.lock"));
  fs::rename(folder_ / "state", folder_ / "lost");
  there({"run", "grid.toml"}, "fresh");
  EXPECT_TRUE(fs::exists(folder_ / "fresh/tearless")) << "a claimed index that is gone is not waited for";
  EXPECT_EQ(results(), undisturbed());
}

// --- two services ----------------------------------------------------------------------------------------------------

class TakeOverTest : public TwoRootsTest {
 protected:
  fs::path claim() const { return folder_ / "results/index.json"; }
  // As a service of another machine does that has taken the workspace over.
  void give_to(const std::string& machine) const {
    nlohmann::json record = *read_sealed(claim());
    record["machine"] = machine;
    record["id"] = "of " + machine;
    test::write_text(claim(), sealed(record));
  }
  bool says(const std::string& sentence) const { return service_log().find(sentence) != std::string::npos; }
  // A daemon that is training.
  pid_t begin_to_train() {
    write_grid("\"succeed\"", 300);
    EXPECT_EQ(there({"daemon", "--background"}, "state", /*waits=*/false).code, 0);
    EXPECT_EQ(there({"submit", "grid.toml"}, "state", /*waits=*/false).code, 0);
    RunDirectory run(folder_.path());
    EXPECT_TRUE(wait_for_a_run_in_the_middle(&run));
    return static_cast<pid_t>(supervisor_of(run, run.newest_attempt())->pid);
  }
};

TEST_F(TakeOverTest, AServiceWhoseWorkspaceWasTakenOverEndsWithItsRunsAndChangesNothing) {
  const pid_t supervisor = begin_to_train();
  give_to("elsewhere");
  EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(index() / "tearless.lock"); }));
  const std::string sentence =
      "results was taken over by a service on elsewhere; the runs of this machine were killed, and continue there from "
      "their last checkpoints";
  EXPECT_TRUE(test::eventually([&] { return says(sentence); })) << service_log();
  EXPECT_TRUE(test::eventually([&] { return ::kill(supervisor, 0) != 0; }));
  EXPECT_EQ(read_sealed(claim())->at("machine"), "elsewhere");

  const test::Finished back = there({"daemon", "--take-over", "--background"}, "state", /*waits=*/false);
  EXPECT_EQ(back.code, 0) << back.errors;
  EXPECT_THAT(back.errors, HasSubstr("looks for 15 seconds whether a service on elsewhere works in results"));
  EXPECT_EQ(there({"run", "grid.toml"}, "state", /*waits=*/false).code, 0);
  EXPECT_EQ(there({"stop", "--wait"}, "state", /*waits=*/false).code, 0);
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(TakeOverTest, AClaimThatIsDeletedByHandIsATakeOver) {
  begin_to_train();
  fs::remove(claim());
  EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(index() / "tearless.lock"); }));
  EXPECT_TRUE(test::eventually([&] { return says("results was taken over; the runs"); })) << service_log();
}

TEST_F(TakeOverTest, AServiceThatLivesIsNotReplaced) {
  ASSERT_EQ(there({"run", "grid.toml"}).code, 0);
  give_to("elsewhere");
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    for (int beat = 100; !is_over; ++beat) {
      test::write_text(folder_ / "results/index.beat", std::to_string(beat));
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  });
  const test::Finished refused = there({"daemon", "--take-over"});
  is_over = true;
  other.join();
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("results is in use by a service on elsewhere; stop it there: tearless stop "));
  EXPECT_EQ(read_sealed(claim())->at("machine"), "elsewhere");
  expect_refused(
      "or to use it from here, stop that service and take it over: tearless daemon --take-over "
      "--workspace results");
}

TEST_F(TakeOverTest, AServiceRaisesTheNumberByWhichOthersSeeThatItLives) {
  begin_to_train();
  const std::string before = test::read_text(folder_ / "results/index.beat");
  EXPECT_TRUE(test::eventually([&] { return test::read_text(folder_ / "results/index.beat") != before; }));
  EXPECT_EQ(there({"stop", "--now", "--wait"}, "state", /*waits=*/false).code, 0);
}

TEST_F(TakeOverTest, OnALocalDiskThereIsNothingToTakeOver) {
  const test::Finished refused = tearless({"daemon", "--take-over"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("results is on a disk of this machine, where no other one can have its index"));
}

}  // namespace
}  // namespace tearless::harness::two_roots_test
