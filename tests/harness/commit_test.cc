// The commit that a grid comes from: recorded, shown, copied; and what of it is kept from others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::commit_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GridCommitTest : public RunTest {
 protected:
  void SetUp() override {
    if (in_shell("command -v git").code != 0) GTEST_SKIP() << "git is not on PATH";
    write_grid("\"succeed\"", 0);
    test::write_text(folder_ / "code.py", "one\n");
  }

  test::Finished in_shell(const std::string& script, const std::string& folder = "") const {
    return test::run({.arguments = {"/bin/sh", "-ec", script},
                      .environment = {{"GIT_CONFIG_GLOBAL", "/dev/null"}},
                      .folder = folder_ / folder});
  }
  std::string git(const std::string& words, const std::string& folder = "") const {
    const test::Finished said = in_shell("git -c user.name=n -c user.email=e " + words, folder);
    EXPECT_EQ(said.code, 0) << words << said.errors;
    return said.output.substr(0, said.output.find_last_not_of('\n') + 1);
  }
  void make_repository() const {
    git("init -q");
    git("add grid.toml code.py");
    git("commit -qm first");
  }

  // Archives are unpacked in the test's own folder.
  std::string asked(std::vector<std::string> arguments) const {
    test::Command one = command(std::move(arguments));
    one.environment["XDG_CACHE_HOME"] = (folder_ / "cache").string();
    const test::Finished finished = test::run(one);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished.output;
  }
  std::string explained(const std::string& workspace = "results") const {
    return asked({"explain", "last", "--workspace", workspace});
  }
  json recorded(const std::string& workspace = "results") const {
    return json::parse(asked({"--json", "explain", "last", "--workspace", workspace})).at(0).at("commit");
  }
  json recorded_by_run(const std::string& grid = "grid.toml") const {
    ok({"run", grid});
    return recorded();
  }
  fs::path diff_in(const std::string& workspace = "results") const {
    const std::vector<fs::directory_entry> sweeps = entries_of(folder_ / workspace / "sweeps");
    return sweeps.size() == 1 ? sweeps[0].path() / "grid.diff" : "there is not one sweep";
  }
  std::set<std::string> names(const std::string& part) const {
    std::set<std::string> all;
    for (const auto& entry : entries_of(folder_ / "results" / part)) all.insert(entry.path().filename());
    return all;
  }
};

mode_t mode_of(const fs::path& file) {
  struct stat info {};
  EXPECT_EQ(::stat(file.c_str(), &info), 0) << file;
  return info.st_mode & 07777;
}

TEST_F(GridCommitTest, OfACleanTreeIsRecordedAndChangesNoId) {
  EXPECT_TRUE(recorded_by_run().is_null()) << "there is no repository";
  EXPECT_THAT(explained(), Not(HasSubstr("commit")));
  const std::set<std::string> runs = names("runs"), sweeps = names("sweeps");
  make_repository();
  const std::string id = git("rev-parse HEAD");
  EXPECT_EQ(recorded_by_run(), json({{"id", id}, {"tracked", true}, {"clean", true}}));
  EXPECT_THAT(explained(), HasSubstr("  at commit " + id.substr(0, 12) + ", clean\n"));
  test::write_text(folder_ / "code.py", "two\n");
  git("commit -qam second");
  EXPECT_EQ(recorded_by_run().at("id"), git("rev-parse HEAD")) << "of the newest submission";
  EXPECT_EQ(names("runs"), runs);
  EXPECT_EQ(names("sweeps"), sweeps);
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_EQ(recorded().at("id"), git("rev-parse HEAD"));
}

TEST_F(GridCommitTest, OfAChangedTreeHasADiffForItsUserAloneThatArchivesLackUnlessAskedFor) {
  make_repository();
  test::write_text(folder_ / "code.py", "secret of /home/me\n\xff\xfe\n");
  const json commit = recorded_by_run();
  EXPECT_EQ(commit.at("clean"), false);
  const std::string diff = test::read_text(diff_in());
  EXPECT_THAT(diff, AllOf(HasSubstr("-one\n+secret of /home/me\n+\xff\xfe\n"), HasSubstr("diff --git a/code.py")));
  EXPECT_EQ(commit.at("diff"), json({{"lines", std::ranges::count(diff, '\n')}, {"sha256", sha256(diff)}}));
  EXPECT_EQ(mode_of(diff_in()), 0600u);
  EXPECT_THAT(explained(), HasSubstr(", changed: 8 lines of diff in results/sweeps/"));

  ok({"copy", "whole"});
  EXPECT_EQ(test::read_text(diff_in("whole")), diff);
  EXPECT_EQ(mode_of(diff_in("whole")), 0600u);
  ok({"copy", "alone", "--results"});
  ok({"copy", "told", "--results", "--with-diff"});
  ok({"copy", "alone.tar.gz"});
  ok({"copy", "told.tar.gz", "--with-diff"});
  for (const std::string form : {"", ".tar.gz"}) {
    if (!form.empty()) in_shell("rm -r alone told; for n in alone told; do mkdir $n; tar xzf $n.tar.gz -C $n; done");
    EXPECT_FALSE(fs::exists(diff_in("alone"))) << form;
    EXPECT_EQ(test::read_text(diff_in("told")), diff) << form;
  }
  for (const char* copy : {"alone.tar.gz", "told.tar.gz"}) EXPECT_EQ(recorded(copy), commit) << copy;
  EXPECT_THAT(explained("alone.tar.gz"), HasSubstr("8 lines of diff, which are not here, SHA-256 " + sha256(diff)));
  EXPECT_THAT(explained("told.tar.gz"), HasSubstr("8 lines of diff in "));

  git("commit -qam second");
  EXPECT_EQ(recorded_by_run().at("clean"), true);
  EXPECT_FALSE(fs::exists(diff_in()));
}

// As a kill between the two files of a submission leaves it.
TEST_F(GridCommitTest, WithADiffOfAnotherSubmissionIsShownWithoutIt) {
  make_repository();
  test::write_text(folder_ / "code.py", "two\n");
  const json commit = recorded_by_run();
  test::write_text(diff_in(), "of another submission\n");
  EXPECT_THAT(explained(), HasSubstr("which are not here, SHA-256 " + commit["diff"].value("sha256", "")));
  const test::Finished refused = tearless({"copy", "told.tar.gz", "--with-diff"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("grid.diff is not there, or not as it was written; leave out --with-diff"));
  EXPECT_FALSE(fs::exists(folder_ / "told.tar.gz"));
  EXPECT_EQ(recorded_by_run(), commit) << "submitted again";
  ok({"copy", "told.tar.gz", "--with-diff"});
}

TEST_F(GridCommitTest, WithALargeDiffIsRecordedWithoutIt) {
  make_repository();
  test::write_text(folder_ / "code.py", std::string((1 << 20) + 1, 'x'));
  const json commit = recorded_by_run();
  EXPECT_EQ(commit.at("clean"), false);
  EXPECT_FALSE(commit.contains("diff"));
  EXPECT_FALSE(fs::exists(diff_in()));
  EXPECT_THAT(explained(), HasSubstr(", changed: the diff is larger than 1 MiB and was not kept\n"));
}

TEST_F(GridCommitTest, IsThatOfTheInnermostRepositoryWithACommitThatDoesNotIgnoreTheFile) {
  const std::string grid = test::read_text(folder_ / "grid.toml");
  const auto in = [&](const std::string& folder) {
    fs::create_directories(folder_ / folder);
    test::write_text(folder_ / folder / "grid.toml", grid + "# in " + folder + "\n");
    return recorded_by_run(folder + "/grid.toml");
  };
  make_repository();
  const std::string id = git("rev-parse HEAD");
  test::write_text(folder_ / ".gitignore", "ignored\n");
  EXPECT_EQ(in("untracked"), json({{"id", id}, {"tracked", false}, {"clean", true}}));
  EXPECT_THAT(explained(), HasSubstr(", clean; the grid file is untracked\n"));
  EXPECT_TRUE(in("ignored/deep").is_null());
  git("init -q new");
  EXPECT_TRUE(in("new").is_null()) << "a repository without a commit";
  git("init -q --bare bare");
  EXPECT_TRUE(in("bare").is_null());
  git("worktree add -q tree");
  EXPECT_EQ(in("tree").value("id", ""), id);
  git("-c protocol.file.allow=always submodule --quiet add ./. module");
  EXPECT_EQ(in("module").value("id", ""), id);
  fs::create_symlink("../grid.toml", folder_ / "ignored/link.toml");
  EXPECT_EQ(recorded_by_run("ignored/link.toml").value("tracked", false), true) << "the file that is meant";
}

TEST_F(GridCommitTest, IsReadWithoutRunningWhatTheRepositoryNamesAndWithoutChangingIt) {
  make_repository();
  const std::string ran = "touch '" + (folder_ / "ran").string() + "'; cat";
  test::write_text(folder_ / "hook", "#!/bin/sh\n" + ran + "\n");
  fs::permissions(folder_ / "hook", fs::perms::owner_all);
  test::write_text(folder_ / ".gitattributes", "code.py filter=a=b diff=mine\n");
  const std::string hook = (folder_ / "hook").string();
  for (const char* key : {"filter.a=b.clean", "filter.a=b.process", "core.fsmonitor", "diff.external",
                          "diff.mine.command", "diff.mine.textconv"}) {
    git(fmt::format("config '{}' \"{}\"", key, hook));
  }
  fs::create_directory(folder_ / ".git/hooks");
  fs::copy_file(folder_ / "hook", folder_ / ".git/hooks/post-index-change");
  fs::last_write_time(folder_ / "grid.toml", fs::file_time_type::clock::now() + std::chrono::hours(1));
  test::write_text(folder_ / "code.py", "two\n");
  const std::string index = test::read_text(folder_ / ".git/index");
  EXPECT_EQ(recorded_by_run().at("clean"), false);
  EXPECT_THAT(test::read_text(diff_in()), AllOf(HasSubstr("+two\n"), Not(HasSubstr("grid.toml"))));
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
  EXPECT_EQ(test::read_text(folder_ / ".git/index"), index);
  in_shell("git diff HEAD || true");
  EXPECT_TRUE(fs::exists(folder_ / "ran")) << "the test shows nothing";
}

TEST_F(GridCommitTest, OfARepositoryOfAnotherOwnerIsNotRecorded) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  make_repository();
  ASSERT_EQ(::chown((folder_ / ".git").c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chown(folder_.path().c_str(), 65534, 65534), 0);
  EXPECT_TRUE(recorded_by_run().is_null());
}

TEST_F(GridCommitTest, IsNotWaitedForWhereGitHangsOrIsMissing) {
  make_repository();
  fs::create_directory(folder_ / "bin");
  test::Command run = command({"run", "grid.toml"});
  run.environment["PATH"] = (folder_ / "bin").string();
  EXPECT_EQ(finish(run).code, 0);
  EXPECT_TRUE(recorded().is_null());
  test::write_text(folder_ / "bin/git", "#!/bin/sh\necho $$ >> " + (folder_ / "pids").string() + "\n/bin/sleep 1000\n");
  fs::permissions(folder_ / "bin/git", fs::perms::owner_all);
  const test::Finished finished = finish(run);
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_TRUE(recorded().is_null());
  const std::string pids = test::read_text(folder_ / "pids");
  EXPECT_EQ(std::ranges::count(pids, '\n'), 1);
  EXPECT_TRUE(test::eventually([&] { return ::kill(-std::stoi(pids), 0) != 0; })) << "something is left of it";
}

}  // namespace
}  // namespace tearless::harness::commit_test
