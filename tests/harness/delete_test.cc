// `tearless delete` with real runs: what goes, what stays, and when it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <future>
#include <nlohmann/json.hpp>

#include "base/fault.h"
#include "harness/folders/program_copies.h"
#include "harness/plan/submission.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/faults.h"
#include "tests/support/terminal.h"

namespace tearless::harness::delete_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class DeleteTest : public ServedRunTest {
 protected:
  // grid.toml has four runs; half.toml those two of them with model.kind = "a".
  DeleteTest() {
    std::string half = test::read_text(folder_ / "grid.toml");
    half.replace(half.find("\"a\", \"b\""), 8, "\"a\"");
    test::write_text(folder_ / "half.toml", half);
  }

  std::vector<std::string> known(const std::string& sql) {
    std::vector<std::string> ids;
    for (const json& row : json::parse(ok({"--json", "sql", sql}).output)) ids.push_back(row.at("id"));
    return ids;
  }
  std::vector<std::string> known_runs() { return known("SELECT id FROM runs_view"); }
  std::vector<std::string> known_sweeps() { return known("SELECT id FROM sweeps_view"); }
  // With a daemon, until a run, which is returned, is in the middle.
  RunDirectory begin_to_train() {
    write_grid("\"succeed\"", 40);
    ok({"daemon", "--background"});
    ok({"submit", "grid.toml"});
    RunDirectory some("");
    EXPECT_TRUE(wait_for_a_run_in_the_middle(&some));
    return some;
  }
  void pause() {
    ok({"pause", "grid.toml"});
    EXPECT_TRUE(test::eventually([&] { return known("SELECT id FROM runs_view WHERE state = 'running'").empty(); }));
  }
  std::vector<fs::path> checkpoints() const {
    std::vector<fs::path> all;
    for (const RunDirectory& run : runs()) {
      for (const int64_t step : run.checkpoint_steps()) all.push_back(run.checkpoint(step));
    }
    return all;
  }
};

// --- sweeps ----------------------------------------------------------------------------------------------------------

TEST_F(DeleteTest, TheSweepAndItsOwnRunsGoAndThoseOfOtherSweepsStay) {
  ok({"run", "half.toml"});
  const std::map<std::string, std::string> of_half = results();
  const std::string table = ok({"table", "half.toml"}).output;
  ok({"run", "grid.toml"});
  ASSERT_THAT(known_runs(), SizeIs(4));

  const test::Finished deleted = ok({"delete", "grid.toml", "--yes"});
  EXPECT_THAT(deleted.output, AllOf(HasSubstr("1 sweep: grid-"), HasSubstr("\n  2 runs, 2 of them with a result\n"),
                                    HasSubstr("2 runs of other sweeps too: these stay")));
  EXPECT_EQ(results(), of_half);
  EXPECT_THAT(known_runs(), SizeIs(2));
  EXPECT_THAT(known_sweeps(), testing::ElementsAre(testing::StartsWith("half-")));
  EXPECT_THAT(known("SELECT run AS id FROM scores_view"), SizeIs(4)) << "two scores of each run that stays";
  EXPECT_EQ(ok({"table", "half.toml"}).output, table);
  EXPECT_FALSE(fs::exists(folder_ / "results/deleted"));
  ok({"verify"});

  ok({"delete", "--yes", "all"});
  EXPECT_THAT(results(), IsEmpty());
  EXPECT_THAT(known_runs(), IsEmpty());
  ok({"verify"});
  ok({"run", "grid.toml"});
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(DeleteTest, WithoutAYesNothingGoes) {
  ok({"run", "grid.toml"});
  EXPECT_THAT(ok({"delete", "grid.toml", "--dry-run"}).output,
              AllOf(HasSubstr("4 runs, 4 of them with a result"), Not(HasSubstr("Deleted"))));
  const test::Finished refused = tearless({"delete", "grid.toml"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.output, HasSubstr("4 runs, 4 of them with a result"));
  EXPECT_THAT(refused.errors,
              HasSubstr("nothing was deleted; to delete this without a question: tearless delete --yes "));
  {
    test::Terminal terminal(command({"delete", "grid.toml"}));
    ASSERT_TRUE(terminal.shows("[y/N]")) << terminal.shown();
    terminal.type("n\n");
    EXPECT_EQ(terminal.wait(), 0);
  }
  EXPECT_THAT(known_runs(), SizeIs(4));
  EXPECT_EQ(results(), undisturbed());
  test::Terminal terminal(command({"delete", "grid.toml"}));
  ASSERT_TRUE(terminal.shows("[y/N]")) << terminal.shown();
  terminal.type("y\n");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_THAT(known_runs(), IsEmpty());
}

TEST_F(DeleteTest, WithKeepResultsRunsThatNeverBeganGoAndAGridNeedNotTrainTheOthersAgain) {
  ok({"run", "half.toml"});
  queue("grid.toml");
  const json answer = json::parse(ok({"--json", "delete", "half.toml", "grid.toml", "--yes", "--keep-results"}).output);
  EXPECT_THAT(answer.at("runs"), SizeIs(2));
  free_the_daemon();
  EXPECT_THAT(known_sweeps(), IsEmpty());
  EXPECT_THAT(known_runs(), SizeIs(2));
  ok({"verify"});
  ok({"run", "grid.toml"});
  EXPECT_EQ(attempts(), 4) << "nothing was trained again";
}

TEST_F(DeleteTest, WithKeepResultsAFailedRunIsNotTriedAgainWithoutASweep) {
  write_grid("\"crash\"", 0);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  EXPECT_THAT(ok({"delete", "grid.toml", "--yes", "--keep-results"}).output,
              HasSubstr("Runs that have begun stay (--keep-results).\nDeleted.\n"));
  const std::string failed = known_runs().front();
  const test::Finished retry = tearless({"retry", failed});
  EXPECT_EQ(retry.code, 1);
  EXPECT_THAT(retry.errors, HasSubstr("run " + failed + " is in no sweep any more; submit its grid again"));
  EXPECT_THAT(ok({"status"}).output, HasSubstr("There is no sweep in results"));
}

TEST_F(DeleteTest, AWaitForWhatIsDeletedMeanwhileEnds) {
  write_grid("\"succeed\"", 40);
  write_other_grid();
  ok({"daemon", "--background", "--jobs", "1"});
  ok({"submit", "grid.toml"});
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  const pid_t engine = engine_of(some);
  ASSERT_GT(engine, 0);
  ::kill(engine, SIGSTOP);  // it keeps the others waiting
  ok({"submit", "other.toml"});
  const std::string waiting = known("SELECT run AS id FROM sweep_runs_view WHERE sweep LIKE 'other%'").front();
  std::future<test::Finished> for_sweep = begin({"wait", "other.toml"}), for_run = begin({"wait", waiting});
  EXPECT_EQ(for_sweep.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
  EXPECT_EQ(for_run.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  ok({"delete", "other.toml", "--yes"});
  for (std::future<test::Finished>* ended : {&for_sweep, &for_run}) {
    const test::Finished wait = ended->get();
    if (wait.code == 1) continue;  // it asked between the two steps of a deletion: what is deleted is cancelled first
    EXPECT_EQ(wait.code, 2);
    // On a very slow machine it has not even begun.
    EXPECT_THAT(wait.errors, testing::AnyOf(HasSubstr("was deleted meanwhile"), HasSubstr("was not submitted"),
                                            HasSubstr("is no sweep, run")));
  }
  ::kill(engine, SIGCONT);
}

TEST_F(DeleteTest, WithKeepResultsARunThatHadBegunIsCancelledUntilItsGridIsRunAgain) {
  const RunDirectory some = begin_to_train();
  pause();
  ok({"delete", "grid.toml", "--yes", "--keep-results"});
  EXPECT_THAT(known("SELECT id FROM runs_view WHERE state = 'cancelled' AND reason = 'its sweep was deleted'"),
              testing::Contains(some.id()));
  EXPECT_THAT(known("SELECT id FROM runs_view WHERE state = 'queued'"), IsEmpty());
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
}

// The database is the last to lose a sweep: until it has, a repetition must find what there is to do.
TEST_F(DeleteTest, WhatTheDatabaseStillKnowsIsNotRemovedFromTheDeleted) {
  ok({"run", "half.toml"});
  const fs::path deleted = workspace().deleted();
  const fs::path moved = deleted / known_sweeps().at(0) / "0123456789abcdef";
  fs::create_directories(moved);
  ok({"run", "grid.toml"});
  ok({"delete", "grid.toml", "--yes"});
  EXPECT_TRUE(fs::exists(moved));
  ok({"delete", "half.toml", "--yes"});
  EXPECT_FALSE(fs::exists(deleted));
}

TEST_F(DeleteTest, HalfwayTheSweepIsCancelledInItsFolderToo) {
  ok({"run", "half.toml"});
  wait_until_unserved();
  test::Faults faults(folder_.path());
  faults.fail(fault::kCommit, ENOSPC, 2, 2);  // the first is that of a tick
  test::Command half = command({"delete", "half.toml", "--yes"});
  half.environment.merge(faults.environment());
  EXPECT_NE(test::run(half).code, 0);
  EXPECT_EQ(faults.hits(), 1);
  wait_until_unserved();
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_THAT(known("SELECT id FROM sweeps_view WHERE state = 'cancelled'"), SizeIs(1)) << "nothing may start its runs";
}

TEST_F(DeleteTest, AnotherSweepWhoseFolderIsGoneIsNoReasonToRefuse) {
  ok({"run", "half.toml"});
  ok({"run", "grid.toml"});
  fs::remove_all(workspace().sweep(known("SELECT id FROM sweeps_view WHERE id LIKE 'half-%'").at(0)));
  ok({"delete", "grid.toml", "--yes"});
  EXPECT_THAT(known_sweeps(), testing::ElementsAre(testing::StartsWith("half-")));
  EXPECT_THAT(known_runs(), SizeIs(2));
}

TEST_F(DeleteTest, WhatRunsIsRefusedAndWhatWaitsIsNot) {
  begin_to_train();
  const test::Finished refused = tearless({"delete", "grid.toml", "--yes"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr(" is being trained; wait for it, or cancel it first: tearless cancel "));
  pause();
  ok({"delete", "grid.toml", "--yes"});
  EXPECT_THAT(known_runs(), IsEmpty());
  EXPECT_THAT(ok({"status"}).output, Not(HasSubstr("grid-")));
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed()) << "the daemon does not know it any more, either";
}

TEST_F(DeleteTest, RunsThatAreTrainedByHandAreRefused) {
  ok({"run", "grid.toml"});
  for (const auto& words : std::vector<std::vector<std::string>>{{"delete"}, {"delete", "--keep-results", "--yes"}}) {
    const test::Finished without_words = tearless(words);
    EXPECT_EQ(without_words.code, 2);
    EXPECT_THAT(without_words.errors, HasSubstr("name the sweeps or runs to delete; to delete checkpoints that nothing "
                                                "needs: tearless clean"));
  }
  EXPECT_THAT(checkpoints(), SizeIs(16));
  EXPECT_EQ(tearless({"delete", "last", "--all"}).code, 2);
  const auto lock = LockFile::try_acquire(runs().at(0).lock());
  const test::Finished refused = tearless({"delete", "grid.toml", "--yes"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("run " + runs().at(0).id() + " is being trained"));
  EXPECT_THAT(known_runs(), SizeIs(4));
}

// --- links -----------------------------------------------------------------------------------------------------------

TEST_F(DeleteTest, DeletesNothingThatIsElsewhereBehindALink) {
  ok({"run", "grid.toml"});
  const RunDirectory run = runs().at(0);
  const fs::path elsewhere = folder_ / "elsewhere", precious = elsewhere / "step-3/state.bin";
  fs::create_directories(precious.parent_path());
  test::write_text(precious, "mine");
  for (const fs::path& name : {workspace().deleted(), workspace().programs(), run.checkpoints()}) {
    if (fs::exists(name)) fs::rename(name, folder_ / "aside");
    fs::create_directory_symlink(elsewhere, name);
    const bool is_left_out = name != workspace().deleted();  // else nothing can be deleted
    for (const auto& words : std::vector<std::vector<std::string>>{{"clean"}, {"clean", "--dry-run"}}) {
      const test::Finished refused = tearless(words);
      EXPECT_EQ(refused.code, is_left_out ? 1 : 2) << name;
      EXPECT_THAT(refused.errors, HasSubstr(name.lexically_relative(folder_.path()).string() +
                                            " is a symbolic link out of the workspace, or lies behind one, and "
                                            "tearless deletes nothing there (" +
                                            elsewhere.string() + "); put a folder in place of the link\n"));
    }
    if (!is_left_out) {
      EXPECT_EQ(tearless({"delete", "--yes", "grid.toml"}).code, 2);
      EXPECT_THAT(known_sweeps(), SizeIs(1));
      EXPECT_THAT(runs(), SizeIs(4));
    }
    EXPECT_EQ(test::read_text(precious), "mine") << name;
    if (name == run.checkpoints()) break;  // the run goes with its link
    fs::remove(name);
    if (fs::exists(folder_ / "aside")) fs::rename(folder_ / "aside", name);
  }
  ok({"delete", "--yes", "grid.toml"});
  EXPECT_FALSE(fs::exists(run.root()));
  EXPECT_EQ(test::read_text(precious), "mine");
}

// --- what nothing needs ----------------------------------------------------------------------------------------------

TEST_F(DeleteTest, CleanTakesTheCheckpointsOfResultsAndNothingElse) {
  ok({"run", "grid.toml"});
  const std::map<std::string, std::string> before = results();
  ASSERT_THAT(checkpoints(), SizeIs(16)) << "a checkpoint every three of twelve updates";
  const RunDirectory some = runs().at(0);
  fs::create_directories(some.checkpoints() / "tmp-9");
  fs::create_directories(some.checkpoints() / "models");
  const std::string would = ok({"clean", "--dry-run"}).output;
  EXPECT_THAT(would, AllOf(testing::StartsWith("Would free "), HasSubstr(": 17 checkpoints of 4 runs, 0 programs")));
  EXPECT_THAT(checkpoints(), SizeIs(16));
  const json freed = json::parse(ok({"--json", "clean"}).output);
  EXPECT_EQ(freed.at("checkpoints"), 17);
  EXPECT_GT(freed.at("bytes"), 0);
  for (const RunDirectory& run : runs()) {
    EXPECT_EQ(folders_in(run.checkpoints()),
              run.id() == some.id() ? std::vector<std::string>{"models"} : std::vector<std::string>{});
  }
  EXPECT_FALSE(fs::exists(workspace().deleted()));
  EXPECT_EQ(results(), before);
  ok({"verify"});
  ok({"run", "grid.toml"});
  EXPECT_EQ(attempts(), 4) << "nothing was trained again";
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  ok({"verify"});
}

TEST_F(DeleteTest, TheSelectedCheckpointStaysUnlessItIsAskedForToo) {
  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid.replace(grid.find("[axis]"), 0, "\"fake.score.selected_step\" = 6\n"));
  ok({"run", "grid.toml"});
  const json freed = json::parse(ok({"--json", "clean"}).output);
  EXPECT_EQ(freed.at("checkpoints"), 12);
  for (const RunDirectory& run : runs()) EXPECT_THAT(run.checkpoint_steps(), testing::ElementsAre(6));
  EXPECT_EQ(json::parse(ok({"--json", "clean", "--all"}).output).at("checkpoints"), 4);
  EXPECT_THAT(checkpoints(), IsEmpty());
}

TEST_F(DeleteTest, OfARunWithAModelAllCheckpointsGoAndTheModelStaysUnlessItIsAskedForToo) {
  std::string grid = test::read_text(folder_ / "grid.toml");
  test::write_text(folder_ / "grid.toml", grid.replace(grid.find("[axis]"), 0, "\"fake.score.selected_step\" = 6\n"));
  ok({"run", "grid.toml"});
  for (const RunDirectory& run : runs()) test::write_text(run.model(), "parameters");
  EXPECT_EQ(json::parse(ok({"--json", "clean"}).output).at("checkpoints"), 16);
  for (const RunDirectory& run : runs()) {
    EXPECT_THAT(run.checkpoint_steps(), IsEmpty());
    EXPECT_TRUE(fs::exists(run.model()));
  }
  ok({"verify"});
  EXPECT_EQ(json::parse(ok({"--json", "clean", "--all"}).output).at("checkpoints"), 4);
  for (const RunDirectory& run : runs()) EXPECT_FALSE(fs::exists(run.model()));
  ok({"verify"});
}

TEST_F(DeleteTest, RunsThatMayBeResumedDamagedOnesAndOnesInUseKeepTheirCheckpoints) {
  ok({"run", "half.toml"});
  queue("grid.toml");
  const std::string queued = known("SELECT id FROM runs_view WHERE state = 'queued'").at(0);
  const fs::path checkpoint = workspace().run(queued).checkpoint(3);
  fs::create_directories(checkpoint);
  const std::vector<std::string> done = known("SELECT id FROM runs_view WHERE state = 'done'");
  const RunDirectory damaged = workspace().run(done.at(0)), used = workspace().run(done.at(1));
  test::write_text(damaged.scores(), "{}");
  {
    const std::optional<LockFile> lock = LockFile::try_acquire(used.lock());
    const test::Finished nothing = tearless({"clean"});
    EXPECT_EQ(nothing.code, 1);
    EXPECT_THAT(nothing.errors, AllOf(HasSubstr("skipped: run " + damaged.id()), HasSubstr("tearless verify"),
                                      HasSubstr("skipped: run " + used.id() + ": it is in use")));
    EXPECT_THAT(checkpoints(), SizeIs(9));
  }
  EXPECT_THAT(tearless({"clean"}).output, HasSubstr(": 4 checkpoints of 1 run,"));
  EXPECT_TRUE(fs::exists(checkpoint));
  EXPECT_THAT(damaged.checkpoint_steps(), SizeIs(4));
}

TEST_F(DeleteTest, CopiesOfProgramsThatNoSweepNamesGo) {
  ok({"run", "grid.toml"});
  const auto copies = [&] { return folders_in(workspace().programs()); };
  const auto freed = [&] { return json::parse(ok({"--json", "clean"}).output).at("programs").get<int>(); };
  fs::create_directories(workspace().programs() / ".0123.1");  // of a submission that was killed
  EXPECT_EQ(freed(), 1);
  EXPECT_THAT(copies(), SizeIs(1)) << "old runs may be repeated";
  fs::create_directories(workspace().programs() / "0123");
  {
    const LockFile submission = lock_programs(workspace());
    const test::Finished refused = tearless({"clean"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.errors, HasSubstr("skipped: programs: a grid is being submitted"));
  }
  const fs::path sweep = workspace().sweep(folders_in(workspace().sweeps()).at(0)) / "sweep.json";
  const std::string text = test::read_text(sweep);
  test::write_text(sweep, "{}");
  EXPECT_EQ(tearless({"clean"}).code, 1) << "it cannot be read which program it names";
  EXPECT_THAT(copies(), SizeIs(2));
  test::write_text(sweep, text);
  EXPECT_EQ(freed(), 1);
  ok({"verify"});
  // A submission that was killed before the database knew it, and one before sweep.json was written.
  write_other_grid();
  Submission submission = prepare_submission(folder_ / "other.toml", test::program("fake-engine"), {});
  write_submission(workspace(), submission);
  fs::create_directories(workspace().sweep("killed-earlier"));
  ok({"delete", "all", "--yes"});
  EXPECT_EQ(freed(), 0);
  fs::remove_all(workspace().sweeps());
  EXPECT_EQ(freed(), 1);
  EXPECT_THAT(copies(), IsEmpty());
}

TEST_F(DeleteTest, ARunInTheForegroundDoesNotKeepItAway) {
  write_grid("\"succeed\"", 20);
  const test::Background run(command({"run", "grid.toml"}));
  RunDirectory some("");
  ASSERT_TRUE(wait_for_a_run_in_the_middle(&some));
  ok({"clean"});
  ok({"stop", "--now"});
}

}  // namespace
}  // namespace tearless::harness::delete_test
