// A workspace that is stored in the repository (tests/golden/harness/workspace: a run done, one diverged, one failed)
// is read, though its database is of an earlier format, which is made again from the folders; one whose sweeps are of
// another format is refused and left as it is. If the first of these tests fails, the format of sweeps has changed:
// increase kWorkspaceFormat, and have a script rewrite what is stored.
#include "harness/store/workspace_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <functional>
#include <regex>

#include <nlohmann/json.hpp>

#include "base/sealed_json.h"
#include "harness/folders/rebuild.h"
#include "harness/folders/verify.h"
#include "harness/store/store.h"
#include "harness/store/writer.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::workspace_format_test {
namespace {

using testing::HasSubstr;

class WorkspaceFormatTest : public RunTest {
 protected:
  WorkspaceFormatTest() {
    const fs::path stored = test::source_root() / "tests/golden/harness/workspace";
    fs::copy(stored / "workspace", folder_ / "results", fs::copy_options::recursive);
    fs::copy_file(stored / "grid.toml", folder_ / "grid.toml", fs::copy_options::overwrite_existing);
    table_ = test::read_text(stored / "table.txt");
    // The stored runs are of a build that did not tell programs apart, as those of tearless-engine still are.
    ::setenv("FAKE_PROGRAM", "tearless-engine", 1);
  }
  ~WorkspaceFormatTest() override { ::unsetenv("FAKE_PROGRAM"); }

  fs::path sweep_json() const { return workspace().sweep("grid-ab617267") / "sweep.json"; }

  void expect_the_same_table_and_no_training() const {
    EXPECT_EQ(tearless({"table", "grid.toml"}).output, table_);
    EXPECT_EQ(tearless({"table", "last"}).output, table_);
    const test::Finished run = tearless({"run", "grid.toml"});
    EXPECT_THAT(run.output, HasSubstr("3 runs: 1 done, 1 diverged, 1 failed")) << run.errors;
    EXPECT_THAT(run.output, testing::Not(HasSubstr("started")));
    EXPECT_EQ(attempts(), 3);
    EXPECT_EQ(tearless({"table", "grid.toml"}).output, table_);
  }

  void expect_no_differences() const {
    for (const Difference& difference : verify(workspace()).differences) {
      ADD_FAILURE() << difference.subject << ": " << difference.what;
    }
  }

  RunDirectory run_that(const std::function<bool(const RunDirectory&)>& is_meant) const {
    const std::vector<RunDirectory> all = runs();
    return *std::ranges::find_if(all, is_meant);
  }

  // Path and bytes of each file.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(workspace().root())) {
      all[entry.path().string()] = entry.is_regular_file() ? test::read_text(entry.path()) : "";
    }
    return all;
  }

  // The workspace becomes one of another format; 0: of a build before the first format that has a number in sweep.json.
  void change_format(int of_database, int of_sweep) const {
    if (fs::exists(workspace().database())) {
      SQLite::Database(workspace().database().string(), SQLite::OPEN_READWRITE)
          .exec(fmt::format("PRAGMA user_version = {}", of_database));
    }
    nlohmann::json about = *read_sealed(sweep_json());
    about["format"] = of_sweep;
    if (of_sweep == 0) about.erase("format");
    test::write_text(sweep_json(), sealed(about));
  }

  // Each command is refused with one sentence and changes nothing.
  void expect_refused(const std::string& build, const std::vector<std::vector<std::string>>& commands) const {
    const auto before = files();
    for (const std::vector<std::string>& words : commands) {
      const test::Finished refused = tearless(words);
      EXPECT_EQ(refused.code, 2) << words.front();
      EXPECT_EQ(refused.errors, "tearless: results is a workspace of " + build +
                                    " build of tearless, and was left as it is; use that build, or begin another "
                                    "workspace: --workspace FOLDER\n")
          << words.front();
      EXPECT_EQ(refused.output, "") << words.front();
    }
    EXPECT_EQ(files(), before);
  }

  const std::vector<std::vector<std::string>> kWriters = {
      {"run", "grid.toml"}, {"submit", "grid.toml"}, {"daemon"}, {"daemon", "--background"}, {"rebuild"},
      {"verify"},           {"verify", "--repair"}};
  const std::vector<std::vector<std::string>> kReaders = {{"table", "grid.toml"},      {"status"},
                                                          {"retry", "last"},           {"clean"},
                                                          {"delete", "last", "--yes"}, {"plan", "grid.toml"}};

  std::string table_;
};

TEST_F(WorkspaceFormatTest, AStoredWorkspacePrintsItsTableAndTrainsNothing) {
  const test::Finished first = tearless({"table", "grid.toml"});
  EXPECT_EQ(first.output, table_);
  EXPECT_EQ(first.errors, "results/tearless.db is of an earlier build: rebuilt from 3 run folders\n");
  EXPECT_EQ(tearless({"table", "grid.toml"}).errors, "") << "once";
  EXPECT_TRUE(fs::exists(workspace().database().string() + ".before-rebuild"));
  expect_no_differences();
  expect_the_same_table_and_no_training();
}

TEST_F(WorkspaceFormatTest, RebuiltFromItsFoldersItPrintsTheSameTable) {
  EXPECT_TRUE(rebuild(workspace()).passed_over.empty());
  expect_no_differences();
  expect_the_same_table_and_no_training();
}

TEST_F(WorkspaceFormatTest, AWorkspaceOfAnEarlierBuildIsRefusedAndLeftAsItIs) {
  change_format(kWorkspaceFormat - 1, 0);
  expect_refused("an earlier", kWriters);
  expect_refused("an earlier", kReaders);
  fs::remove(workspace().database());
  expect_refused("an earlier", kWriters);
}

TEST_F(WorkspaceFormatTest, AWorkspaceOfALaterBuildIsRefusedAndLeftAsItIs) {
  change_format(kDatabaseFormat + 1, kWorkspaceFormat + 1);
  expect_refused("a later", kWriters);
  expect_refused("a later", kReaders);
  change_format(kDatabaseFormat + 1, kWorkspaceFormat);
  EXPECT_THAT(tearless({"table", "grid.toml"}).errors,
              HasSubstr("is of another build of tearless, or damaged (user_version 11 in place of 10); rebuild it"));
}

TEST_F(WorkspaceFormatTest, ADatabaseOfAnEarlierBuildStaysWhereTheFoldersDoNotGiveItsResults) {
  const RunDirectory done = run_that([](const RunDirectory& run) { return fs::exists(run.scores()); });
  const auto expect_kept = [&](const std::string& lost) {
    const std::string database = test::read_text(workspace().database());
    const test::Finished refused = tearless({"table", "grid.toml"});
    EXPECT_EQ(refused.code, 2) << lost;
    EXPECT_THAT(refused.errors,
                HasSubstr("is of an earlier build, and the folders do not give what it has of " + lost));
    EXPECT_EQ(test::read_text(workspace().database()), database) << lost;
  };
  const std::string scores = test::read_text(done.scores());
  test::write_text(done.scores(), std::regex_replace(scores, std::regex("[1-8]"), "9"));
  expect_kept(done.id());
  test::write_text(done.scores(), scores);
  fs::rename(done.root(), folder_ / "aside");
  expect_kept(done.id());
  fs::rename(folder_ / "aside", done.root());
  fs::rename(sweep_json(), folder_ / "aside");
  expect_kept("grid-ab617267");
  EXPECT_EQ(tearless({"rebuild"}).code, 1) << "as it is asked to: a sweep is skipped";
  fs::rename(folder_ / "aside", sweep_json());
  EXPECT_EQ(tearless({"rebuild"}).code, 0);
  expect_the_same_table_and_no_training();
}

TEST_F(WorkspaceFormatTest, OfSeveralCommandsAtOnceOneMakesADatabaseOfAnEarlierBuildAgain) {
  std::vector<std::unique_ptr<test::Background>> commands;
  for (int i = 0; i < 4; ++i) commands.push_back(std::make_unique<test::Background>(command({"table", "grid.toml"})));
  int made = 0;
  for (const auto& one : commands) {
    const test::Finished ended = one->wait();
    EXPECT_EQ(ended.output, table_) << ended.errors;
    made += ended.errors.find("rebuilt from 3 run folders") != std::string::npos;
  }
  EXPECT_EQ(made, 1);
  EXPECT_FALSE(fs::exists(workspace().database().string() + ".before-rebuild-2"));
}

TEST_F(WorkspaceFormatTest, WhileAServiceOfAnEarlierBuildWorksItsDatabaseStaysAndTheNextStepIsNamed) {
  const LockFile service = lock_for_writing(workspace(), /*is_service=*/true);
  const std::string database = test::read_text(workspace().database());
  for (const char* reader : {"status", "table"}) {
    EXPECT_EQ(
        tearless({reader}).errors,
        "tearless: a service of an earlier build works in results; to change to this one: tearless stop, then the "
        "command again\n");
  }
  EXPECT_EQ(tearless({"completion", "bash"}).code, 0) << "which needs none";
  EXPECT_EQ(test::read_text(workspace().database()), database);
}

TEST_F(WorkspaceFormatTest, ASweepThatLacksAFileIsReportedAndNotTrained) {
  EXPECT_EQ(tearless({"table", "last"}).output, table_);
  for (const char* name : {"runs.jsonl", "merged.toml"}) {
    const fs::path file = sweep_json().parent_path() / name;
    const std::string text = test::read_text(file);
    fs::remove(file);
    const test::Finished refused = tearless({"table", "last"});
    EXPECT_EQ(refused.code, 2) << name;
    EXPECT_THAT(refused.errors, HasSubstr(name));
    EXPECT_THAT(tearless({"verify"}).output, HasSubstr(name));
    test::write_text(file, text);
  }
  EXPECT_EQ(tearless({"table", "last"}).output, table_);
}

}  // namespace
}  // namespace tearless::harness::workspace_format_test
