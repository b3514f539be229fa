// A submission keeps the input files of its runs: what happens to them while the sweep waits does no harm, and `gc`
// deletes the copies, and those of training programs, when nothing needs them any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "harness/store/kept_files.h"
#include "harness/submit/kept_data.h"
#include "harness/submit/submission.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/error_of.h"

namespace tearless::harness::kept_data_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class KeptDataTest : public ServedRunTest {
 protected:
  KeptDataTest() {
    write_files("the old bytes");
    write_grid("grid.toml", "succeed");
  }

  // What the grids read: one file by its path, two by the beginning of theirs.
  void write_files(const std::string& bytes) const {
    fs::create_directories(folder_ / "corpus");
    for (const char* name : {"corpus/train.en", "corpus/pair.a", "corpus/pair.b"}) {
      test::write_text(folder_ / name, bytes + " of " + name);
    }
  }
  void remove_files() const { fs::remove_all(folder_ / "corpus"); }

  // Two runs.
  void write_grid(const std::string& name, const std::string& behaviour, const std::string& policy = "") const {
    test::write_text(folder_ / name,
                     "[set]\ndata.train = \"corpus/train.en\"\ndata.pair = \"corpus/pair\"\n"
                     "fake.behaviour = \"" +
                         behaviour + "\"\n[axis]\nmodel.kind = [\"a\", \"b\"]\n" +
                         (policy.empty() ? "" : "[policy]\n" + policy + "\n"));
  }

  test::Finished refused(const std::vector<std::string>& arguments) const {
    test::Finished finished = tearless(arguments);
    EXPECT_EQ(finished.code, 2) << testing::PrintToString(arguments) << finished.output << finished.errors;
    return finished;
  }
  // Trains what waits, with a daemon.
  void train() const {
    ok({"daemon", "--background"});
    tearless({"wait", "all"});
    ok({"stop"});
    EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "results"); }));
  }

  Workspace workspace() const { return Workspace(folder_ / "results"); }
  std::vector<fs::path> copies() const {
    std::vector<fs::path> files;
    std::error_code absent;
    for (const auto& entry : fs::recursive_directory_iterator(workspace().data(), absent)) {
      if (!entry.is_directory()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  fs::path copy_named(const std::string& name) const {
    for (const fs::path& file : copies()) {
      if (file.filename() == name) return file;
    }
    ADD_FAILURE() << "no copy of " << name;
    return {};
  }
  std::vector<std::string> programs() const { return folders_in(workspace().programs()); }
  json gc(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--json", "gc", "all"});
    return json::parse(ok(more).output);
  }

  // The results of a grid of a workspace to which nothing happened.
  static std::map<std::string, std::string> undisturbed() {
    const KeptDataTest other;
    other.ok({"run", "grid.toml"});
    return other.results();
  }
};

// --- what waits reads the copies ------------------------------------------------------------------------------------

TEST_F(KeptDataTest, FilesThatAreEditedOrDeletedWhileASweepWaitsDoItNoHarm) {
  ok({"submit", "grid.toml"});
  ASSERT_THAT(copies(), SizeIs(3)) << "one of each file, whatever the number of runs";
  const fs::path copy = copy_named("train.en");
  EXPECT_EQ(test::read_text(copy), "the old bytes of corpus/train.en");
  EXPECT_EQ(fs::status(copy).permissions() & fs::perms::mask, static_cast<fs::perms>(0444));
  write_files("new bytes");
  train();
  EXPECT_EQ(results(), undisturbed());

  ok({"submit", "grid.toml"});
  EXPECT_THAT(copies(), SizeIs(6)) << "the new bytes are other runs";
  remove_files();
  train();
  EXPECT_THAT(runs(), SizeIs(4));
  for (const RunDirectory& run : runs()) EXPECT_TRUE(fs::exists(run.done())) << run.id();
}

TEST_F(KeptDataTest, ARunInTheForegroundReadsTheCopiesAndASecondSubmissionMakesNone) {
  ok({"run", "grid.toml"});
  const auto inode = [&] {
    struct stat info {};
    EXPECT_EQ(::stat(copy_named("pair.a").c_str(), &info), 0);
    return info.st_ino;
  };
  const auto before = inode();
  EXPECT_THAT(test::read_text(runs().at(0).local()), HasSubstr("data.pair = \"../../data/"));
  ok({"run", "grid.toml"});
  EXPECT_EQ(inode(), before);
  EXPECT_EQ(attempts(), 2);
}

TEST_F(KeptDataTest, AWorkspaceThatIsMovedTakesThemAlong) {
  ok({"submit", "grid.toml"});
  remove_files();
  fs::rename(folder_ / "results", folder_ / "moved");
  ok({"daemon", "--background", "--workspace", "moved"});
  ok({"wait", "all", "--workspace", "moved"});
  ok({"stop", "--workspace", "moved"});
  EXPECT_TRUE(test::eventually([&] { return !LockFile::is_held(folder_ / "moved"); }));
  fs::rename(folder_ / "moved", folder_ / "results");
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(KeptDataTest, WithoutKeepDataTheRunsReadTheFilesWhereTheyLie) {
  write_grid("grid.toml", "succeed", "keep_data = false");
  ok({"submit", "grid.toml"});
  EXPECT_THAT(copies(), IsEmpty());
  write_files("new bytes");
  train();
  const std::string status = ok({"status", "--sweep", "last"}).output;
  EXPECT_THAT(status, HasSubstr("2 failed"));
  EXPECT_THAT(test::read_text(runs().at(0).local()), HasSubstr("\"" + (folder_ / "corpus/train.en").string() + "\""));
}

TEST_F(KeptDataTest, AFileThatChangesBetweenTheCheckAndTheCopySubmitsNothing) {
  test::write_text(folder_ / "engine", "#!/bin/sh\n\"" + test::program("fake-engine").string() +
                                           "\" \"$@\" || exit\n[ $1 != check ] || echo more >> corpus/pair.b\n");
  fs::permissions(folder_ / "engine", fs::perms::owner_all);
  write_grid("other.toml", "succeed", "keep_data = false");
  const test::Finished submit = refused({"submit", "other.toml", "grid.toml", "--engine", "./engine"});
  EXPECT_EQ(submit.errors, "tearless: " + (folder_ / "corpus/pair.b").string() +
                               " has changed since its runs were checked; submit the grid again, or restore the "
                               "file\n");
  EXPECT_THAT(folders_in(workspace().sweeps()), IsEmpty()) << "nor the grid before it";
  for (const fs::path& copy : copies()) EXPECT_THAT(copy.filename().string(), Not(testing::StartsWith(".")));
  ok({"run", "grid.toml"});
}

// --- making copies --------------------------------------------------------------------------------------------------

// No file of this process may grow beyond a size, as long as this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST_F(KeptDataTest, ADiskWithTooLittleRoomIsSaidBeforeAnythingIsCopied) {
  const fs::path probe = folder_ / "probe";
  if (clone_file(folder_ / "grid.toml", probe)) GTEST_SKIP() << "copies take no room on this file system";
  fs::create_directories(workspace().data());
  test::write_text(folder_ / "large", "");
  fs::resize_file(folder_ / "large", uint64_t{1} << 42);
  const KeptFile large{"data/1/large", folder_ / "large", std::string(64, '0')};
  std::vector<std::string> notices;
  const FileSizeLimit limit(1 << 20);  // should a copy be begun after all, it must not fill the disk
  const std::string error = test::error_of(
      [&] { make_copies(workspace(), {large}, [&](const std::string& sentence) { notices.push_back(sentence); }); });
  EXPECT_THAT(error,
              testing::MatchesRegex("copies of the runs' data need 4096.0 GiB in .*/results/data, where .*iB are "
                                    "free; make room, or set keep_data = false in the grid's .policy.: .*"));
  EXPECT_THAT(notices, testing::ElementsAre(HasSubstr("Copying 4096.0 GiB of data to ")));
  EXPECT_THAT(copies(), IsEmpty());
}

TEST_F(KeptDataTest, AnAnswerThatIsNotAsDescribedIsRefused) {
  const std::string sum(64, 'a');
  const auto error = [&](const InputFiles& files, const std::string& local) {
    KeptData data(workspace(), "prog");
    return test::error_of([&] { data.local_text(files, local); });
  };
  EXPECT_THAT(error({{"data.x", {{"", sum}}}}, "a = 1\n"),
              AllOf(HasSubstr("`prog check`: the answer is not as docs/run_directory.md describes"),
                    HasSubstr("\"data\" names data.x, but \"local\" has no line data.x = \"PATH\"")));
  EXPECT_THAT(error({{"data.x", {{"", sum}}}}, "data.x = 1\n"), HasSubstr("has no line data.x"));
  EXPECT_THAT(error({{"data.x", {{"", sum}}}}, "data.x = \"corpus/x\"\n"), HasSubstr("the absolute path"));
  EXPECT_THAT(error({{"data.x", {{"/../../x", sum}}}}, "data.x = \"/x\"\n"), HasSubstr("the absolute path"));
  EXPECT_THAT(error({{"data.x", {{".en", "12"}}}}, "data.x = \"/x\"\n"), HasSubstr("\"12\" is no SHA-256 of /x.en"));
  KeptData data(workspace(), "prog");
  const std::string text =
      data.local_text({{"data.x", {{".en", sum}}}}, "a = 1\ndata.x = \"/c/x\"\ndata.xy = \"/c/x\"\n");
  EXPECT_THAT(text, testing::MatchesRegex("a = 1\ndata.x = \"../../data/[0-9a-f]{16}/x\"\ndata.xy = \"/c/x\"\n"));
}

TEST_F(KeptDataTest, EqualFilesOfTwoNamesAreInOneFolder) {
  KeptData data(workspace(), "prog");
  const InputFiles files = {{"data.x", {{".a", std::string(64, 'a')}, {".b", std::string(64, 'b')}}}};
  data.local_text(files, "data.x = \"/c/one\"\n");
  data.local_text(files, "data.x = \"/c/two\"\n");
  std::set<fs::path> folders;
  for (const KeptFile& file : data.files()) folders.insert(fs::path(file.copy).parent_path());
  EXPECT_THAT(data.files(), SizeIs(4));
  EXPECT_THAT(folders, SizeIs(1));
  data.local_text({{"data.x", {{".a", std::string(64, 'b')}, {".b", std::string(64, 'a')}}}}, "data.x = \"/c/one\"\n");
  EXPECT_THAT(data.files(), SizeIs(6)) << "other bytes under the same names";
  data.local_text({{"data.x", {{".b", std::string(64, 'a')}, {".c", std::string(64, 'b')}}}}, "data.x = \"/c/one\"\n");
  EXPECT_THAT(data.files(), SizeIs(8)) << "the same bytes under other names, of which one is taken";
}

// --- gc -------------------------------------------------------------------------------------------------------------

TEST_F(KeptDataTest, GcDeletesDataOfSweepsThatHaveEndedAndProgramsThatNoSweepNames) {
  ok({"run", "grid.toml"});
  write_files("new bytes");
  write_grid("other.toml", "succeed");
  ok({"submit", "other.toml"});
  ASSERT_THAT(copies(), SizeIs(6));
  for (const fs::path& copy : copies()) {
    if (copy.filename() != "train.en") continue;
    test::write_text(copy.parent_path() / ".train.en.1", "of a submission that was killed");
  }
  fs::create_directories(workspace().programs() / ".0123.1");

  const test::Finished would = ok({"gc", "all", "--dry-run"});
  EXPECT_THAT(would.output, AllOf(HasSubstr("Would free "), HasSubstr("2 data folders, "), Not(HasSubstr("1 program")),
                                  HasSubstr(" that no sweep needs\n")));
  EXPECT_THAT(copies(), SizeIs(8));
  const json freed = gc();
  EXPECT_EQ(freed.at("data"), 2);
  EXPECT_EQ(freed.at("programs"), 0);
  EXPECT_EQ(freed.at("unfinished"), 2) << "one in a folder that stays";
  EXPECT_GT(freed.at("copied_bytes"), 0);
  EXPECT_THAT(copies(), SizeIs(3)) << "those of the sweep that waits";
  EXPECT_THAT(programs(), SizeIs(1));
  remove_files();
  train();
  EXPECT_THAT(runs(), SizeIs(4));
  for (const RunDirectory& run : runs()) EXPECT_TRUE(fs::exists(run.done())) << run.id();
  ok({"verify"});

  EXPECT_EQ(gc().at("data"), 2);
  EXPECT_THAT(copies(), IsEmpty());
  EXPECT_THAT(programs(), SizeIs(1)) << "old runs may be repeated";
  ok({"verify"});
  ok({"forget", "all", "--yes"});
  EXPECT_THAT(ok({"gc"}).output, HasSubstr(": 1 program that no sweep needs\n"));
  EXPECT_THAT(programs(), IsEmpty());
  EXPECT_THAT(ok({"gc"}).output, Not(HasSubstr("that no sweep needs")));
}

TEST_F(KeptDataTest, GcKeepsTheDataOfSweepsThatArePausedAndOfRunsThatAreHeld) {
  ok({"submit", "grid.toml"});
  ok({"pause", "grid.toml"});
  EXPECT_EQ(gc().at("data"), 0);
  ok({"hold", "1"});
  ok({"cancel", "2"});
  ok({"resume", "grid.toml"});
  EXPECT_EQ(gc().at("data"), 0);
  ok({"cancel", "1"});
  EXPECT_EQ(gc().at("data"), 2);
}

TEST_F(KeptDataTest, GcLeavesCopiesAloneWhileAGridIsSubmittedOrASweepCannotBeRead) {
  ok({"run", "grid.toml"});
  {
    const LockFile submission = lock_for_submission(workspace());
    const LockFile another = lock_for_submission(workspace());
    const test::Finished gc = tearless({"gc"});
    EXPECT_EQ(gc.code, 1);
    EXPECT_THAT(gc.errors, HasSubstr("skipped: programs and data: a grid is being submitted"));
  }
  const fs::path sweep = workspace().sweep(folders_in(workspace().sweeps()).at(0)) / "sweep.json";
  const std::string text = test::read_text(sweep);
  test::write_text(sweep, "{}");
  EXPECT_EQ(tearless({"gc"}).code, 1);
  EXPECT_THAT(copies(), SizeIs(3));
  test::write_text(sweep, text);
  EXPECT_EQ(gc().at("data"), 2);
}

TEST_F(KeptDataTest, ASubmissionKeepsGcAwayFromItsFirstCopyOnUntilTheDatabaseKnowsIt) {
  Submission submission = prepare_submission(folder_ / "grid.toml", test::program("fake-engine"), {});
  keep_files(workspace(), submission, [](const std::string&) {});
  EXPECT_THAT(copies(), SizeIs(3));
  EXPECT_FALSE(lock_out_submissions(workspace()));
  write_submission(workspace(), submission);
  EXPECT_FALSE(lock_out_submissions(workspace()));
  submission.lock.reset();
  EXPECT_TRUE(lock_out_submissions(workspace()));
}

TEST_F(KeptDataTest, GcKeepsTheDataOfASubmissionThatWasKilledBeforeTheDatabaseKnewIt) {
  ok({"run", "grid.toml"});
  write_files("new bytes");
  write_grid("other.toml", "succeed");
  {
    Submission submission = prepare_submission(folder_ / "other.toml", test::program("fake-engine"), {});
    keep_files(workspace(), submission, [](const std::string&) {});
    write_submission(workspace(), submission);
  }
  fs::create_directories(workspace().sweep("killed-earlier"));  // before sweep.json was written
  EXPECT_EQ(gc().at("data"), 2) << "those of the sweep that has ended";
  EXPECT_THAT(copies(), SizeIs(3));
}

TEST_F(KeptDataTest, GcIsNotKeptAwayByARunInTheForeground) {
  std::string grid = test::read_text(folder_ / "grid.toml");
  grid.insert(grid.find("[axis]"), "fake.updates = 100000\nfake.sleep_ms = 20\n");
  test::write_text(folder_ / "grid.toml", grid);
  const test::Background run(command({"run", "grid.toml"}));
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  EXPECT_TRUE(test::eventually([&] { return tearless({"gc"}).code == 0; }));
  ok({"stop", "--now"});
}

TEST_F(KeptDataTest, ARunOfTwoSweepsReadsTheFilesOfTheOneThatIsLeft) {
  write_grid("originals.toml", "succeed", "keep_data = false");
  ok({"submit", "originals.toml"});
  ok({"submit", "grid.toml"});
  ASSERT_THAT(copies(), SizeIs(3));
  ok({"forget", "grid.toml", "--yes"});
  EXPECT_EQ(gc().at("data"), 2) << "a folder of each key";
  ASSERT_THAT(copies(), IsEmpty());
  train();
  EXPECT_EQ(results(), undisturbed());
  for (const RunDirectory& run : runs()) {
    EXPECT_THAT(test::read_text(run.local()), HasSubstr((folder_ / "corpus/train.en").string()));
  }
}

TEST_F(KeptDataTest, AfterOneIsForgottenARunReadsWhatTheNewestOfItsOtherSweepsAskedFor) {
  write_grid("older.toml", "succeed");
  write_grid("originals.toml", "succeed", "keep_data = false");
  write_grid("newer.toml", "succeed");
  ok({"submit", "older.toml"});
  ok({"submit", "originals.toml"});
  ok({"submit", "newer.toml", "--only", "model.kind=b"});
  ok({"submit", "grid.toml", "--only", "model.kind=a"});
  ok({"forget", "grid.toml", "--yes"});
  train();
  ASSERT_THAT(runs(), SizeIs(2));
  for (const RunDirectory& run : runs()) {
    const bool is_a = test::read_text(run.settings()).find("model.kind = \"a\"") != std::string::npos;
    EXPECT_THAT(test::read_text(run.local()),
                HasSubstr(is_a ? (folder_ / "corpus/train.en").string() : std::string("\"../../data/")));
  }
}

// --- afterwards -----------------------------------------------------------------------------------------------------

TEST_F(KeptDataTest, RetryCopiesAgainWhatGcHasDeletedOrSaysWhatIsMissing) {
  write_grid("grid.toml", "crash", "tries = { crashed = 1 }");
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  for (const std::string& what : {std::string("grid.toml"), std::string("failed")}) {
    EXPECT_EQ(gc().at("data"), 2);
    const fs::path file = folder_ / "corpus/train.en";
    const std::string bytes = test::read_text(file);
    fs::remove(file);
    EXPECT_THAT(refused({"retry", what}).errors,
                AllOf(HasSubstr(file.string() + " is missing, and so is the copy"),
                      HasSubstr("/train.en; restore the file and repeat this command")));
    test::write_text(file, "other bytes");
    EXPECT_THAT(refused({"retry", what}).errors, HasSubstr(file.string() + " has changed since its runs were checked"));
    EXPECT_THAT(ok({"status", "--sweep", "last"}).output, HasSubstr("2 failed"));
    test::write_text(file, bytes);
    ok({"retry", what});
    EXPECT_THAT(copies(), SizeIs(3));
    EXPECT_EQ(gc().at("data"), 0) << "it waits again";
    train();
    EXPECT_THAT(ok({"status", "--sweep", "last"}).output, HasSubstr("2 failed")) << "crashed, and found its data";
    EXPECT_THAT(ok({"log", "1"}).output, HasSubstr("index 7 out of range"));
  }
}

TEST_F(KeptDataTest, VerifyReportsWhatAWaitingSweepLacksAndASubmissionRepairsIt) {
  ok({"submit", "grid.toml"});
  const fs::path gone = copy_named("pair.a"), changed = copy_named("pair.b");
  fs::remove(gone);
  fs::permissions(changed, fs::perms::owner_all);
  test::write_text(changed, "damaged");
  const fs::path program = workspace().programs() / programs().at(0);
  fs::rename(program, folder_ / "elsewhere");
  const test::Finished verify = tearless({"verify"});
  EXPECT_EQ(verify.code, 1);
  const std::string submit = "tearless submit " + (folder_ / "grid.toml").string() + " --workspace results\n";
  const auto relative = [&](const fs::path& file) { return fs::relative(file, folder_.path()).string(); };
  EXPECT_THAT(verify.output,
              AllOf(HasSubstr(relative(gone) + ", which its runs read, is missing  →  " + submit),
                    HasSubstr(relative(changed) + ", which its runs read, is not what was copied from " +
                              (folder_ / "corpus/pair.b").string() + "  →  rm -f " + relative(changed) + "; " + submit),
                    HasSubstr("fake-engine, its training program, is missing  →  " + submit)));
  EXPECT_EQ(json::parse(tearless({"--json", "verify"}).output).at("differences").size(), 3u);
  fs::remove(changed);
  ok({"submit", "grid.toml"});
  ok({"verify"});
  train();
  EXPECT_EQ(results(), undisturbed());
}

}  // namespace
}  // namespace tearless::harness::kept_data_test
