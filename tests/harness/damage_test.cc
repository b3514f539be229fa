// Workspaces with changed bytes: a table is either printed unchanged or refused with a sentence that says what is
// wrong.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sealed_json.h"
#include "harness/cli/grid_state.h"
#include "harness/store/database.h"
#include "harness/store/rebuild.h"
#include "harness/store/verify.h"
#include "harness/table/table.h"
#include "tests/harness/run_fixture.h"

namespace tearless::harness::damage_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr uint32_t kSeed = 20260131;

// Six runs that really ran: two done, two diverged, two failed. Made once.
class DamageTest : public RunTest {
 protected:
  static void SetUpTestSuite() {
    made_ = new RunTest();
    made_->write_grid("\"succeed\", \"diverge\", \"refuse_late\"", 0);
    const std::string grid = test::read_text(made_->folder_ / "grid.toml");
    test::write_text(made_->folder_ / "grid.toml", std::regex_replace(grid, std::regex("seeds = 2"), "seeds = 1"));
    const test::Finished finished = made_->tearless({"run", "grid.toml"});
    ASSERT_THAT(finished.output, HasSubstr("6 runs: 2 done, 2 diverged, 2 failed"));
  }
  static void TearDownTestSuite() { delete made_; }

  DamageTest() : workspace_(folder_ / "results") {
    fs::copy(made_->folder_.path(), folder_.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }

  // As `tearless table grid.toml` prints it, without starting a process each time.
  class TablePrinter {
   public:
    TablePrinter(const fs::path& folder, const Workspace& workspace)
        : grid_(load_grid(folder / "grid.toml")),
          workspace_(workspace),
          plan_(plan_runs(grid_, Only(grid_, {}), Program(test::program("fake-engine")))) {}

    std::string table() const {
      const auto store = Store::open_reader(workspace_);
      const std::vector<RunResult> results = results_of(plan_, store.get(), workspace_, 1);
      std::vector<TableRun> runs;
      for (size_t i = 0; i < plan_.size(); ++i) runs.push_back({plan_[i].point, results[i]});
      return render(fill(grid_, grid_.views.front(), runs, ""), table_format("text"));
    }

   private:
    Grid grid_;
    const Workspace& workspace_;
    std::vector<PlannedRun> plan_;
  };

  // The first run in a state.
  RunDirectory run_in(RunState state) const {
    return workspace_.run(Store::open_reader(workspace_)->ids_in(state).at(0));
  }
  std::vector<Difference> differences() const { return verify(workspace_).differences; }
  // "run": "what  →  what to type"
  std::string only_difference() const {
    const std::vector<Difference> all = differences();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? "" : all[0].subject + ": " + all[0].what + "  →  " + all[0].todo;
  }
  void change_database(const std::string& sql) const {
    SQLite::Database(workspace_.database().string(), SQLite::OPEN_READWRITE).exec(sql);
  }

  static RunTest* made_;
  Workspace workspace_;
};
RunTest* DamageTest::made_ = nullptr;

// --- the database ---------------------------------------------------------------------------------------------------

class DamagedDatabase : public DamageTest {
 protected:
  DamagedDatabase() : printer_(folder_.path(), workspace_), table_(printer_.table()) {}

  // The right table, or a sentence that says what to type.
  void expect_table_or_refusal(const std::string& bytes, const std::string& what) {
    for (const char* side : {"-journal", "-wal", "-shm"}) fs::remove(workspace_.database().string() + side);
    test::write_text(workspace_.database(), bytes);
    try {
      EXPECT_EQ(printer_.table(), table_) << what;
      ++same_;
    } catch (const UserError& refused) {
      EXPECT_THAT(refused.what(), AnyOf(HasSubstr("tearless verify"), HasSubstr("tearless rebuild"))) << what;
      ++refused_;
    } catch (const std::exception& mistake) {
      ADD_FAILURE() << what << ": " << mistake.what();
    }
  }

  TablePrinter printer_;
  std::string table_;
  int same_ = 0, refused_ = 0;
};

TEST_F(DamagedDatabase, AFlippedBitNeverGivesAnotherTable) {
  const std::string sound = test::read_text(workspace_.database());
  std::vector<size_t> used;  // most of the file is empty
  for (size_t i = 0; i < sound.size(); ++i) {
    if (sound[i] != 0) used.push_back(i);
  }
  std::mt19937 random(kSeed);
  for (int i = 0; i < 1500; ++i) {
    const size_t position = i % 4 == 0 ? random() % sound.size() : used[random() % used.size()];
    const int bit = static_cast<int>(random() % 8);
    std::string flipped = sound;
    flipped[position] = static_cast<char>(flipped[position] ^ (1 << bit));
    expect_table_or_refusal(flipped, fmt::format("seed {}, bit {} of byte {}", kSeed, bit, position));
  }
  EXPECT_GT(same_, 0);
  EXPECT_GT(refused_, 0);
}

TEST_F(DamagedDatabase, AFlippedBitOfItsHeaderNeverGivesAnotherTable) {
  const std::string sound = test::read_text(workspace_.database());
  constexpr size_t kHeader = 100;                      // bytes
  for (size_t bit = 0; bit < kHeader * 8; bit += 3) {  // three is prime to eight: every bit of a byte comes up
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    expect_table_or_refusal(flipped, fmt::format("bit {} of byte {}", bit % 8, bit / 8));
  }
}

TEST_F(DamagedDatabase, CutAtAnyBlockItNeverGivesAnotherTable) {
  const std::string sound = test::read_text(workspace_.database());
  for (size_t length = 0; length < sound.size(); length += 512) {
    expect_table_or_refusal(sound.substr(0, length), fmt::format("cut at {} of {}", length, sound.size()));
  }
  EXPECT_GT(refused_, 0);
}

// --- the folders ----------------------------------------------------------------------------------------------------

// Thrown to roll back what a restore wrote.
struct TakeBack {};

class DamagedFolder : public DamageTest {
 protected:
  DamagedFolder() : store_(open_for_writing(":memory:"), std::nullopt) {}

  // What `rebuild` makes of the workspace: all views, or "" where it says that something is damaged.
  std::string restored() {
    std::string content;
    try {
      store_.in_transaction([&] {
        if (restore(store_, workspace_).passed_over.empty()) {
          for (const char* view :
               {"(SELECT id, state, class, reason, step, updates, attempts, canonical FROM runs_view)", "attempts_view",
                "metrics_view", "scores_view", "sweeps_view", "sweep_runs_view"}) {
            content += fmt::format("{}\n", nlohmann::json(store_.query(fmt::format("SELECT * FROM {}", view)).rows)
                                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
          }
        }
        throw TakeBack();
      });
    } catch (const TakeBack&) {
    }
    return content;
  }

  // Only `folder` stays of the workspace: what is changed in it does not depend on the others.
  void remove_all_but(const fs::path& remaining) {
    for (const fs::path& parent : {workspace_.runs(), workspace_.sweeps()}) {
      for (const auto& entry : fs::directory_iterator(parent)) {
        if (entry.path() != remaining) fs::remove_all(entry.path());
      }
    }
  }

  // The same content, or a sentence: of the file cut at every byte, and with a bit of every byte flipped.
  void damage(const fs::path& file) {
    ASSERT_TRUE(fs::exists(file)) << file;
    const std::string sound = test::read_text(file), expected = restored();
    ASSERT_FALSE(expected.empty());
    ASSERT_LT(sound.size(), 65536u);
    std::mt19937 random(kSeed);
    int said = 0;
    const auto try_bytes = [&](const std::string& bytes, const std::string& what) {
      test::write_text(file, bytes);
      const std::string content = restored();
      said += content.empty();
      EXPECT_TRUE(content.empty() || content == expected) << file << ": " << what << "\n" << content;
    };
    for (size_t length = 0; length < sound.size(); ++length) {
      try_bytes(sound.substr(0, length), fmt::format("cut at {}", length));
    }
    for (size_t i = 0; i < sound.size(); ++i) {
      const int bit = static_cast<int>(random() % 8);
      std::string flipped = sound;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try_bytes(flipped, fmt::format("seed {}, bit {} of byte {}", kSeed, bit, i));
    }
    test::write_text(file, sound);
    EXPECT_EQ(restored(), expected);
    EXPECT_GT(said, 0) << file;
  }

  Store store_;
};

TEST_F(DamagedFolder, AFinishedRunIsRestoredAsItWasOrSkipped) {
  const RunDirectory run = run_in(RunState::kDone);
  remove_all_but(run.root());
  for (const fs::path& file : {run.settings(), run.done(), run.scores(), run.metrics(), run.attempt(1) / "start.json",
                               run.attempt(1) / "exit.json", run.attempt(1) / "measured.json"}) {
    damage(file);
  }
}

TEST_F(DamagedFolder, ADivergedRunIsRestoredAsItWasOrSkipped) {
  const RunDirectory run = run_in(RunState::kDiverged);
  remove_all_but(run.root());
  for (const fs::path& file : {run.done(), run.metrics()}) damage(file);
}

TEST_F(DamagedFolder, AFailedRunIsRestoredAsItWasOrSkipped) {
  const RunDirectory run = run_in(RunState::kFailed);
  remove_all_but(run.root());
  for (const char* name : {"start.json", "exit.json"}) damage(run.attempt(1) / name);
}

TEST_F(DamagedFolder, ASweepIsRestoredAsItWasOrSkipped) {
  const fs::path sweep = fs::directory_iterator(workspace_.sweeps())->path();
  remove_all_but(sweep);
  for (const char* name : {"sweep.json", "grid.toml", "runs.jsonl"}) damage(sweep / name);
}

// --- verify ---------------------------------------------------------------------------------------------------------

TEST_F(DamageTest, AnIntactWorkspaceIsReportedSoAndNotChanged) {
  const auto bytes = [&] {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(workspace_.root())) {
      all += entry.path().string() + (entry.is_regular_file() ? sha256_of_file(entry.path()) : "") + "\n";
    }
    return all;
  };
  const std::string before = bytes();
  const test::Finished sound = tearless({"verify"});
  EXPECT_EQ(sound.code, 0) << sound.output << sound.errors;
  EXPECT_EQ(sound.output, "6 runs and 1 sweep: no differences\n");
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(nlohmann::json::parse(tearless({"verify", "--json"}).output).at("differences").size(), 0u);
}

TEST_F(DamageTest, EachChangeToTheDatabaseIsFoundAndRepairBringsTheSameTableBack) {
  const std::string table = tearless({"table", "grid.toml"}).output;
  const std::string id = run_in(RunState::kDone).id();
  const std::string where = " WHERE run = (SELECT number FROM runs WHERE id = '" + id + "')";
  const struct {
    std::string sql, what;
    bool table_refuses;
  } changes[] = {
      {"UPDATE scores SET value = value + 1" + where, "its entry in the database is not what was recorded", true},
      {"UPDATE runs SET step = 99 WHERE id = '" + id + "'", "its entry in the database is not what was recorded", true},
      {"UPDATE metrics SET value = 0" + where, "the database holds other metrics than metrics.jsonl", false},
      {"UPDATE attempts SET host = 'x'" + where, "the database and attempts/1 differ", false},
      {"UPDATE attempts SET arithmetic = 'x'" + where, "its entry in the database is not what was recorded", true},
      {"DELETE FROM scores" + where, "the database holds other scores than scores.json", true},
      {"UPDATE sweeps SET title = 'x'", "the database and sweep.json differ", false},
      {"UPDATE runs SET canonical = 'x' WHERE id = '" + id + "'", "its settings in the database have another id",
       false},
      {"PRAGMA foreign_keys = OFF; UPDATE runs SET id = 'ffffffffffffffff' WHERE id = '" + id + "'",
       "it is not in the database", true},
  };
  for (const auto& change : changes) {
    change_database(change.sql);
    const test::Finished found = tearless({"verify"});
    EXPECT_EQ(found.code, 1) << change.sql;
    EXPECT_THAT(found.output, HasSubstr(change.what)) << change.sql;
    const test::Finished looked = tearless({"table", "grid.toml"});
    EXPECT_EQ(looked.code, change.table_refuses ? 2 : 0) << change.sql;
    EXPECT_THAT(looked.errors, HasSubstr(change.table_refuses ? "tearless verify" : "")) << change.sql;
    fs::copy_file(made_->folder_ / "results/tearless.db", workspace_.database(), fs::copy_options::overwrite_existing);
  }
  change_database(changes[0].sql);
  const test::Finished repaired = tearless({"verify", "--repair"});
  EXPECT_EQ(repaired.code, 0) << repaired.output;
  EXPECT_THAT(repaired.output, HasSubstr("rebuilt from 6 runs and 1 sweep; the old one was moved to "));
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);  // two fail, as before
  EXPECT_EQ(tearless({"table", "grid.toml"}).output, table);
}

TEST_F(DamageTest, ADatabaseWithTornPagesIsFoundAndRebuilt) {
  const std::string table = tearless({"table", "grid.toml"}).output;
  std::string bytes = test::read_text(workspace_.database());
  std::fill(bytes.begin() + 4096, bytes.begin() + 3 * 4096, '\x55');
  test::write_text(workspace_.database(), bytes);
  EXPECT_THAT(only_difference(), testing::StartsWith("database: "));
  test::write_text(workspace_.database(), "mine, not yours");
  EXPECT_THAT(only_difference(), testing::StartsWith("database: file is not a database"));
  test::write_text(workspace_.database(), bytes);
  const test::Finished run = tearless({"run", "grid.toml"});
  EXPECT_EQ(run.code, 2) << "a writer continued with a damaged file";
  EXPECT_THAT(run.errors, HasSubstr("tearless rebuild"));
  EXPECT_EQ(tearless({"verify", "--repair"}).code, 0);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  EXPECT_EQ(tearless({"table", "grid.toml"}).output, table);
}

TEST_F(DamageTest, AChangedFolderIsNotRepairedAndTheDatabaseIsRetained) {
  const RunDirectory run = run_in(RunState::kDone);
  test::write_text(run.scores(), R"({"test.score": 99})");
  EXPECT_THAT(tearless({"table", "grid.toml"}).errors,
              HasSubstr("run " + run.id() + ": its scores.json is not what the run had written"));
  EXPECT_THAT(tearless({"diff", run.id(), run.id()}).errors, HasSubstr("tearless verify"));
  EXPECT_THAT(tearless({"explain", run.id()}).errors, HasSubstr("tearless verify"));
  const auto report = nlohmann::json::parse(tearless({"verify", "--json"}).output);
  ASSERT_EQ(report.at("differences").size(), 1u);
  const std::string what = report["differences"][0]["what"], todo = report["differences"][0]["todo"];
  EXPECT_THAT(what, HasSubstr("scores.json is not what the run had written"));
  EXPECT_THAT(todo, HasSubstr("train the run again: rm -r results/runs/" + run.id()));
  EXPECT_EQ(tearless({"verify"}).output,
            "run " + run.id() + ": " + what + "  →  " + todo + "\n6 runs and 1 sweep: 1 difference\n");
  change_database("UPDATE sweeps SET title = 'x'");  // which alone would be a reason to rebuild the database
  const std::string before = test::read_text(workspace_.database());
  const test::Finished repaired = tearless({"verify", "--repair"});
  EXPECT_EQ(repaired.code, 1);
  EXPECT_THAT(repaired.output, HasSubstr("train the run again: rm -r results/runs/" + run.id()));
  EXPECT_EQ(test::read_text(workspace_.database()), before);
}

TEST_F(DamageTest, LostAndUnknownFoldersAreNamed) {
  const RunDirectory lost = run_in(RunState::kDone);
  fs::rename(lost.root(), folder_ / "elsewhere");
  EXPECT_THAT(only_difference(), HasSubstr("run " + lost.id() + ": the database says done, but its folder is missing"));
  EXPECT_EQ(tearless({"table", "grid.toml"}).code, 0);  // checked by the database's seal alone
  fs::rename(folder_ / "elsewhere", lost.root());
  fs::create_directories(workspace_.runs() / "mine");
  EXPECT_THAT(only_difference(), HasSubstr("run mine: its folder has no run.toml"));
  fs::remove(workspace_.runs() / "mine");
  const fs::path sweep = fs::directory_iterator(workspace_.sweeps())->path();
  test::write_text(sweep / "grid.toml", "# mine\n" + test::read_text(sweep / "grid.toml"));
  EXPECT_THAT(only_difference(), HasSubstr("no longer what was submitted"));
}

TEST_F(DamageTest, ARecordThatIsDamagedIsNamed) {
  const RunDirectory run = run_in(RunState::kFailed);
  const fs::path exit = run.attempt(1) / "exit.json";
  test::write_text(exit, test::read_text(exit).substr(5));
  std::string all;
  for (const Difference& difference : differences()) all += difference.what + "\n";
  EXPECT_THAT(all, HasSubstr("attempts/1/exit.json is damaged"));
  change_database("UPDATE sweeps SET title = 'x'");
  EXPECT_THAT(tearless({"verify", "--repair"}).output, HasSubstr("rebuilt from 6 runs"))
      << "a failed run has no result that a new database could lose";
}

TEST_F(DamageTest, ADamagedCheckpointIsMovedAwayIfAnOlderOneIsIntact) {
  const RunDirectory run = run_in(RunState::kDone);
  fs::remove(run.done());
  fs::remove(workspace_.database());
  EXPECT_TRUE(rebuild(workspace_).passed_over.empty());
  EXPECT_TRUE(differences().empty());
  const int64_t newest = run.newest_checkpoint();
  const fs::path state = run.checkpoints() / ("step-" + std::to_string(newest)) / "state.bin";
  test::write_text(state, "x");
  EXPECT_THAT(only_difference(), HasSubstr("state.bin is not what was written"));
  EXPECT_EQ(tearless({"verify", "--repair"}).code, 0);
  EXPECT_LT(run.newest_checkpoint(), newest);
  EXPECT_TRUE(fs::exists(run.root() / "damaged" / ("step-" + std::to_string(newest)) / "state.bin"));
  // The beginning of metrics.jsonl, which every checkpoint builds on: there nothing older is sound.
  std::string metrics = test::read_text(run.metrics());
  metrics[30] ^= 1;
  test::write_text(run.metrics(), metrics);
  std::string all;
  for (const Difference& difference : differences()) all += difference.what + "\n";
  EXPECT_THAT(all, HasSubstr("the beginning of metrics.jsonl is not what was written, and there is no older one"));
}

TEST_F(DamageTest, RepairRefusesAWorkspaceWithAnActiveRun) {
  const LockFile lock = lock_for_writing(workspace_);
  const test::Finished repair = tearless({"verify", "--repair"});
  EXPECT_EQ(repair.code, 2);
  EXPECT_THAT(repair.errors, HasSubstr("another tearless"));
  EXPECT_EQ(tearless({"verify"}).code, 0);
}

TEST_F(DamageTest, ARunRecordedAsRunningIsNotCompared) {
  const RunDirectory run = run_in(RunState::kDone);
  change_database("UPDATE runs SET state = 'running' WHERE id = '" + run.id() + "'; DELETE FROM metrics");
  std::string all;
  for (const Difference& difference : differences()) all += difference.subject + ": " + difference.what + "\n";
  EXPECT_THAT(all, testing::Not(HasSubstr(run.id())))
      << "its metrics were still to be read when its harness was killed";
  EXPECT_THAT(all, HasSubstr("the database holds other metrics than metrics.jsonl")) << "of the others";
}

TEST_F(DamageTest, AnUnrecordedResultIsMentioned) {
  const RunDirectory run = run_in(RunState::kDone);
  change_database("UPDATE runs SET state = 'queued' WHERE id = '" + run.id() + "'");
  const test::Finished looked = tearless({"table", "grid.toml"});
  EXPECT_EQ(looked.code, 0);
  EXPECT_EQ(looked.errors, "run " + run.id() + " has ended and is not in the database yet: tearless run grid.toml\n");
}

}  // namespace
}  // namespace tearless::harness::damage_test
