// The work folder of a worker's attempt, and the publication of what the attempt leaves in it.
#include "harness/grants/work_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"
#include "harness/grants/publication.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/launcher.h"
#include "harness/runs/verdict.h"
#include "tests/support/faults.h"
#include "tests/support/paths.h"

namespace tearless::harness::work_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

uint64_t inode_of(const fs::path& file) {
  struct stat info {};
  ::stat(file.c_str(), &info);
  return info.st_ino;
}

// Name → bytes of all files below a folder, links left out.
std::map<std::string, std::string> files_below(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      files[entry.path().lexically_relative(folder)] = test::read_text(entry.path());
    }
  }
  return files;
}

class WorkFolderTest : public testing::Test {
 protected:
  WorkFolderTest() {
    make_folders(run_.root());
    test::write_text(run_.settings(), settings_);
  }

  Grant grant() const {
    return {.id = run_.id(),
            .attempt = run_.make_attempt(),
            .settings = settings_,
            .local = "threads = 1\n",
            .program = {.path = "engine", .stamp = nlohmann::json::object()},
            .needs = {}};
  }
  RunDirectory make(const Grant& grant) const {
    EXPECT_TRUE(claim_grant(run_, grant.attempt, "n1-1"));
    return make_work_folder(workspace_, grant, "n1-1", folder_ / "node" / std::to_string(grant.attempt));
  }
  // As a program that ends its run: results, a checkpoint, DONE.
  void finish(const RunDirectory& work) const {
    make_folders(work.checkpoint(12));
    make_folders(work.outputs());
    test::write_text(work.checkpoint(12) / "state.bin", "state");
    test::write_text(work.metrics(), "metrics\n");
    test::write_text(work.scores(), R"({"test.bleu": 20})");
    test::write_text(work.outputs() / "test.hyp", "a b\n");
    test::write_text(work.outputs() / "lock", "the name of an output");
    write_done(work, "done", 12, "max_updates", {"scores.json", "metrics.jsonl", "outputs/test.hyp"});
  }

  test::TempFolder folder_;
  Workspace workspace_{folder_ / "results"};
  const std::string settings_ = "a = 1\n";
  RunDirectory run_ = workspace_.run(run_id(settings_));
};

TEST_F(WorkFolderTest, IsARunDirectoryWhoseAttemptIsTheRuns) {
  run_.make_attempt();
  const RunDirectory work = make(grant());
  EXPECT_EQ(work.root(), run_.attempt(2) / "work.n1-1" / run_.id());
  EXPECT_EQ(work.id(), run_.id());
  EXPECT_EQ(work.newest_attempt(), 2);
  EXPECT_EQ(test::read_text(work.settings()), settings_);
  EXPECT_EQ(test::read_text(work.local()), "threads = 1\n");
  write_start(work, 2, nlohmann::json::object());
  EXPECT_TRUE(fs::exists(run_.attempt(2) / "start.json")) << "where log, explain and verdicts look";
  EXPECT_FALSE(fs::exists(run_.attempt(2) / "making.n1-1"));
}

TEST_F(WorkFolderTest, ItsLockIsOnADiskOfTheMachine) {
  make_folders(folder_ / "node");
  const RunDirectory work = make(grant());
  EXPECT_FALSE(has_process(work));
  const std::optional<LockFile> lock = LockFile::try_acquire(work.lock());
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->is_of(folder_ / "node/1"));
  EXPECT_TRUE(has_process(work));
  EXPECT_FALSE(has_process(run_)) << "the run's own lock is free";
}

TEST_F(WorkFolderTest, NoTwoWorkersHaveOnePathEvenWhereNumbersBeginAgain) {
  const Grant lost = grant();
  const RunDirectory old = make(lost);
  remove_recursively(run_.root());  // `rm -r`, while a lost worker lives
  make_folders(run_.root());
  Grant next = grant();
  ASSERT_EQ(next.attempt, 1);
  ASSERT_TRUE(claim_grant(run_, 1, "n2-2"));
  const RunDirectory work = make_work_folder(workspace_, next, "n2-2", folder_ / "lock");
  EXPECT_FALSE(fs::exists(old.root())) << "whatever the lost one writes fails";
  EXPECT_THROW(write_atomically(old.done(), "{}"), UserError);
  EXPECT_EQ(folder_of(run_, 1).root(), work.root());
}

TEST_F(WorkFolderTest, EachRunOfAChainOfDerivationsIsBeside) {
  Grant of = grant();
  for (const char* id : {"1111", "2222"}) {
    make_folders(workspace_.run(id).root());
    test::write_text(workspace_.run(id).done(), "done");
    of.origins[id] = {};
  }
  const RunDirectory work = make(of);
  for (const char* id : {"1111", "2222"}) EXPECT_EQ(test::read_text(work.root().parent_path() / id / "DONE"), "done");
}

TEST_F(WorkFolderTest, RelativePathsOfLocalTomlBecomeAbsolute) {
  test::write_text(folder_ / "results/runs/corpus.txt", "text");
  const std::string text = "data = \"../corpus.txt\"\nname = \"corpus.txt\"\nthreads = 2\nwhere = \"/etc/hosts\"\n";
  const std::string absolute = (folder_ / "results/runs/corpus.txt").string();
  EXPECT_EQ(absolute_paths_in(text, run_.root()),
            "data = \"" + absolute + "\"\nname = \"corpus.txt\"\nthreads = 2\nwhere = \"/etc/hosts\"\n");
  EXPECT_EQ(absolute_paths_in("# as it was\nthreads = 2", run_.root()), "# as it was\nthreads = 2");
}

TEST_F(WorkFolderTest, TakesTheStateAndNotWhatIsAnAttemptsOwn) {
  const RunDirectory before = make(grant());
  for (const char* name :
       {"metrics.jsonl", "own/state", "DONE", "scores.json.tmp4711", "own/x.tmp12", "x.tmp", "lock2"}) {
    make_folders((before.root() / name).parent_path());
    test::write_text(before.root() / name, name);
  }
  make_folders(before.checkpoint(3));
  make_folders(before.checkpoint(6));
  make_folders(before.checkpoints() / "tmp-9");
  test::write_text(before.checkpoint(3) / "state.bin", "3");
  test::write_text(before.checkpoint(6) / "state.bin", "6");
  test::write_text(before.checkpoint(6) / "manifest.json", sealed({{"step", 6}}));
  fs::create_directory_symlink("/etc", before.root() / "a link");
  const auto then = fs::file_time_type::clock::now() - std::chrono::hours(5);
  fs::last_write_time(before.metrics(), then);
  Grant next = grant();
  next.from = 1;
  const RunDirectory work = make(next);
  EXPECT_THAT(names_in(work.root()), UnorderedElementsAre("metrics.jsonl", "own", "x.tmp", "lock2", "checkpoints",
                                                          "run.toml", "local.toml", "lock", "attempts"));
  EXPECT_THAT(names_in(work.root() / "own"), ElementsAre("state"));
  EXPECT_THAT(names_in(work.attempts()), ElementsAre("2"));
  EXPECT_THAT(names_in(work.checkpoints()), UnorderedElementsAre("step-3", "step-6"));
  EXPECT_EQ(test::read_text(work.checkpoint(3) / "state.bin"), "3");
  EXPECT_NE(inode_of(work.checkpoint(3) / "state.bin"), inode_of(before.checkpoint(3) / "state.bin"))
      << "who does not seal his checkpoints may change them";
  EXPECT_EQ(inode_of(work.checkpoint(6) / "state.bin"), inode_of(before.checkpoint(6) / "state.bin"));
  EXPECT_EQ(work_done(work).reported_ns, work_done(before).reported_ns) << "by which lost work is told";
}

TEST_F(WorkFolderTest, StateThatComesHomeReplacesWhatIsThere) {
  const RunDirectory work = make(grant());
  make_folders(work.checkpoint(6));
  test::write_text(work.checkpoint(6) / "state.bin", "new");
  test::write_text(work.metrics(), "long");
  make_folders(run_.checkpoint(6));
  make_folders(run_.checkpoint(3));
  test::write_text(run_.checkpoint(6) / "rest", "of a copy that was killed");
  test::write_text(run_.metrics(), "");
  for (int times = 0; times < 2; ++times) copy_state(work, run_);
  EXPECT_THAT(names_in(run_.checkpoint(6)), ElementsAre("state.bin"));
  EXPECT_EQ(test::read_text(run_.metrics()), "long");
  EXPECT_EQ(test::read_text(run_.settings()), settings_);
  EXPECT_THAT(names_in(run_.attempts()), ElementsAre("1"));
}

// --- publication

TEST_F(WorkFolderTest, PublishingTwiceChangesNothing) {
  make_folders(run_.checkpoint(3));  // of an attempt here
  test::write_text(run_.metrics(), "older");
  const RunDirectory work = make(grant());
  remove_recursively(work.checkpoint(3));
  finish(work);
  test::write_text(work.root() / "of a foreign program", "x");
  ASSERT_TRUE(publish(run_, 1));
  auto published = files_below(run_.root());
  std::erase_if(published, [](const auto& file) { return file.first.starts_with("attempts/"); });
  auto made = files_below(work.root());
  made.erase("local.toml");
  EXPECT_EQ(published, made);
  EXPECT_EQ(inode_of(run_.done()), inode_of(work.done()));
  EXPECT_FALSE(fs::exists(run_.checkpoint(3))) << "the program has pruned it";
  ASSERT_TRUE(publish(run_, 1));
  auto again = files_below(run_.root());
  std::erase_if(again, [](const auto& file) { return file.first.starts_with("attempts/"); });
  EXPECT_EQ(again, made);
}

TEST_F(WorkFolderTest, OnlyTheNewestAttemptIsPublished) {
  finish(make(grant()));
  run_.make_attempt();
  EXPECT_FALSE(publish(run_, 1));
  EXPECT_FALSE(fs::exists(run_.done()));
  EXPECT_FALSE(publish(run_, 2)) << "it has no folder yet";
}

TEST_F(WorkFolderTest, AResultWhoseFilesAreNotSeenWholeIsNotPublished) {
  const RunDirectory work = make(grant());
  EXPECT_FALSE(publish(run_, 1));
  finish(work);
  test::write_text(work.metrics(), "metr");
  EXPECT_FALSE(publish(run_, 1));
  EXPECT_THAT(names_in(run_.root()), UnorderedElementsAre("attempts", "run.toml"));
}

TEST_F(WorkFolderTest, WhereLinksFailFilesAreCopied) {
  test::write_text(folder_ / "from", "bytes");
  test::Faults faults(folder_.path());
  faults.fail(fault::kRename, EPERM, 1, 1);  // the link; what follows is a rename
  const pid_t child = ::fork();
  if (child == 0) {
    faults.begin_here();
    put_file(folder_ / "from", folder_ / "to", /*link=*/true);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(faults.hits(), 1);
  EXPECT_EQ(test::read_text(folder_ / "to"), "bytes");
  EXPECT_NE(inode_of(folder_ / "to"), inode_of(folder_ / "from"));
}

// At each point the process is killed, and the next one publishes again. The first round counts them.
TEST_F(WorkFolderTest, DoneComesLastAndAKillAnywhereIsMadeGood) {
  int64_t points = 0;
  for (int64_t kill_at = 0; kill_at <= points; ++kill_at) {
    const test::TempFolder folder;
    const Workspace workspace(folder / "results");
    const RunDirectory run = workspace.run(run_.id());
    make_folders(run.root());
    test::write_text(run.settings(), settings_);
    Grant one = grant();
    one.attempt = run.make_attempt();
    write_grant(run, one);
    ASSERT_TRUE(claim_grant(run, 1, "n1-1"));
    const RunDirectory work = make_work_folder(workspace, one, "n1-1", folder / "lock");
    finish(work);
    test::Faults faults(folder.path());
    if (kill_at > 0) faults.kill_at(kill_at, fault::kCallingProcess);
    const pid_t child = ::fork();
    if (child == 0) {
      faults.begin_here();
      publish(run, 1);
      end_grant(run, 1);
      clear_old_work(run, 0);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    points = std::max(points, faults.points());
    EXPECT_TRUE(!fs::exists(run.done()) || verdict_of_done(run)->state == RunState::kDone) << kill_at;
    EXPECT_TRUE(!fs::exists(run.attempt(1) / "ended.json") || fs::exists(run.done())) << kill_at;
    if (is_granted(run)) {
      EXPECT_TRUE(publish(run, 1)) << kill_at;
      end_grant(run, 1);
    }
    clear_old_work(run, 0);
    EXPECT_EQ(verdict_of_done(run)->state, RunState::kDone) << kill_at;
    for (const auto& entry : fs::directory_iterator(run.attempt(1))) EXPECT_FALSE(entry.is_directory()) << kill_at;
    EXPECT_EQ(test::read_text(run.checkpoint(12) / "state.bin"), "state") << kill_at;
  }
  EXPECT_GT(points, 20);
}

TEST_F(WorkFolderTest, IfAPowerCutLeavesTheNameOfDoneItLeavesThoseOfTheResult) {
  const auto run_in = [&](const fs::path& root) { return Workspace(root / "results").run(run_.id()); };
  int64_t done = 0;
  const auto before = [&](const fs::path& root) {
    const RunDirectory run = run_in(root);
    for (const fs::path& older : {run.checkpoint(3), run.outputs()}) make_folders(older);  // else making them syncs all
    test::write_text(run.settings(), settings_);
    Grant one = grant();
    one.attempt = run.make_attempt();
    write_grant(run, one);
    claim_grant(run, 1, "n1-1");
    finish(make_work_folder(Workspace(root / "results"), one, "n1-1", root / "lock"));
  };
  const int64_t points = test::at_each_power_cut(
      {before, [&](const fs::path& root) { publish(run_in(root), 1); }, fs::path("results/runs") / run_.id() / "DONE"},
      [&](const fs::path& left, int64_t point) {
        const std::optional<Verdict> verdict = verdict_of_done(run_in(left));
        if (!verdict) return;
        ++done;
        EXPECT_EQ(verdict->state, RunState::kDone) << point << verdict->reason;
        EXPECT_EQ(files_below(run_in(left).outputs()), files_below(work_of(run_in(left), 1).outputs())) << point;
        EXPECT_EQ(test::read_text(run_in(left).checkpoint(12) / "state.bin"), "state") << point;
      });
  EXPECT_GT(points, 15);
  EXPECT_GE(done, 2) << "after the last point, and where the name alone is there";
}

TEST_F(WorkFolderTest, OldFoldersGoOnceNothingNeedsThem) {
  for (int i = 0; i < 3; ++i) make(grant());
  end_grant(run_, 1);
  end_grant(run_, 3, FailureClass::kLost, "silence");
  clear_old_work(run_, 3);
  EXPECT_FALSE(fs::exists(run_.attempt(1) / "work.n1-1"));
  EXPECT_TRUE(fs::exists(run_.attempt(2) / "work.n1-1")) << "it has not ended";
  EXPECT_TRUE(fs::exists(run_.attempt(3) / "work.n1-1")) << "the next attempt continues from it";
  EXPECT_EQ(grant_end_of(run_, 3).failure, FailureClass::kLost);
  EXPECT_EQ(grant_end_of(run_, 3).reason, "silence");
  end_grant(run_, 2);
  test::write_text(run_.done(), "{}");
  clear_old_work(run_, 0);
  EXPECT_FALSE(fs::exists(run_.attempt(2) / "work.n1-1"));
  EXPECT_FALSE(fs::exists(run_.attempt(3) / "work.n1-1"));
}

}  // namespace
}  // namespace tearless::harness::work_folder_test
