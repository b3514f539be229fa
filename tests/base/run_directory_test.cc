// The records that both programs read and write, and what damage to them does.
#include "base/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::run_directory_test {
namespace {

using test::TempFolder;
using test::write_text;

TEST(RunId, IsTheBeginningOfTheTextsHash) { EXPECT_EQ(run_id("abc"), "ba7816bf8f01cfea"); }

TEST(RunDirectory, CountsAttemptsDespiteGapsAndOtherFiles) {
  const TempFolder folder;
  const RunDirectory run(folder / "run");
  EXPECT_EQ(run.newest_attempt(), 0);
  EXPECT_EQ(run.make_attempt(), 1);
  EXPECT_EQ(run.make_attempt(), 2);
  make_folders(run.attempt(9));
  make_folders(run.attempts() / "12.old");
  make_folders(run.attempts() / "notes");
  EXPECT_EQ(run.newest_attempt(), 9);
  EXPECT_EQ(run.make_attempt(), 10);
}

TEST(RunDirectory, ListsOnlyCheckpointsSortedByStep) {
  const TempFolder folder;
  const RunDirectory run(folder / "run");
  EXPECT_EQ(run.checkpoint_steps(), std::vector<int64_t>());
  EXPECT_EQ(run.newest_checkpoint(), 0);
  for (const char* name : {"step-100", "step-20", "step-3", "step-007", "step-", "step-5.old", "tmp-400", "400"}) {
    make_folders(run.checkpoints() / name);
  }
  EXPECT_EQ(run.checkpoint_steps(), (std::vector<int64_t>{3, 20, 100}));
  EXPECT_EQ(run.newest_checkpoint(), 100);
  EXPECT_EQ(run.checkpoint(20), run.checkpoints() / "step-20");
}

TEST(RunDirectory, OfRelativePathsHasTheIdOfItsFolder) {
  const TempFolder folder;
  make_folders(folder / "run" / "outputs");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "run");
  for (const char* path : {".", "./", "../run", "../run/", "outputs/.."})
    EXPECT_EQ(RunDirectory(path).id(), "run") << path;
  std::filesystem::current_path(before);
}

TEST(Done, IsAbsentBeforeItIsWritten) {
  const TempFolder folder;
  EXPECT_EQ(read_done(RunDirectory(folder.path())), std::nullopt);
}

TEST(Done, RecordsOutcomeAndResultFiles) {
  const TempFolder folder;
  const RunDirectory run(folder.path());
  write_text(run.scores(), "{}");
  make_folders(run.outputs());
  write_text(run.outputs() / "test.hyp", "a\n");
  write_done(run, "diverged", 1200, "loss", {"scores.json", "outputs/test.hyp"});
  const auto done = read_done(run);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->outcome, "diverged");
  EXPECT_EQ(done->step, 1200);
  EXPECT_EQ(done->reason, "loss");
  EXPECT_EQ(done->files.at("scores.json"), sha256("{}"));
  EXPECT_EQ(changed_result_file(run, *done), "");
}

TEST(Done, NoticesAChangedAndALostResultFile) {
  const TempFolder folder;
  const RunDirectory run(folder.path());
  write_text(run.scores(), "{}");
  write_text(run.metrics(), "");
  write_done(run, "done", 1, "max_epochs", {"metrics.jsonl", "scores.json"});
  write_text(run.scores(), "{\"test.bleu\": 99}");
  EXPECT_EQ(changed_result_file(run, *read_done(run)), "scores.json");
  std::filesystem::remove(run.metrics());
  EXPECT_EQ(changed_result_file(run, *read_done(run)), "metrics.jsonl");
}

TEST(Done, NamesOnlyRegularFilesOfItsOwnFolder) {
  const TempFolder folder;
  const RunDirectory run(folder / "run");
  make_folders(run.root());
  write_text(run.scores(), "{}");
  write_text(folder / "outside", "{}");
  for (const char* name : {"../outside", "/dev/zero", "outputs/../../outside", "."}) {
    Done done{.id = "", .outcome = "done", .step = 1, .reason = "", .files = {{name, sha256("{}")}}};
    EXPECT_EQ(changed_result_file(run, done), name);
  }
}

TEST(Done, TruncatedAnywhereIsReportedAsDamaged) {
  const TempFolder folder;
  const RunDirectory run(folder.path());
  write_text(run.scores(), "{}");
  write_done(run, "done", 1, "max_epochs", {"scores.json"});
  const std::string whole = test::read_text(run.done());
  for (size_t length = 0; length + 1 < whole.size(); ++length) {  // (the last byte is a line end)
    write_text(run.done(), whole.substr(0, length));
    EXPECT_THROW(read_done(run), UserError) << length << " bytes";
  }
  for (const char* text : {"[]", "3", "{}", R"({"outcome": 3, "step": 1, "reason": "", "files": {}})",
                           R"({"outcome": "done", "step": "x", "reason": "", "files": {}})"}) {
    write_text(run.done(), text);
    EXPECT_THROW(read_done(run), UserError) << text;
  }
}

TEST(Done, OfAStepThatIsNoNumberOfUpdatesSaysWhatToDo) {
  const TempFolder folder;
  const RunDirectory run(folder.path());
  const auto with_step = [&](const std::string& step) {
    write_text(run.done(), R"({"outcome": "done", "reason": "", "files": {}, "step": )" + step + "}");
  };
  for (const char* step :
       {"-7", "18446744073709551615", "9223372036854775808", "9007199254740993", "1.5", "\"x\"", "null"}) {
    with_step(step);
    EXPECT_THAT(test::error_of([&] { read_done(run); }),
                testing::HasSubstr(std::string("DONE: \"step\" is ") + step +
                                   "; it must be a whole number from 0 to 2^53. Correct the training program"));
  }
  with_step("9007199254740992");
  EXPECT_EQ(read_done(run)->step, int64_t{1} << 53);
}

TEST(Processes, AreIdentifiedByTheirStartTime) {
  const auto mine = process_start_ticks(::getpid());
  ASSERT_TRUE(mine);
  EXPECT_EQ(process_start_ticks(::getpid()), mine);
  EXPECT_GE(*mine, *process_start_ticks(1));
  EXPECT_EQ(boot_id().size(), 36u);
}

TEST(Processes, ThatHaveEndedHaveNoStartTime) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(process_start_ticks(child), std::nullopt);
}

TEST(Processes, OfAnotherBootAreNotAlive) {
  ProcessName self = ProcessName::own();
  EXPECT_TRUE(self.is_alive());
  self.boot_id = "another boot";
  EXPECT_FALSE(self.is_alive());
}

// A lock file that was removed lets nobody else in while its supervisor lives; a supervisor of an earlier boot does not
// live, whatever has its pid now.
TEST(Claim, IsRefusedForALiveSupervisorOfThisBootAlone) {
  const TempFolder folder;
  const RunDirectory run(folder / "run");
  make_folders(run.attempt(1));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  for (const std::string& boot : {std::string("another boot"), boot_id()}) {
    write_text(
        run.attempt(1) / "start.json",
        sealed({{"supervisor", {{"pid", child}, {"start_ticks", *process_start_ticks(child)}, {"boot_id", boot}}}}));
    EXPECT_EQ(claim(run).has_value(), boot != boot_id()) << boot;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(claim(run)) << "it has ended";
}

}  // namespace
}  // namespace tearless::run_directory_test
