// Runs that derive from others: they start when those have their results, are put aside with them,
// and come back with them.
#include <SQLiteCpp/SQLiteCpp.h>

#include "tests/harness/schedule/scheduler_fixture.h"

namespace tearless::harness::scheduler_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 0 and 1 are trained, 100 and 101 derive from them, 200 from 100.
class DerivedRunsTest : public SchedulerTest {
 protected:
  static Runs all() { return {job(0), job(1), job(100), job(101), job(200)}; }
  std::vector<RunState> derived_states() const { return {state(100), state(200)}; }
  void submit_again(Add how) { add("s", all(), how); }

  // The next services cannot queue run 100.
  void refuse_to_queue_100(bool refuse) {
    SQLite::Database database(workspace_.database().string(), SQLite::OPEN_READWRITE);
    database.exec(refuse ? "CREATE TRIGGER refusal BEFORE UPDATE ON runs WHEN new.id = '" + id_of(100) +
                               "' AND new.state = 'queued' BEGIN SELECT RAISE(ABORT, 'refused'); END"
                         : "DROP TRIGGER refusal");
    restart();
    if (!refuse) begin_with_active();
  }
};

TEST_F(DerivedRunsTest, StartWhenTheirRunHasItsResult) {
  begin(all());
  EXPECT_EQ(launcher_.starts, ids({0, 1}));
  EXPECT_THAT(why(100), HasSubstr("derives from run " + id_of(0)));
  finish(1);
  EXPECT_EQ(launcher_.starts, ids({0, 1, 101}));
  finish(0);
  EXPECT_EQ(launcher_.starts, ids({0, 1, 101, 100}));
  EXPECT_FALSE(finished());
  finish(100);
  EXPECT_EQ(launcher_.starts, ids({0, 1, 101, 100, 200}));
  finish(101);
  finish(200);
  EXPECT_TRUE(finished());
  EXPECT_EQ(ended("s"), 5);
}

TEST_F(DerivedRunsTest, StartAtOnceIfTheirRunIsDoneAndTrainNothing) {
  begin({job(0)});
  finish(0);
  add("t", {job(0), job(100)});
  EXPECT_EQ(launcher_.starts, ids({0, 100}));
}

TEST_F(DerivedRunsTest, OfADivergedRunStartToo) {
  begin({job(0), job(100)});
  const RunDirectory run = workspace_.run(id_of(0));
  write_done(run, "diverged", 3, "the loss is not finite", {});
  end(0, kExitDiverged);
  EXPECT_EQ(state(0), RunState::kDiverged);
  EXPECT_EQ(starts(100), 1);
}

TEST_F(DerivedRunsTest, OfAFailedRunHaveFailedAndAreTriedAgainWithIt) {
  begin(all());
  end(0, kExitSettingsRefused);
  EXPECT_EQ(state(0), RunState::kFailed);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kFailed, RunState::kFailed));
  EXPECT_EQ(reason(100), "the run from which it derives has failed");
  finish(1);
  finish(101);
  EXPECT_TRUE(finished());
  submit_again(Add::kSubmit);
  EXPECT_EQ(state(100), RunState::kFailed) << "only on request";

  EXPECT_TRUE(scheduler_->retry(id_of(0)));
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kQueued, RunState::kQueued));
  finish(0);
  EXPECT_EQ(starts(100), 1);
}

TEST_F(DerivedRunsTest, OfAFailedRunAreTriedAgainWithTheSweep) {
  begin(all());
  end(0, kExitSettingsRefused);
  submit_again(Add::kRetry);
  EXPECT_EQ(state(0), RunState::kRunning);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kQueued, RunState::kQueued));
  finish(0);
  finish(100);
  EXPECT_EQ(starts(200), 1);
}

TEST_F(DerivedRunsTest, TriedAgainWhileTheirRunHasFailedFailAgain) {
  begin(all());
  end(0, kExitSettingsRefused);
  EXPECT_FALSE(scheduler_->retry(id_of(100)));
  EXPECT_EQ(state(100), RunState::kFailed);
  finish(1);
  finish(101);
  EXPECT_TRUE(finished());
}

TEST_F(DerivedRunsTest, AreCancelledHeldAndReleasedWithTheirRun) {
  begin(all());
  EXPECT_TRUE(scheduler_->cancel_run(id_of(0)));
  end(0, kAsAsked);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kCancelled, RunState::kCancelled));
  submit_again(Add::kSubmit);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kQueued, RunState::kQueued));

  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  end(0, kAsAsked);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kHeld, RunState::kHeld));
  finish(1);
  finish(101);
  EXPECT_TRUE(finished());
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kQueued, RunState::kQueued));
  finish(0);
  EXPECT_EQ(starts(100), 1);
}

// A kill between the two would leave run 100 aside, and nobody would bring it back.
TEST_F(DerivedRunsTest, AreQueuedInTheTransactionThatQueuesTheirRun) {
  begin(all());
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  end(0, kAsAsked);
  refuse_to_queue_100(true);
  EXPECT_THROW(scheduler_->release(id_of(0)), UserError);
  EXPECT_EQ(state(0), RunState::kHeld);
  refuse_to_queue_100(false);
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  EXPECT_EQ(state(0), RunState::kRunning);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kQueued, RunState::kQueued));
}

TEST_F(DerivedRunsTest, AreQueuedInTheTransactionThatQueuesTheirRunAfterItWaitedForItsData) {
  begin(all());
  end(0, kExitData);  // it names no files: the next service tries it again
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kWaitingData, RunState::kWaitingData));
  refuse_to_queue_100(true);
  EXPECT_THROW(begin_with_active(), UserError);
  EXPECT_EQ(state(0), RunState::kWaitingData);
  refuse_to_queue_100(false);
  EXPECT_EQ(state(0), RunState::kRunning);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kQueued, RunState::kQueued));
}

TEST_F(DerivedRunsTest, HeldOnRequestStayHeld) {
  begin(all());
  EXPECT_TRUE(scheduler_->hold(id_of(100)));
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kHeld, RunState::kHeld));
  finish(0);
  EXPECT_EQ(state(100), RunState::kHeld);
  EXPECT_TRUE(scheduler_->release(id_of(100)));
  EXPECT_EQ(starts(100), 1);
  finish(100);
  EXPECT_EQ(starts(200), 1);
}

TEST_F(DerivedRunsTest, WaitWithTheirRunForItsData) {
  Runs wanted = all();
  const auto files = std::make_shared<const InputFiles>(InputFiles{{(folder_ / "corpus").string(), "absent"}});
  for (auto& run : wanted) run.data = files;
  begin(wanted);
  end(0, kExitData);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kWaitingData, RunState::kWaitingData));
  EXPECT_EQ(state(101), RunState::kWaitingData) << "it is queued for the same files";
  end(1, kExitData);
  EXPECT_TRUE(finished());
  test::write_text(folder_ / "corpus", "here");
  for (int i = 0; i < 5; ++i) later(10);
  EXPECT_EQ(state(0), RunState::kRunning);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kQueued, RunState::kQueued));
}

TEST_F(DerivedRunsTest, OfACancelledSweepAreCancelled) {
  begin(all());
  scheduler_->cancel("s");
  end(0, kAsAsked);
  end(1, kAsAsked);
  EXPECT_THAT(derived_states(), ElementsAre(RunState::kCancelled, RunState::kCancelled));
  EXPECT_TRUE(finished());
}

TEST_F(DerivedRunsTest, AreThoseOfTheNextServiceToo) {
  begin(all());
  finish(0);
  restart_beside_all();
  begin_with_active();
  EXPECT_EQ(starts(100), 1);
  finish(1);
  restart();  // both attempts are lost with the service
  begin_with_active();
  EXPECT_EQ(starts(100) + starts(101), 4);
  finish(100);
  finish(101);
  finish(200);
  EXPECT_TRUE(finished());
}

}  // namespace
}  // namespace tearless::harness::scheduler_test
