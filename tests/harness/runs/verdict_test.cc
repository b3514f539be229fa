// Who ended an attempt and what failed: every signal, code and cause against what the rules say of it.
#include "harness/runs/verdict.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "base/sealed_json.h"
#include "tests/support/paths.h"

namespace tearless::harness::verdict_test {
namespace {

namespace fs = std::filesystem;

class VerdictTest : public testing::Test {
 protected:
  VerdictTest() { make_run(run_, text_); }

  static void make_run(const RunDirectory& run, const std::string& text) {
    make_folders(run.root());
    test::write_text(run.settings(), text);
    write_start(run, run.make_attempt(), {{"device", "cpu"}});
  }

  void write_exit(const nlohmann::json& exit, const std::string& phase = "", const std::string& log = "") const {
    test::write_text(run_.attempt(1) / "exit.json", sealed(exit));
    test::write_text(run_.attempt(1) / "log.txt", log);
    test::write_text(run_.attempt(1) / "phase", phase);
  }
  FailureClass class_of(const nlohmann::json& exit, const std::string& phase = "") const {
    write_exit(exit, phase);
    return verdict_of(run_, 1).failure;
  }
  void publish(const RunDirectory& run, const std::string& scores) const {
    test::write_text(run.scores(), scores);
    write_done(run, "done", 5, "max_updates", {"scores.json"});
  }

  test::TempFolder folder_;
  std::string text_ = "n = 1\n", other_text_ = "n = 2\n";
  RunDirectory run_{folder_.path() / run_id(text_)}, other_{folder_.path() / run_id(other_text_)};
};

TEST_F(VerdictTest, EverySignalInEveryPhaseAskedOrNotHasOneClass) {
  for (const char* phase : {"", "preparing", "training", "evaluating", "publishing"}) {
    for (int signal = 1; signal < 32; ++signal) {
      const auto exit = [&](const char* asked, int memory_kills) {
        return nlohmann::json{
            {"code", 128 + signal}, {"signal", signal}, {"asked", asked}, {"memory_kills", memory_kills}};
      };
      bool own_fault = true;
      for (const int outside :
           {SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGXCPU, SIGPWR}) {
        own_fault &= signal != outside;
      }
      EXPECT_EQ(class_of(exit("", 0), phase), own_fault ? FailureClass::kCrashed : FailureClass::kKilled) << signal;
      EXPECT_EQ(class_of(exit("stop", 0), phase), FailureClass::kStopped) << signal;
      EXPECT_EQ(class_of(exit("stall", 0), phase), FailureClass::kStalled) << signal;
      // The kernel's out-of-memory killer sends only SIGKILL: another signal has another cause.
      const FailureClass with_kills = signal == SIGKILL ? FailureClass::kOutOfMemory
                                      : own_fault       ? FailureClass::kCrashed
                                                        : FailureClass::kKilled;
      EXPECT_EQ(class_of(exit("", 1), phase), with_kills) << signal;
    }
  }
}

TEST_F(VerdictTest, EveryExitCodeHasOneClass) {
  for (int code = 0; code < 256; ++code) {
    const FailureClass expected = code == 2    ? FailureClass::kSettings
                                  : code == 4  ? FailureClass::kOutOfMemory
                                  : code == 66 ? FailureClass::kData
                                  : code == 74 ? FailureClass::kMachine
                                  : code == 75 ? FailureClass::kStopped
                                               : FailureClass::kCrashed;
    const nlohmann::json exit = {{"code", code}, {"signal", 0}};
    EXPECT_EQ(class_of(exit), expected) << code;
    nlohmann::json asked = exit, full = exit;
    asked["asked"] = "stop";
    full["disk_full"] = 1;
    EXPECT_EQ(class_of(asked), FailureClass::kStopped) << code;
    EXPECT_EQ(class_of(full), expected == FailureClass::kCrashed ? FailureClass::kMachine : expected) << code;
  }
}

TEST_F(VerdictTest, NamesSenderSignalPhaseAndLastLogLine) {
  write_exit({{"code", 137}, {"signal", 9}}, "evaluating", "first\nthe last line\n");
  EXPECT_EQ(verdict_of(run_, 1).reason, "from outside; killed by signal 9 (Killed) while evaluating: the last line");
  write_exit({{"code", 0}, {"signal", 0}});
  EXPECT_EQ(verdict_of(run_, 1).reason, "exit code 0 without DONE");
  write_exit({{"code", 1}, {"signal", 0}, {"disk_full", 1}}, "", "cannot write\n");
  EXPECT_EQ(verdict_of(run_, 1).reason, "exit code 1; the disk is full: cannot write");
}

TEST_F(VerdictTest, WithoutExitJsonTheAttemptIsLost) {
  EXPECT_EQ(verdict_of(run_, 1).failure, FailureClass::kLost);
  test::write_text(run_.attempt(1) / "exit.json", "{\"code\": 0, \"sig");
  EXPECT_EQ(verdict_of(run_, 1).failure, FailureClass::kLost);
}

TEST_F(VerdictTest, AFolderThatWasCopiedOntoAnotherRunsNameIsNotItsResult) {
  publish(run_, R"({"test.bleu": 20})");
  ASSERT_EQ(verdict_of_done(run_)->state, RunState::kDone);
  fs::copy(run_.root(), other_.root(), fs::copy_options::recursive);
  EXPECT_EQ(verdict_of_done(other_)->state, RunState::kFailed);
  EXPECT_NE(verdict_of_done(other_)->reason.find(run_.id()), std::string::npos);
}

TEST_F(VerdictTest, AnOldFolderWithoutAnIdIsCheckedByItsSettings) {
  publish(run_, R"({"test.bleu": 20})");
  const Done done = *read_done(run_);
  const nlohmann::json old = {{"outcome", "done"}, {"step", 5}, {"reason", ""}, {"files", done.files}};
  test::write_text(run_.done(), old.dump());
  EXPECT_EQ(verdict_of_done(run_)->state, RunState::kDone);
  fs::copy(run_.root(), other_.root(), fs::copy_options::recursive);
  EXPECT_EQ(verdict_of_done(other_)->state, RunState::kFailed);
}

TEST_F(VerdictTest, ResultsOfAnotherRunBesideTheRightSettingsAreRefused) {
  publish(run_, R"({"test.bleu": 20})");
  make_run(other_, other_text_);
  for (const char* file : {"DONE", "scores.json"}) fs::copy_file(run_.root() / file, other_.root() / file);
  EXPECT_EQ(verdict_of_done(other_)->state, RunState::kFailed);
}

TEST_F(VerdictTest, AnUnknownOutcomeOrScoresWithoutAChecksumAreNoResult) {
  test::write_text(run_.scores(), "{}");
  write_done(run_, "finished", 5, "", {"scores.json"});
  EXPECT_EQ(verdict_of_done(run_)->state, RunState::kFailed);
  write_done(run_, "done", 5, "", {});
  EXPECT_EQ(verdict_of_done(run_)->state, RunState::kFailed);
}

TEST_F(VerdictTest, ScoresWithAKeyTwiceOrWithoutANumberAreNoResult) {
  for (const char* text : {R"({"test.bleu": 20, "test.bleu": 21})", R"({"test.bleu": "20"})"}) {
    publish(run_, text);
    const std::optional<Verdict> verdict = verdict_of_done(run_);
    EXPECT_EQ(verdict->failure, FailureClass::kSettings);
    EXPECT_NE(verdict->reason.find(run_.scores().string() + " has \"test.bleu\""), std::string::npos)
        << verdict->reason;
  }
}

// Whatever is cut or flipped, a result is the one that was written, or there is none.
TEST_F(VerdictTest, NoFlippedBitAndNoCutOfAResultGivesAnotherOne) {
  publish(run_, "{\"test.bleu\": 20.5, \"updates\": 5}\n");
  for (const fs::path& file : {run_.done(), run_.scores(), run_.settings()}) {
    const std::string whole = test::read_text(file);
    const auto expect_same_or_refused = [&](const std::string& bytes, size_t at) {
      test::write_text(file, bytes);
      const std::optional<Verdict> verdict = verdict_of_done(run_);
      ASSERT_TRUE(verdict);
      if (verdict->state == RunState::kFailed) return;
      EXPECT_EQ(verdict->state, RunState::kDone) << file << " at " << at;
      EXPECT_EQ(verdict->step, 5) << file << " at " << at;
      EXPECT_EQ(verdict->reason, "max_updates") << file << " at " << at;
      EXPECT_EQ(read_scores(run_).numbers, (std::map<std::string, double>{{"test.bleu", 20.5}, {"updates", 5}})) << at;
    };
    for (size_t length = 0; length < whole.size(); ++length) expect_same_or_refused(whole.substr(0, length), length);
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      expect_same_or_refused(flipped, bit);
    }
    test::write_text(file, whole);
  }
}

TEST_F(VerdictTest, NoFlippedBitOfAnExitGivesAnotherClass) {
  write_exit({{"code", 4}, {"signal", 0}, {"asked", ""}, {"memory_kills", 0}, {"disk_full", 0}});
  const fs::path file = run_.attempt(1) / "exit.json";
  const std::string whole = test::read_text(file);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    test::write_text(file, flipped);
    const FailureClass failure = verdict_of(run_, 1).failure;
    EXPECT_TRUE(failure == FailureClass::kOutOfMemory || failure == FailureClass::kLost)
        << bit << " " << name_of(failure);
  }
}

TEST(FailureSignature, IsTheSameForOneDefectWhereverAndWheneverItShows) {
  const auto signature = [](const char* reason) { return failure_signature(reason); };
  EXPECT_EQ(signature("exit code 1: [10:31:02] /a/0123: no such file (update 12)"),
            signature("exit code 1: [23:59:59] /b/4567: no such file (update 9999)"));
  EXPECT_NE(signature("exit code 1: no such file"), signature("exit code 1: no such device"));
  EXPECT_NE(signature("exit code 1: oops"), signature("exit code 7: oops"));
  EXPECT_NE(signature("killed by signal 11 (Segmentation fault)"), signature("killed by signal 6 (Aborted)"));
}

}  // namespace
}  // namespace tearless::harness::verdict_test
