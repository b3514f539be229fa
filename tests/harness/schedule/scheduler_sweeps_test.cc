// Several sweeps, what users ask for, and what the next process makes of what it finds.
#include "tests/harness/schedule/scheduler_fixture.h"

namespace tearless::harness::scheduler_test {
namespace {

class SchedulerSweepsTest : public SchedulerTest {};
class RestartTest : public SchedulerTest {};

TEST_F(SchedulerSweepsTest, ASweepOfHigherPriorityGoesFirstAndRunningAttemptsGoOn) {
  begin(jobs(4));
  submit("urgent", {job(10), job(11)});
  store_->set_priority("urgent", 5);
  scheduler_->add("urgent", Add::kSubmit);
  EXPECT_EQ(alive(), set_of({0, 1}));
  finish(0);
  finish(1);
  EXPECT_EQ(alive(), set_of({10, 11}));
  EXPECT_EQ(scheduler_->counts("s").waiting, 2);
}

TEST_F(SchedulerSweepsTest, APriorityThatIsSetLaterReordersWhatWaits) {
  begin(jobs(3));
  add("later", {job(10)});
  scheduler_->set_priority("later", 1);
  finish(0);
  EXPECT_EQ(launcher_.starts, ids({0, 1, 10}));
  EXPECT_EQ(store_->sweep("later")->priority, 1);
}

TEST_F(SchedulerSweepsTest, ASweepThatIsSubmittedAgainBeforeItIsOverKeepsItsPlace) {
  begin(jobs(3));
  add("t", {job(10)});
  add("s", jobs(3));
  finish(0);
  EXPECT_EQ(launcher_.starts.back(), id_of(2));
  scheduler_->hold(id_of(2));
  end(2, kAsAsked);
  finish(1);
  EXPECT_EQ(state(10), RunState::kRunning);
  add("u", {job(11), job(12)});
  add("s", jobs(3));  // a held run is left of it
  scheduler_->release(id_of(2));
  finish(10);
  EXPECT_EQ(alive(), set_of({2, 11}));
  restart_beside_all();
  EXPECT_EQ(store_->active_sweeps(), (Ids{"s", "t", "u"})) << "for the next service, too";
}

TEST_F(SchedulerSweepsTest, ASweepThatIsSubmittedAgainWhenItIsOverGoesBehindTheOthers) {
  begin(jobs(2));
  add("t", {job(10), job(11), job(12)});
  scheduler_->cancel("s");
  end(0, kAsAsked);
  add("s", jobs(2));
  end(1, kAsAsked);
  EXPECT_EQ(alive(), set_of({10, 11}));
  finish(10);
  EXPECT_EQ(alive(), set_of({11, 12}));
  fs::remove_all(workspace_.run(id_of(10)).root());
  finish(11);
  finish(12);
  finish(0);
  finish(1);
  add("u", {job(20), job(21), job(22)});
  add("t", {job(10), job(11), job(12)});  // all had ended; one is to be trained again
  finish(20);
  EXPECT_EQ(alive(), set_of({21, 22}));
}

TEST_F(SchedulerSweepsTest, ARunThatWaitsSaysHowManyRunsOfWhichSweepsGoFirst) {
  begin(jobs(4));
  add("t", {job(10), job(11)});
  add("urgent", {job(20)});
  scheduler_->set_priority("urgent", 1);
  EXPECT_EQ(why(20), "no slot; it is the next to start");
  EXPECT_EQ(why(2), "no slot; 1 run of urgent goes first");
  EXPECT_EQ(why(3), "no slot; 1 run of its own sweep, 1 run of urgent go first");
  EXPECT_EQ(why(11), "no slot; 2 runs of s, 1 run of its own sweep, 1 run of urgent go first");
}

TEST_F(SchedulerSweepsTest, ARunThatTwoSweepsWantIsTrainedOnce) {
  begin(jobs(1));
  add("t", {job(0), job(1)});
  finish(0);
  finish(1);
  EXPECT_EQ(launcher_.starts, ids({0, 1}));
  EXPECT_TRUE(scheduler_->idle("s"));
  EXPECT_TRUE(scheduler_->idle("t"));
  EXPECT_EQ(ended("t"), 2);
  const auto done = std::find_if(events_.begin(), events_.end(), [](const SchedulerEvent& event) {
    return event.what == "done" && event.id == id_of(0);
  });
  ASSERT_NE(done, events_.end());
  EXPECT_EQ(done->sweeps, (Ids{"s", "t"}));
}

TEST_F(SchedulerSweepsTest, ANewSubmissionMayChangeTheThreadsOfWhatWaits) {
  Runs wanted = jobs(3);
  wanted[2].needs.threads = 2;
  begin(wanted);
  finish(0);
  EXPECT_EQ(starts(2), 0) << "two threads do not fit beside run 1";
  wanted[2].needs.threads = 1;
  add("s", wanted);
  EXPECT_EQ(starts(2), 1);
}

TEST_F(SchedulerSweepsTest, AMemoryThatTheUserDeclaresReplacesTheEstimate) {
  Runs wanted = jobs(2);
  for (harness::Run& run : wanted) run.needs.memory_bytes = 7;
  begin({wanted[0]});
  policy_.memory_bytes = 5;
  add("t", {wanted[1]});
  EXPECT_EQ(launcher_.alive.at(id_of(0)).memory_bytes, 7);
  EXPECT_FALSE(launcher_.alive.at(id_of(0)).declared);
  EXPECT_EQ(launcher_.alive.at(id_of(1)).memory_bytes, 5);
  EXPECT_TRUE(launcher_.alive.at(id_of(1)).declared);
}

TEST_F(SchedulerSweepsTest, TheSameCrashPausesOneSweepAndTheOtherGoesOn) {
  begin(jobs(3));
  add("t", {job(10), job(11), job(12), job(13)});
  for (int i = 0; i < 3; ++i) end(i, 1, "no such file");
  EXPECT_FALSE(scheduler_->paused("s").empty());
  EXPECT_TRUE(scheduler_->paused("t").empty());
  EXPECT_FALSE(scheduler_->idle("t"));
  EXPECT_EQ(alive(), set_of({10, 11}));
}

// --- pause, cancel, stop ---------------------------------------------------------------------------------------------

TEST_F(SchedulerSweepsTest, APausedSweepStopsItsAttemptsUnlessAnotherSweepWantsThem) {
  begin(jobs(2));
  add("t", {job(1)});
  pause("s");
  EXPECT_EQ(stopped(), set_of({0}));
  end(0, kAsAsked);
  later();
  EXPECT_EQ(starts(0), 1);
  EXPECT_EQ(store_->sweep("s")->state, SweepState::kPaused);
  EXPECT_EQ(why(0), "its sweep is paused: on request");
  scheduler_->resume("s");
  EXPECT_EQ(starts(0), 2);
  EXPECT_EQ(store_->sweep("s")->state, SweepState::kActive);
}

TEST_F(SchedulerSweepsTest, ACancelledSweepKeepsItsResultsAndTheRunsOfOthers) {
  begin(jobs(4));
  add("t", {job(2)});
  finish(0);  // run 2, which both want, takes its slot
  scheduler_->cancel("s");
  EXPECT_EQ(stopped(), set_of({1}));
  end(1, kAsAsked);
  EXPECT_EQ(states(4), (std::vector{RunState::kDone, RunState::kCancelled, RunState::kRunning, RunState::kCancelled}));
  EXPECT_TRUE(scheduler_->idle("s"));
  scheduler_->resume("s");  // it is over; only a new submission makes it active
  EXPECT_EQ(store_->sweep("s")->state, SweepState::kCancelled);
  add("s", jobs(4));
  EXPECT_EQ(state(1), RunState::kRunning);
}

TEST_F(SchedulerSweepsTest, ASweepThatIsSubmittedAgainBeforeItsCancelledRunHasStoppedTrainsIt) {
  begin(jobs(1));
  scheduler_->cancel("s");
  add("s", jobs(1));
  end(0, kAsAsked);
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerSweepsTest, ACancelKeepsTheRunsOfASweepThatWasNotAdded) {
  begin(jobs(3));
  submit("t", {job(0), job(2)});
  store_->set_sweep_state("t", SweepState::kPaused, "on request");
  scheduler_->cancel("s");
  EXPECT_EQ(stopped(), set_of({0, 1}));
  end(0, kAsAsked);
  EXPECT_EQ(state(0), RunState::kQueued);
  EXPECT_EQ(state(2), RunState::kQueued);
  EXPECT_EQ(why(2), "its sweep is paused: on request");
  scheduler_->add("t", Add::kRestart);
  scheduler_->resume("t");
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerSweepsTest, ACancelledSweepHasNoJobsWhenAnotherSweepWantsItsRuns) {
  begin(jobs(1));
  scheduler_->cancel("s");
  add("t", jobs(1));  // before its attempt has stopped
  end(0, kAsAsked);
  EXPECT_TRUE(scheduler_->idle("s"));
  EXPECT_EQ(scheduler_->counts("s").running, 0);
  scheduler_->cancel("t");
  end(0, kAsAsked);
  EXPECT_EQ(state(0), RunState::kCancelled);
  restart();
  submit("t", jobs(1));
  scheduler_->begin();
  scheduler_->add("t", Add::kSubmit);
  scheduler_->add("s", Add::kRestart);  // cancelled, as the store says
  EXPECT_EQ(scheduler_->counts("s").running, 0);
  EXPECT_EQ(paused(), "it was cancelled");
}

TEST_F(SchedulerSweepsTest, InAWorkspaceThatIsAnothersNothingMoreIsStarted) {
  begin(jobs(3));
  scheduler_->abandon();
  EXPECT_TRUE(launcher_.is_abandoned);
  end(0, kKilled);
  later();
  EXPECT_EQ(launcher_.starts.size(), 2u);
}

// --- single runs -----------------------------------------------------------------------------------------------------

TEST_F(SchedulerSweepsTest, AFailedRunIsRetriedOnRequestAlone) {
  begin(jobs(1));
  end(0, kExitSettingsRefused, "unknown setting");
  EXPECT_FALSE(scheduler_->retry("0000000000000000"));
  scheduler_->add("s", Add::kSubmit);
  EXPECT_EQ(starts(0), 1);
  EXPECT_TRUE(scheduler_->retry(id_of(0)));
  EXPECT_EQ(starts(0), 2);
  EXPECT_FALSE(scheduler_->retry(id_of(0))) << "it runs";
  end(0, kExitSettingsRefused);
  restart();
  begin(jobs(1), Add::kRetry);
  EXPECT_EQ(starts(0), 3);
}

TEST_F(SchedulerSweepsTest, ACancelledRunWhoseLastUpdateWasMadeKeepsItsResult) {
  begin(jobs(1));
  EXPECT_TRUE(scheduler_->cancel_run(id_of(0)));
  finish(0);
  EXPECT_EQ(state(0), RunState::kDone);
}

TEST_F(SchedulerSweepsTest, AHeldRunWaitsForItsReleaseWhateverElseIsAsked) {
  begin(jobs(3));
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  EXPECT_TRUE(scheduler_->hold(id_of(2)));
  EXPECT_EQ(state(2), RunState::kHeld);
  scheduler_->add("s", Add::kSubmit);
  end(0, kAsAsked);
  EXPECT_EQ(state(0), RunState::kHeld);
  finish(1);
  EXPECT_TRUE(finished());
  scheduler_->add("s", Add::kSubmit);
  EXPECT_TRUE(finished());
  EXPECT_TRUE(scheduler_->hold(id_of(0))) << "again";
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  EXPECT_TRUE(scheduler_->release(id_of(2)));
  EXPECT_EQ(alive(), set_of({0, 2}));
  EXPECT_FALSE(scheduler_->hold(id_of(1))) << "it is done";
  EXPECT_FALSE(scheduler_->release("0000000000000000"));
}

TEST_F(SchedulerSweepsTest, ARunThatIsReleasedBeforeItHasStoppedIsQueuedAgain) {
  begin(jobs(1));
  scheduler_->hold(id_of(0));
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  end(0, kAsAsked);
  later();
  EXPECT_EQ(starts(0), 2);
}

TEST_F(SchedulerSweepsTest, ACancelOfItsSweepReleasesNoRunThatIsBeingHeld) {
  begin(jobs(2));
  scheduler_->hold(id_of(0));
  scheduler_->cancel("s");
  EXPECT_FALSE(scheduler_->release(id_of(1))) << "it is being cancelled, not held";
  for (int i = 0; i < 2; ++i) end(i, kAsAsked);
  EXPECT_EQ(states(2), (std::vector{RunState::kHeld, RunState::kCancelled}));
  EXPECT_FALSE(scheduler_->retry(id_of(1))) << "nobody would work on it";
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  EXPECT_EQ(state(0), RunState::kCancelled);
}

// --- the next process ------------------------------------------------------------------------------------------------

TEST_F(RestartTest, NeverTrainsADoneRunAgainUnlessItsFolderIsGone) {
  begin(jobs(1));
  finish(0);
  restart();
  begin(jobs(1));
  EXPECT_TRUE(finished());
  EXPECT_EQ(starts(0), 1);
  fs::remove_all(workspace_.run(id_of(0)).root());
  restart();
  begin(jobs(1));
  EXPECT_EQ(starts(0), 2);
}

TEST_F(RestartTest, RecordsAResultThatIsNotInTheStore) {
  write_result(0);
  begin(jobs(1));
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_EQ(store_->result_of(id_of(0)).scores.at("test.bleu"), 20);
  EXPECT_TRUE(launcher_.starts.empty());
}

TEST_F(RestartTest, AdoptsLiveAttemptsAndRecordsEndedOnesBeforeAnyIsStarted) {
  begin(jobs(3));
  write_result(1);  // ended without a service
  restart({id_of(0)});
  begin(jobs(3));
  EXPECT_TRUE(has_event("adopted"));
  EXPECT_EQ(states(3), (std::vector{RunState::kRunning, RunState::kDone, RunState::kRunning}));
  EXPECT_EQ(launcher_.starts, ids({0, 1, 2})) << "one slot is the adopted one's";
  finish(0);
  EXPECT_EQ(state(0), RunState::kDone);
}

TEST_F(RestartTest, CrashesCountedBeforeStillCount) {
  begin(jobs(1));
  end(0, 1);
  later();
  end(0, 1);
  restart();
  begin(jobs(1));
  end(0, 1);
  EXPECT_EQ(state(0), RunState::kFailed);
}

TEST_F(RestartTest, AnAdoptedAttemptThatIsAloneStaysAlone) {
  begin(jobs(1));
  end(0, kExitOutOfMemory);
  later();
  restart_beside_all();
  begin({job(0), job(2)});
  EXPECT_EQ(starts(2), 0);
  finish(0);
  EXPECT_EQ(starts(2), 1);
}

TEST_F(RestartTest, TheFirstAttemptThatIsAdoptedBeforeItHasBegunIsNumberOne) {
  launcher_.die_at_once = true;  // launched, and no start.json yet
  begin(jobs(1));
  restart_beside_all();
  begin(jobs(1));
  scheduler_->tick();
  EXPECT_TRUE(store_->attempts_of(id_of(0)).empty());
  const RunDirectory run = workspace_.run(id_of(0));
  write_start(run, run.make_attempt(), {{"device", "cpu"}, {"numerics", 1}});
  finish(0);
  ASSERT_EQ(store_->attempts_of(id_of(0)).size(), 1u);
  EXPECT_EQ(store_->attempts_of(id_of(0))[0].number, 1);
}

TEST_F(RestartTest, StartsTheRunsOfHigherPriorityFirst) {
  submit("s", jobs(3));
  submit("urgent", {job(10), job(11)}, /*priority=*/5);
  begin_with_active();
  EXPECT_EQ(launcher_.starts, ids({10, 11}));
}

TEST_F(RestartTest, GoesOnWithTheActiveSweepsInTheirOrder) {
  begin(jobs(3));
  add("t", {job(10)});
  restart({id_of(0)});
  EXPECT_EQ(store_->active_sweeps(), (Ids{"s", "t"}));
  begin_with_active();
  EXPECT_EQ(alive(), set_of({0, 1}));
  EXPECT_EQ(scheduler_->counts("s").total, 3);
  EXPECT_EQ(scheduler_->counts("s").running, 2);
  EXPECT_EQ(scheduler_->progress("s").size(), 2u);
  EXPECT_TRUE(scheduler_->progress("t").empty());
}

TEST_F(RestartTest, FindsWhatQueuedRunsOfEachActiveSweepHaveInTheirFolders) {
  submit("s", {job(0)});
  submit("t", {job(1), job(2)});
  write_result(0);
  make_folders(workspace_.run(id_of(1)).root());
  launcher_.survivors = {id_of(1)};
  begin_with_active();
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_TRUE(has_event("adopted"));
  EXPECT_EQ(launcher_.starts, ids({2}));
}

TEST_F(RestartTest, ARunningRunOfASweepThatWasNotAddedCanBeCancelled) {
  begin(jobs(1));
  restart_beside_all();
  scheduler_->begin();
  EXPECT_TRUE(scheduler_->cancel_run(id_of(0)));
  EXPECT_TRUE(scheduler_->is_stopping_any());
  EXPECT_EQ(state(0), RunState::kRunning) << "until its attempt has ended";
  end(0, kAsAsked);
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(RestartTest, FinishesACancellation) {
  begin(jobs(3));
  scheduler_->cancel("s");
  store_->requeue(id_of(2), "as in a database that was rebuilt");
  restart({id_of(0)});  // the other attempt ends, and nobody sees it
  scheduler_->begin();
  EXPECT_EQ(state(1), RunState::kCancelled);
  EXPECT_EQ(state(2), RunState::kCancelled);
  EXPECT_EQ(stopped(), set_of({0}));
  end(0, kAsAsked);
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(RestartTest, FinishesAHold) {
  begin(jobs(2));
  scheduler_->hold(id_of(0));
  scheduler_->hold(id_of(1));
  scheduler_->release(id_of(1));
  restart_beside_all();
  begin_with_active();
  EXPECT_EQ(stopped(), set_of({0}));
  restart();
  scheduler_->begin();
  EXPECT_EQ(states(2), (std::vector{RunState::kHeld, RunState::kQueued}));
}

TEST_F(SchedulerSweepsTest, AContradictionInOneSweepPausesThatSweepAndTheOthersAreTrained) {
  submit("s", {job(0, "cuda")});
  submit("t", {job(1)});
  launcher_.when_refusing = [this] {
    if (state(0) == RunState::kQueued) store_->move(id_of(0), RunState::kQueued, RunState::kCancelled);
  };
  begin_with_active();
  EXPECT_THAT(paused(), testing::HasSubstr("this is a bug in tearless"));
  EXPECT_THAT(paused(), testing::HasSubstr("tearless rebuild"));
  EXPECT_EQ(scheduler_->paused("t"), "");
  EXPECT_EQ(launcher_.starts, ids({1}));
}

}  // namespace
}  // namespace tearless::harness::scheduler_test
