// `tearless forget` and `tearless gc` with real runs: what goes, what stays, and when they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <future>
#include <nlohmann/json.hpp>

#include "base/fault.h"
#include "harness/store/store.h"
#include "tests/harness/run_fixture.h"
#include "tests/support/faults.h"
#include "tests/support/terminal.h"

namespace tearless::harness::forget_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ForgetTest : public ServedRunTest {
 protected:
  // grid.toml has four runs; half.toml those two of them with model.kind = "a".
  ForgetTest() {
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

// --- forget ----------------------------------------------------------------------------------------------------------

TEST_F(ForgetTest, TheSweepAndItsOwnRunsGoAndThoseOfOtherSweepsStay) {
  ok({"run", "half.toml"});
  const std::map<std::string, std::string> of_half = results();
  const std::string table = ok({"table", "half.toml"}).output;
  ok({"run", "grid.toml"});
  ASSERT_THAT(known_runs(), SizeIs(4));

  const test::Finished forgotten = ok({"forget", "grid.toml", "--yes"});
  EXPECT_THAT(forgotten.output, AllOf(HasSubstr("1 sweep: grid-"), HasSubstr("\n  2 runs, 2 of them with a result\n"),
                                      HasSubstr("2 runs of other sweeps too: these stay")));
  EXPECT_EQ(results(), of_half);
  EXPECT_THAT(known_runs(), SizeIs(2));
  EXPECT_THAT(known_sweeps(), testing::ElementsAre(testing::StartsWith("half-")));
  EXPECT_THAT(known("SELECT run AS id FROM scores_view"), SizeIs(4)) << "two scores of each run that stays";
  EXPECT_EQ(ok({"table", "half.toml"}).output, table);
  EXPECT_FALSE(fs::exists(folder_ / "results/forgotten"));
  ok({"verify"});

  ok({"forget", "--yes", "all"});
  EXPECT_THAT(results(), IsEmpty());
  EXPECT_THAT(known_runs(), IsEmpty());
  ok({"verify"});
  ok({"run", "grid.toml"});
  EXPECT_EQ(results(), undisturbed());
}

TEST_F(ForgetTest, WithoutAYesNothingGoes) {
  ok({"run", "grid.toml"});
  const test::Finished refused = tearless({"forget", "grid.toml"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.output, HasSubstr("4 runs, 4 of them with a result"));
  EXPECT_THAT(refused.errors,
              HasSubstr("nothing was deleted; to delete this without a question: tearless forget --yes "));
  {
    test::Terminal terminal(command({"forget", "grid.toml"}));
    ASSERT_TRUE(terminal.shows("[y/N]")) << terminal.shown();
    terminal.type("n\n");
    EXPECT_EQ(terminal.wait(), 0);
  }
  EXPECT_THAT(known_runs(), SizeIs(4));
  EXPECT_EQ(results(), undisturbed());
  test::Terminal terminal(command({"forget", "grid.toml"}));
  ASSERT_TRUE(terminal.shows("[y/N]")) << terminal.shown();
  terminal.type("y\n");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_THAT(known_runs(), IsEmpty());
}

TEST_F(ForgetTest, WithKeepResultsAGridNeedNotTrainThemAgain) {
  ok({"run", "grid.toml"});
  const json answer = json::parse(ok({"--json", "forget", "grid.toml", "--yes", "--keep-results"}).output);
  EXPECT_THAT(answer.at("runs"), IsEmpty());
  EXPECT_THAT(known_sweeps(), IsEmpty());
  EXPECT_THAT(known_runs(), SizeIs(4));
  ok({"verify"});
  ok({"run", "grid.toml"});
  EXPECT_EQ(attempts(), 4) << "nothing was trained again";
}

TEST_F(ForgetTest, WithKeepResultsAFailedRunIsNotTriedAgainWithoutASweep) {
  write_grid("\"crash\"", 0);
  EXPECT_EQ(tearless({"run", "grid.toml"}).code, 1);
  ok({"forget", "grid.toml", "--yes", "--keep-results"});
  const std::string failed = known_runs().front();
  const test::Finished retry = tearless({"retry", failed});
  EXPECT_EQ(retry.code, 1);
  EXPECT_THAT(retry.errors, HasSubstr("run " + failed + " is in no sweep any more; submit its grid again"));
  EXPECT_THAT(ok({"status"}).output, HasSubstr("There is no sweep in results"));
}

TEST_F(ForgetTest, AWaitForWhatIsForgottenMeanwhileEnds) {
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
  ok({"forget", "other.toml", "--yes"});
  for (std::future<test::Finished>* ended : {&for_sweep, &for_run}) {
    const test::Finished wait = ended->get();
    EXPECT_EQ(wait.code, 2);
    // On a very slow machine it has not even begun.
    EXPECT_THAT(wait.errors, testing::AnyOf(HasSubstr("was deleted meanwhile"), HasSubstr("was not submitted"),
                                            HasSubstr("is no sweep, run")));
  }
  ::kill(engine, SIGCONT);
}

TEST_F(ForgetTest, WithKeepResultsRunsThatNeverBeganGoAndNoneWaits) {
  ok({"submit", "grid.toml"});
  const json answer = json::parse(ok({"--json", "forget", "grid.toml", "--yes", "--keep-results"}).output);
  EXPECT_THAT(answer.at("runs"), SizeIs(4));
  EXPECT_THAT(known_runs(), IsEmpty());
}

TEST_F(ForgetTest, WithKeepResultsARunThatHadBegunIsCancelledUntilItsGridIsRunAgain) {
  const RunDirectory some = begin_to_train();
  pause();
  ok({"forget", "grid.toml", "--yes", "--keep-results"});
  EXPECT_THAT(known("SELECT id FROM runs_view WHERE state = 'cancelled' AND reason = 'its sweep was forgotten'"),
              testing::Contains(some.id()));
  EXPECT_THAT(known("SELECT id FROM runs_view WHERE state = 'queued'"), IsEmpty());
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed());
}

// The database is the last to forget: until it has, a repetition must find what there is to do.
TEST_F(ForgetTest, WhatTheDatabaseStillKnowsIsNotDeletedFromTheForgotten) {
  ok({"submit", "half.toml"});
  const fs::path forgotten = Workspace(folder_ / "results").forgotten();
  const fs::path moved = forgotten / known_sweeps().at(0) / "0123456789abcdef";
  fs::create_directories(moved);
  ok({"submit", "grid.toml"});
  ok({"forget", "grid.toml", "--yes"});
  EXPECT_TRUE(fs::exists(moved));
  ok({"forget", "half.toml", "--yes"});
  EXPECT_FALSE(fs::exists(forgotten));
}

TEST_F(ForgetTest, HalfwayTheSweepIsCancelledInItsFolderToo) {
  ok({"submit", "half.toml"});
  test::Faults faults(folder_.path());
  faults.fail(fault::kCommit, ENOSPC, 2, 2);  // the first is that of a tick
  test::Command forget = command({"forget", "half.toml", "--yes"});
  forget.environment.merge(faults.environment());
  EXPECT_NE(test::run(forget).code, 0);
  EXPECT_EQ(faults.hits(), 1);
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  EXPECT_THAT(known("SELECT id FROM sweeps_view WHERE state = 'cancelled'"), SizeIs(1)) << "nothing may start its runs";
}

TEST_F(ForgetTest, AnotherSweepWhoseFolderIsGoneIsNoReasonToRefuse) {
  ok({"submit", "half.toml"});
  ok({"submit", "grid.toml"});
  fs::remove_all(
      Workspace(folder_ / "results").sweep(known("SELECT id FROM sweeps_view WHERE id LIKE 'half-%'").at(0)));
  ok({"forget", "grid.toml", "--yes"});
  EXPECT_THAT(known_sweeps(), testing::ElementsAre(testing::StartsWith("half-")));
  EXPECT_THAT(known_runs(), SizeIs(2));
}

TEST_F(ForgetTest, WhatRunsIsRefusedAndWhatWaitsIsNot) {
  begin_to_train();
  const test::Finished refused = tearless({"forget", "grid.toml", "--yes"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr(" is running; wait for it, or cancel it first: tearless cancel "));
  pause();
  ok({"forget", "grid.toml", "--yes"});
  EXPECT_THAT(known_runs(), IsEmpty());
  EXPECT_THAT(ok({"status"}).output, Not(HasSubstr("grid-")));
  ok({"submit", "grid.toml"});
  ok({"wait"});
  EXPECT_EQ(results(), undisturbed()) << "the daemon has forgotten it, too";
}

TEST_F(ForgetTest, ARunThatIsTrainedByHandIsRefused) {
  ok({"run", "grid.toml"});
  const auto lock = LockFile::try_acquire(runs().at(0).lock());
  const test::Finished refused = tearless({"forget", "grid.toml", "--yes"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("run " + runs().at(0).id() + " is being trained"));
  EXPECT_THAT(known_runs(), SizeIs(4));
}

TEST_F(ForgetTest, RunsAreNotForgottenOneByOne) {
  ok({"run", "grid.toml"});
  EXPECT_THAT(tearless({"forget", "1", "--yes"}).errors, HasSubstr("forget takes whole sweeps, not runs"));
  EXPECT_EQ(tearless({"forget", "--yes"}).code, 2);
  EXPECT_THAT(known_runs(), SizeIs(4));
}

// --- gc --------------------------------------------------------------------------------------------------------------

TEST_F(ForgetTest, GcFreesTheCheckpointsOfResultsAndNothingElse) {
  ok({"run", "grid.toml"});
  const std::map<std::string, std::string> before = results();
  ASSERT_THAT(checkpoints(), SizeIs(16)) << "a checkpoint every three of twelve updates";
  const std::string would = ok({"gc", "--dry-run"}).output;
  EXPECT_THAT(would, AllOf(testing::StartsWith("Would free "), HasSubstr(": 16 checkpoints of 4 runs\n")));
  EXPECT_THAT(checkpoints(), SizeIs(16));
  EXPECT_THAT(ok({"gc", "--keep", "3"}).output, HasSubstr(": 4 checkpoints of 4 runs\n"));
  const json answer = json::parse(ok({"--json", "gc"}).output);
  EXPECT_EQ(answer.at("checkpoints"), 12);
  EXPECT_GT(answer.at("bytes"), 0);
  EXPECT_THAT(checkpoints(), IsEmpty());
  EXPECT_EQ(results(), before);
  ok({"verify"});
  ok({"run", "grid.toml"});
  EXPECT_EQ(attempts(), 4) << "nothing was trained again";
  fs::remove(folder_ / "results/tearless.db");
  ok({"rebuild"});
  ok({"verify"});
}

TEST_F(ForgetTest, GcLeavesRunsThatMayBeResumedAndDamagedOnes) {
  ok({"run", "half.toml"});
  ok({"submit", "grid.toml"});
  const std::string queued = known("SELECT id FROM runs_view WHERE state = 'queued'").at(0);
  const fs::path checkpoint = Workspace(folder_ / "results").run(queued).checkpoint(3);
  fs::create_directories(checkpoint);
  const RunDirectory damaged = [&] {
    for (const RunDirectory& run : runs()) {
      if (fs::exists(run.done())) return run;
    }
    return runs().at(0);
  }();
  test::write_text(damaged.scores(), "{}");
  const test::Finished gc = tearless({"gc", "all"});
  EXPECT_EQ(gc.code, 1);
  EXPECT_THAT(gc.errors, AllOf(HasSubstr("skipped: run " + damaged.id()), HasSubstr("tearless verify")));
  EXPECT_THAT(gc.output, AllOf(HasSubstr(": 4 checkpoints of 1 run\n"), HasSubstr("2 runs without a result")));
  EXPECT_TRUE(fs::exists(checkpoint));
  EXPECT_THAT(damaged.checkpoint_steps(), SizeIs(4));
}

}  // namespace
}  // namespace tearless::harness::forget_test
