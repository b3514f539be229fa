// Grants and claims: two processes never have one number.
#include "harness/grants/grant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/files.h"
#include "base/sealed_json.h"
#include "harness/runs/attempt_files.h"
#include "tests/support/paths.h"

namespace tearless::harness::grant_test {
namespace {

namespace fs = std::filesystem;

class GrantTest : public testing::Test {
 protected:
  GrantTest() {
    grant_.id = run_.id();
    grant_.attempt = run_.make_attempt();
  }

  // An attempt of a worker, with a checkpoint or without.
  int64_t work(int64_t step) const {
    const int64_t number = run_.make_attempt();
    test::write_text(run_.attempt(number) / "grant.json", "{}");
    test::write_text(run_.attempt(number) / "claimed", "n1-1\n");
    fs::create_directories(work_of(run_, number).root());
    if (step > 0) fs::create_directories(work_of(run_, number).checkpoint(step));
    return number;
  }
  // One on the service's machine.
  void train_here() const { test::write_text(run_.attempt(run_.make_attempt()) / "start.json", "{}"); }
  int64_t newest_state() const { return newest_state_before(run_, run_.newest_attempt() + 1); }

  test::TempFolder folder_;
  const std::string settings_ = "a = 1\n";
  RunDirectory run_{folder_ / run_id(settings_)};
  Grant grant_ = {.settings = settings_,
                  .local = "b = 2\n",
                  .program = {.path = "programs/1/engine",
                              .stamp = {{"version", "2"}},
                              .grace_seconds = 7,
                              .environment = SubmittedEnvironment{.names = {"A*"}, .variables = {{"AB", "c"}}}},
                  .needs = {.device = "cuda", .threads = 3},
                  .origins = {{"1234", {.done = "abcd", .bytes = {{"a/b", 7}}}}},
                  .from = 4};
};

TEST_F(GrantTest, IsReadAsItWasWritten) {
  EXPECT_FALSE(read_grant(run_, 1));
  write_grant(run_, grant_);
  const Grant read = *read_grant(run_, 1);
  EXPECT_EQ(read.id, run_.id());
  EXPECT_EQ(read.attempt, 1);
  EXPECT_EQ(read.settings, settings_);
  EXPECT_EQ(read.local, "b = 2\n");
  EXPECT_EQ(read.program.path, "programs/1/engine");
  EXPECT_EQ(read.program.stamp, grant_.program.stamp);
  EXPECT_EQ(read.program.grace_seconds, 7);
  EXPECT_EQ(read.program.environment->variables, grant_.program.environment->variables);
  EXPECT_EQ(read.program.environment->names, grant_.program.environment->names);
  EXPECT_EQ(read.needs, grant_.needs);
  EXPECT_EQ(read.origins, grant_.origins);
  EXPECT_EQ(read.from, 4);
  nlohmann::json record = read_sealed(run_.attempt(1) / "grant.json").value();
  record["needs"] = record["environment"] = nullptr;
  EXPECT_EQ(record.dump(),
            R"({"attempt":1,"environment":null,"from":4,"grace":7,"id":")" + run_.id() +
                R"(","local":"b = 2\n","needs":null,"origins":{"1234":{"bytes":{"a/b":7},"done":"abcd"}},)"
                R"("program":"programs/1/engine","settings":"a = 1\n","stamp":{"version":"2"}})");
}

TEST_F(GrantTest, OneThatIsCutDamagedOrOfAnotherRunIsNone) {
  write_grant(run_, grant_);
  const std::string whole = test::read_text(run_.attempt(1) / "grant.json");
  test::write_text(run_.attempt(1) / "grant.json", whole.substr(0, whole.size() / 2));
  EXPECT_FALSE(read_grant(run_, 1));
  grant_.settings = "a = 2\n";
  write_grant(run_, grant_);
  EXPECT_FALSE(read_grant(run_, 1)) << "its settings have another id";
  grant_.settings = settings_;
  write_grant(run_, grant_);
  make_folders(run_.attempt(2));
  fs::copy_file(run_.attempt(1) / "grant.json", run_.attempt(2) / "grant.json");
  EXPECT_FALSE(read_grant(run_, 2)) << "it was copied";
}

TEST_F(GrantTest, IsClaimedOnceAndByTheSameOneAgain) {
  EXPECT_EQ(claimant_of(run_, 1), "");
  EXPECT_TRUE(claim_grant(run_, 1, "n1-1"));
  EXPECT_EQ(claimant_of(run_, 1), "n1-1");
  EXPECT_FALSE(claim_grant(run_, 1, "n2-2"));
  EXPECT_FALSE(fs::exists(run_.attempt(1) / "claim.n2-2"));
  EXPECT_TRUE(claim_grant(run_, 1, "n1-1")) << "such as a service that was killed while it took the grant back";
}

TEST_F(GrantTest, AClaimThatIsSeenInPartIsNobodysYet) {
  test::write_text(run_.attempt(1) / "claimed", "n1-");
  EXPECT_EQ(claimant_of(run_, 1), "");
  EXPECT_FALSE(claim_grant(run_, 1, "n2-2")) << "but it is taken";
}

TEST_F(GrantTest, WhoLosesTheRaceBetweenLookAndLinkHasNot) {
  // The other one's link appears after this one has looked: as if it had not been seen.
  test::write_text(run_.attempt(1) / "claim.n2-2", "n2-2");
  fs::create_hard_link(run_.attempt(1) / "claim.n2-2", run_.attempt(1) / "claimed");
  test::write_text(run_.attempt(1) / "claimed", "");  // nor its text
  EXPECT_FALSE(claim_grant(run_, 1, "n1-1"));
}

TEST_F(GrantTest, OfManyClaimantsOneHasIt) {
  constexpr int kGrants = 60, kClaimants = 8;
  for (int i = 2; i <= kGrants; ++i) run_.make_attempt();
  std::vector<pid_t> claimants;
  for (int who = 0; who < kClaimants; ++who) {
    claimants.push_back(::fork());
    if (claimants.back() != 0) continue;
    std::ofstream won(folder_ / ("won." + std::to_string(who)));
    for (int grant = 1; grant <= kGrants; ++grant) {
      if (claim_grant(run_, grant, "w" + std::to_string(who))) won << grant << "\n" << std::flush;
    }
    ::_exit(0);
  }
  for (const pid_t pid : claimants) ::waitpid(pid, nullptr, 0);
  std::vector<int> winners(kGrants + 1);
  for (int who = 0; who < kClaimants; ++who) {
    std::ifstream won(folder_ / ("won." + std::to_string(who)));
    for (int grant = 0; won >> grant;) {
      ++winners[grant];
      EXPECT_EQ(claimant_of(run_, grant), "w" + std::to_string(who));
    }
  }
  for (int grant = 1; grant <= kGrants; ++grant) EXPECT_EQ(winners[grant], 1) << "grant " << grant;
}

TEST_F(GrantTest, TheNewestStateIsWhereTheNewestCheckpointWasMade) {
  EXPECT_EQ(newest_state(), 0) << "nobody has begun";
  work(0);
  EXPECT_EQ(newest_state(), 2) << "without checkpoints the newest folder: a program may keep its state elsewhere";
  work(9);
  work(6);
  EXPECT_EQ(newest_state(), 4) << "not the highest step: the later one knows that a checkpoint was damaged";
  work(0);
  EXPECT_EQ(newest_state(), 4);
  run_.make_attempt();
  EXPECT_EQ(newest_state(), 4) << "one that never began";
  train_here();
  EXPECT_EQ(newest_state(), 4) << "it has left no checkpoint";
  make_folders(run_.checkpoint(3));
  EXPECT_EQ(newest_state(), 0);
  work(4);
  EXPECT_EQ(newest_state(), 8);
}

TEST_F(GrantTest, AnUnfinishedWorkFolderIsNoSource) {
  test::write_text(run_.attempt(1) / "claimed", "n1-1\n");
  fs::create_directories(run_.attempt(1) / "making.n1-1" / run_.id() / "checkpoints/step-3");
  EXPECT_EQ(newest_state(), 0);
}

}  // namespace
}  // namespace tearless::harness::grant_test
