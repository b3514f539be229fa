// A workspace that the first version left (tests/golden/harness/workspace_v1: a run done, one diverged, one failed;
// database of schema 1, records without checksums): all of it is still valid.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/store/rebuild.h"
#include "harness/store/store.h"
#include "harness/store/verify.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::old_version_test {
namespace {

using testing::HasSubstr;

class OldVersionTest : public RunTest {
 protected:
  OldVersionTest() {
    const fs::path old = test::source_root() / "tests/golden/harness/workspace_v1";
    fs::copy(old / "workspace", folder_ / "results", fs::copy_options::recursive);
    fs::copy_file(old / "grid.toml", folder_ / "grid.toml", fs::copy_options::overwrite_existing);
    table_ = test::read_text(old / "table.txt");  // as the first version printed it
  }

  void expect_the_same_table_and_no_training() const {
    EXPECT_EQ(tearless({"table", "grid.toml"}).output, table_);
    const test::Finished run = tearless({"run", "grid.toml"});
    EXPECT_THAT(run.output, HasSubstr("3 runs: 1 done, 1 diverged, 1 failed")) << run.errors;
    EXPECT_THAT(run.output, testing::Not(HasSubstr("started")));
    EXPECT_EQ(attempts(), 3);
    EXPECT_EQ(tearless({"table", "grid.toml"}).output, table_);
  }

  // All rows of all views that the database has, in the columns of the first version.
  std::string content() const {
    SQLite::Database database((folder_ / "results/tearless.db").string(), SQLite::OPEN_READONLY);
    std::string text;
    for (const char* view :
         {"(SELECT id, state, class, reason, step, updates, parameters, memory_bytes, changed_at, attempts, "
          "canonical FROM runs_view)",
          "metrics_view", "scores_view", "(SELECT id, title, grid_file, submitted_at, runs FROM sweeps_view)",
          "sweep_runs_view",
          "(SELECT run, attempt, outcome, reason, code, signal, started_at, ended_at, host, device, "
          "processor, version, numerics, measured FROM attempts_view)"}) {
      SQLite::Statement row(database, std::string("SELECT * FROM ") + view);
      int64_t rows = 0;
      while (row.executeStep()) {
        ++rows;
        for (int i = 0; i < row.getColumnCount(); ++i) text += row.getColumn(i).getString() + "|";
        text += "\n";
      }
      EXPECT_GT(rows, 0) << view;
    }
    return text;
  }

  std::string table_;
};

TEST_F(OldVersionTest, ReadersSayThatTheNextRunMigratesIt) {
  const test::Finished table = tearless({"table", "grid.toml"});
  EXPECT_EQ(table.code, 2);
  EXPECT_THAT(table.errors, HasSubstr("the next `tearless run` brings it up to date"));
}

TEST_F(OldVersionTest, TheMigrationKeepsEveryRow) {
  const std::string before = content();
  Store::open_writer(Workspace(folder_ / "results"));
  EXPECT_EQ(content(), before);
}

TEST_F(OldVersionTest, MigratedItPrintsTheSameTableAndTrainsNothing) {
  Store::open_writer(Workspace(folder_ / "results"));
  expect_the_same_table_and_no_training();
}

TEST_F(OldVersionTest, ASweepOfWhichTheProgramIsNotKnownIsRefused) {
  Store::open_writer(Workspace(folder_ / "results"));
  for (const char* verb : {"resume", "retry"}) {
    const test::Finished refused = tearless({verb, "last"});
    EXPECT_EQ(refused.code, 2) << verb;
    EXPECT_THAT(refused.errors, HasSubstr("submit its grid again: tearless submit ")) << verb;
  }
}

TEST_F(OldVersionTest, ASweepOfWhichTheGridIsNotFrozenIsRefusedUntilItIsSubmittedAgain) {
  Store::open_writer(Workspace(folder_ / "results"));
  for (const char* command : {"table", "explain"}) {
    const test::Finished refused = tearless({command, "--sweep", "last"});
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_THAT(refused.errors, HasSubstr("has no grid.json: an older tearless submitted it"));
  }
  EXPECT_THAT(tearless({"status", "--sweep", "last"}).output, HasSubstr("1 done, 1 diverged, 1 failed"));
  tearless({"run", "grid.toml"});
  EXPECT_EQ(tearless({"table", "--sweep", "last"}).output, table_);
}

// The first version sealed nothing: a number can be checked against the folder only.
TEST_F(OldVersionTest, AScoreThatDiffersFromItsFolderIsNotPrinted) {
  SQLite::Database((folder_ / "results/tearless.db").string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE scores SET value = value + 1 WHERE name = 'test.score'");
  Store::open_writer(Workspace(folder_ / "results"));
  const test::Finished table = tearless({"table", "grid.toml"});
  EXPECT_EQ(table.code, 2);
  EXPECT_THAT(table.errors, HasSubstr("the database and its scores.json hold different scores"));
  EXPECT_EQ(tearless({"verify", "--repair"}).code, 0);
  EXPECT_EQ(tearless({"table", "grid.toml"}).output, table_);
}

TEST_F(OldVersionTest, RebuiltFromItsFoldersItPrintsTheSameTable) {
  EXPECT_TRUE(rebuild(Workspace(folder_ / "results")).passed_over.empty());
  expect_the_same_table_and_no_training();
}

TEST_F(OldVersionTest, MigratedOrRebuiltItPassesVerify) {
  const Workspace workspace(folder_ / "results");
  Store::open_writer(workspace);
  for (const bool rebuilt : {false, true}) {
    if (rebuilt) rebuild(workspace);
    for (const Difference& difference : verify(workspace).differences) {
      ADD_FAILURE() << difference.subject << ": " << difference.what;
    }
  }
}

}  // namespace
}  // namespace tearless::harness::old_version_test
