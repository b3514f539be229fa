// One sweep: what is started, what follows from the end of each attempt, and that an attempt that hangs is stopped
// (what hangs: signs_of_life_test.cc).
#include <fstream>

#include "tests/harness/schedule/scheduler_fixture.h"

namespace tearless::harness::scheduler_test {
namespace {

using testing::HasSubstr;

TEST_F(SchedulerTest, StartsWhatTheLauncherTakesInOrderAndRecordsResults) {
  begin(jobs(3));
  EXPECT_EQ(launcher_.starts, ids({0, 1}));
  EXPECT_EQ(state(2), RunState::kQueued);
  EXPECT_EQ(why(0), "in a slot");
  EXPECT_EQ(why(2), "no slot; it is the next to start");
  finish(0);
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_EQ(store_->result_of(id_of(0)).scores.at("test.bleu"), 20);
  EXPECT_EQ(launcher_.starts, ids({0, 1, 2}));
  finish(1);
  EXPECT_FALSE(finished());
  finish(2);
  EXPECT_TRUE(finished());
  EXPECT_EQ(ended("s"), 3);
}

TEST_F(SchedulerTest, RunsOfWhichOneIsTooLargeAreNotHeldUpByIt) {
  Runs wanted = jobs(3);
  wanted[1].needs.threads = 2;
  begin(wanted);
  EXPECT_EQ(launcher_.starts, ids({0, 2}));
  finish(0);
  EXPECT_EQ(starts(1), 0);
  finish(2);
  EXPECT_EQ(starts(1), 1);
}

TEST_F(SchedulerTest, RowsOfTheTableBecomeCompleteOneAfterAnother) {
  Runs wanted = jobs(4);
  for (size_t i = 0; i < 4; ++i) wanted[i].rank = static_cast<int64_t>(i % 2);
  begin(wanted);
  EXPECT_EQ(launcher_.starts, ids({0, 2}));
}

TEST_F(SchedulerTest, TheLongestRunOfARankGoesFirst) {
  Runs wanted = jobs(3);
  wanted[2].updates = 99;
  begin(wanted);
  EXPECT_EQ(launcher_.starts, ids({2, 0}));
}

TEST_F(SchedulerTest, ARunThatNoWaitMakesPossibleIsHeldAlsoWhenItIsReleased) {
  begin(jobs(1, "cuda"));
  EXPECT_EQ(state(0), RunState::kHeld);
  EXPECT_EQ(reason(0), "no GPU");
  EXPECT_TRUE(finished());
  EXPECT_FALSE(scheduler_->release(id_of(0)));
  EXPECT_EQ(state(0), RunState::kHeld);
  EXPECT_TRUE(finished());
}

TEST_F(SchedulerTest, WhatCannotBeStartedPausesAndLosesNothing) {
  launcher_.refuse = true;
  begin(jobs(2));
  EXPECT_EQ(paused(), "no process can be started");
  EXPECT_TRUE(finished());
  EXPECT_EQ(state(0), RunState::kQueued);
  EXPECT_EQ(scheduler_->counts("s").waiting, 2);
}

TEST_F(SchedulerTest, TheTimeLeftCountsWhatRunsAndWhatWaits) {
  begin(jobs(3));  // 10 updates each; two of them run
  std::string metrics;
  const auto at_update = [&](int step) {
    metrics += "{\"step\": " + std::to_string(step) + ", \"name\": \"train.loss\", \"value\": 1}\n";
    for (int i = 0; i < 2; ++i) test::write_text(workspace_.run(id_of(i)).metrics(), metrics);
    scheduler_->tick();
  };
  at_update(1);
  EXPECT_EQ(scheduler_->time_left("s").seconds, std::nullopt);  // no speed yet
  now_ += 2;
  at_update(5);
  EXPECT_EQ(scheduler_->time_left("s").seconds, (5 + 5 + 10) / (2.0 + 2.0));
  harness::Run longer = job(2);
  longer.updates = 30;
  add("t", {longer, job(1)});
  EXPECT_EQ(scheduler_->time_left("s").seconds, 30 / 2.0) << "the longest run, beside which the others end";
  EXPECT_EQ(scheduler_->time_left("t").seconds, (5 + 30) / 2.0);
  scheduler_->cancel_run(id_of(2));
  EXPECT_EQ(scheduler_->time_left("s").seconds, (5 + 5) / (2.0 + 2.0));
  scheduler_->cancel("t");
  EXPECT_EQ(scheduler_->time_left("s").seconds, (5 + 5) / (2.0 + 2.0));
}

TEST_F(SchedulerTest, AnAttemptThatHasJustStartedIsTakenToBeAsFastAsTheOthers) {
  begin(jobs(2));
  const auto line = [](int step) {
    return "{\"step\": " + std::to_string(step) + ", \"name\": \"train.loss\", \"value\": 1}\n";
  };
  test::write_text(workspace_.run(id_of(0)).metrics(), line(1));
  scheduler_->tick();
  now_ += 2;
  test::write_text(workspace_.run(id_of(0)).metrics(), line(1) + line(5));
  scheduler_->tick();
  EXPECT_EQ(scheduler_->time_left("s").seconds, 10 / 2.0) << "its ten updates, beside which the other ends";
}

// Of a quick class, whose runs take 10 s, and a slow one, whose runs take 100 s; and decodings of 40 s.
class TimeLeftTest : public SchedulerTest {
 protected:
  static harness::Run of_class(int number, const std::string& resource_class) {
    harness::Run run = job(number);
    run.needs.resource_class = resource_class;
    run.updates = resource_class == "decoding" ? 0 : 10;
    return run;
  }
  void finish_after(int number, double seconds) {
    const RunDirectory run = workspace_.run(id_of(number));
    test::write_text(run.attempt(1) / "measured.json", "{\"seconds\": " + std::to_string(seconds) + "}");
    finish(number);
  }
  void report(int number, int step) const {
    const std::string line = ", \"name\": \"train.loss\", \"value\": 1}\n";
    std::string text;
    for (int i = 1; i <= step; ++i) text += "{\"step\": " + std::to_string(i) + line;
    test::write_text(workspace_.run(id_of(number)).metrics(), text);
  }
  double seconds() const { return scheduler_->time_left("s").seconds.value_or(-1); }
};

TEST_F(TimeLeftTest, IsOfMeasuredTimesWhicheverRunsAreInWork) {
  begin({of_class(0, "quick"), of_class(1, "slow"), of_class(2, "quick"), of_class(3, "quick"), of_class(4, "slow"),
         of_class(5, "slow"), of_class(6, "decoding"), of_class(7, "decoding")});
  finish_after(0, 10);
  EXPECT_EQ(scheduler_->time_left("s").untimed, 5) << "of slow runs and decodings none has ended";
  finish_after(1, 100);
  EXPECT_EQ(scheduler_->time_left("s").untimed, 2);
  EXPECT_EQ(seconds(), (10 + 10 + 100 + 100) / 2.0);
  ASSERT_EQ(alive(), set_of({2, 3})) << "two quick runs";
  report(2, 1);
  later(1);
  report(2, 5);
  later(1);  // four updates in a second: a sweep of such runs would end soon
  EXPECT_EQ(seconds(), (10 - 5 + 10 + 100 + 100) / 2.0);
  finish_after(2, 10);
  finish_after(3, 10);
  ASSERT_EQ(alive(), set_of({4, 5})) << "two slow runs";
  EXPECT_EQ(seconds(), (100 + 100) / 2.0);
  report(4, 1);
  later(50);
  report(4, 2);
  later(1);
  EXPECT_EQ(seconds(), std::max(100.0, (100 - 20 + 100) / 2.0)) << "the longest that is left";
}

TEST_F(TimeLeftTest, CountsDecodingsOnceOneHasEnded) {
  begin({of_class(0, "decoding"), of_class(1, "quick"), of_class(2, "decoding"), of_class(3, "decoding")});
  ASSERT_EQ(alive(), set_of({0, 1}));
  finish_after(0, 40);
  finish_after(1, 10);
  ASSERT_EQ(alive(), set_of({2, 3}));
  EXPECT_EQ(seconds(), 40);
  now_ += 15;
  EXPECT_EQ(seconds(), 25) << "the time goes by";
  now_ += 100;
  EXPECT_EQ(seconds(), 0) << "longer than expected";
}

TEST_F(TimeLeftTest, IsOfCalibrationsWhereNothingHasEnded) {
  {
    const Workspace smoke = workspace_.smoke();
    make_folders(smoke.root());
    const std::unique_ptr<Store> store = Store::open_writer(smoke);
    harness::Run run = of_class(50, "slow");
    run.updates = 2;
    store->submit({.id = "c", .title = "", .grid_file = "", .submitted_at = "", .runs = {run}, .reason = ""});
    AttemptRecord attempt;
    attempt.number = 1;
    attempt.outcome = "done";
    attempt.measured = {{"seconds", 9}, {"training_seconds", 6}, {"updates", 2}};
    store->put_attempt(id_of(50), attempt);
    store->move(id_of(50), RunState::kQueued, RunState::kDone, FailureClass::kNone, "", 2);
  }
  begin({of_class(0, "slow"), of_class(1, "slow"), of_class(2, "quick")});
  EXPECT_EQ(seconds(), 3 + 3 * 10) << "3 s to begin, and 3 s an update; two in work";
  EXPECT_EQ(scheduler_->time_left("s").untimed, 1);
}

TEST_F(TimeLeftTest, IsOfThePresentSpeedForAClassThatIsInWorkForTheFirstTimeAndForNoOther) {
  begin({of_class(0, "quick"), of_class(1, "slow"), of_class(2, "quick"), of_class(3, "other")});
  EXPECT_EQ(seconds(), -1);
  EXPECT_EQ(scheduler_->time_left("s").untimed, 4);
  report(0, 1);
  later(0);
  now_ += 2;
  report(0, 5);
  scheduler_->tick();
  EXPECT_EQ(seconds(), std::max(5.0, (2.5 + 5) / 2));
  EXPECT_EQ(scheduler_->time_left("s").untimed, 2);
}

TEST_F(TimeLeftTest, OfAClassThatNothingTimesIsThatOfTheOthersForEachUpdateAndParameter) {
  std::vector<harness::Run> runs = {of_class(0, "quick"), of_class(1, "quick"),   of_class(2, "large"),
                                    of_class(3, "large"), of_class(4, "unknown"), of_class(5, "decoding")};
  for (const int number : {0, 1}) runs[number].parameters = 1000;
  for (const int number : {2, 3}) runs[number].parameters = 3000;
  runs[3].updates = 20;
  begin(runs);
  finish_after(0, 10);
  ASSERT_EQ(alive().size(), 2u);
  EXPECT_EQ(seconds(), std::max(60.0, (10 + 30 + 60) / 2.0));
  EXPECT_EQ(scheduler_->time_left("s").untimed, 2) << "nothing tells their size";
}

// An axis without effect.
TEST_F(SchedulerTest, ARunThatIsTwiceInASweepIsVisitedOnce) {
  const Runs twice = {job(0), job(1), job(0), job(1), job(2), job(2)};
  begin(twice);
  EXPECT_EQ(launcher_.starts, ids({0, 1}));
  scheduler_->cancel("s");
  EXPECT_EQ(state(2), RunState::kCancelled);
  end(0, kAsAsked);
  end(1, kAsAsked);
  add("s", twice);
  EXPECT_EQ(state(2), RunState::kQueued);
  finish(0);
  finish(1);
  finish(2);
  EXPECT_TRUE(scheduler_->discard(id_of(1)));
  add("s", twice);
  finish(1);
  EXPECT_EQ(state(1), RunState::kDone);
  add("t", {job(7, "cuda"), job(7, "cuda")});
  EXPECT_EQ(state(7), RunState::kHeld);
  add("t", {job(7, "cuda"), job(7, "cuda")});
  EXPECT_EQ(state(7), RunState::kHeld);
}

TEST_F(SchedulerTest, ARunWhoseSettingsWereChangedByHandIsNotStarted) {
  const RunDirectory run = workspace_.run(id_of(0));
  make_folders(run.root());
  test::write_text(run.settings(), "n = 7\n");
  begin(jobs(2));
  EXPECT_EQ(state(0), RunState::kFailed);
  EXPECT_EQ(launcher_.starts, ids({1}));
}

// --- classes of failure ----------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, EachClassOfFailureHasItsTries) {
  const Exit killed_for_memory{.code = 137, .signal = SIGKILL, .memory_kills = 1};
  struct Row {
    Exit exit;
    FailureClass failure;
    int attempts;  // until it fails
  };
  const std::vector<Row> rows = {{{.code = kExitSettingsRefused}, FailureClass::kSettings, 1},
                                 {{.code = kExitOutOfMemory}, FailureClass::kOutOfMemory, 2},
                                 {killed_for_memory, FailureClass::kOutOfMemory, 2},
                                 {{.code = 1}, FailureClass::kCrashed, 3},
                                 {{.code = 137, .signal = 9, .asked = "stall"}, FailureClass::kStalled, 3}};
  for (int row = 0; row < static_cast<int>(rows.size()); ++row) {
    const auto& [exit, failed_as, attempts] = rows[static_cast<size_t>(row)];
    const std::string sweep = "s" + std::to_string(row);
    add(sweep, {job(row)});
    for (int attempt = 1; attempt <= attempts; ++attempt) {
      ASSERT_EQ(starts(row), attempt) << row;
      EXPECT_EQ(state(row), RunState::kRunning);
      end(row, exit);
      EXPECT_EQ(outcome(row), name_of(failed_as));
      later();
    }
    EXPECT_EQ(starts(row), attempts);
    EXPECT_EQ(state(row), RunState::kFailed);
    EXPECT_EQ(failure(row), failed_as);
    EXPECT_TRUE(scheduler_->idle(sweep));
  }
}

TEST_F(SchedulerTest, ASweepMaySayHowManyTriesAClassOfFailureHasAndTheMorePatientOneOfTwoCounts) {
  policy_.tries = {{"crashed", 1}, {"out_of_memory", 1}};
  begin(jobs(2));
  policy_.tries = {{"crashed", 5}};
  add("t", jobs(1));
  for (int i = 0; i < 4; ++i) {
    end(0, 1, "cause " + std::to_string(i));
    EXPECT_EQ(state(0), RunState::kQueued) << i;
    later();
  }
  end(0, 1);
  EXPECT_EQ(state(0), RunState::kFailed);
  end(1, kExitOutOfMemory);
  EXPECT_EQ(state(1), RunState::kFailed);
}

TEST_F(SchedulerTest, UnrequestedStopsCountAsNoTryAndAreDelayed) {
  begin(jobs(1));
  for (int attempt = 1; attempt <= 10; ++attempt) {
    EXPECT_EQ(starts(0), attempt);
    end(0, kExitStopped);
    EXPECT_EQ(starts(0), attempt);  // it ended at once: not again at once
    later(61);
  }
  EXPECT_EQ(starts(0), 11);
  EXPECT_EQ(state(0), RunState::kRunning);
}

TEST_F(SchedulerTest, ARequestedStopNeverCountsAsATryAndDelaysNothing) {
  for (const Exit& exit :
       {Exit{.code = 143, .signal = SIGTERM, .asked = "stop"}, Exit{.code = 137, .signal = 9, .asked = "stop"},
        Exit{.code = 1, .asked = "stop"}, Exit{.code = 139, .signal = SIGSEGV, .asked = "stop"}, kAsAsked}) {
    for (int i = 0; i < 4; ++i) {
      restart();
      begin(jobs(1));
      const int64_t before = starts(0);
      pause("s");
      EXPECT_EQ(launcher_.stopped.at(id_of(0)), Stop::kOnRequest);
      end(0, exit);
      EXPECT_EQ(state(0), RunState::kQueued);
      EXPECT_EQ(outcome(0), "stopped");
      scheduler_->resume("s");
      EXPECT_EQ(starts(0), before + 1);
    }
  }
}

TEST_F(SchedulerTest, WhatWasAskedToStopAndLeavesNoTraceWasStopped) {
  policy_.grace_seconds = 20;
  begin(jobs(1));
  pause("s");
  EXPECT_EQ(launcher_.grace, 20);
  scheduler_->tick();
  EXPECT_EQ(launcher_.polls, 1) << "it kills what does not react";
  vanish(0);
  EXPECT_EQ(outcome(0), "stopped");
  EXPECT_EQ(reason(0), "its supervisor did not react and was killed");
  EXPECT_EQ(state(0), RunState::kQueued);
}

TEST_F(SchedulerTest, ARunThatRanOutOfMemoryIsAloneNext) {
  begin(jobs(3));
  end(0, kExitOutOfMemory);  // room for the third
  finish(1);
  later();
  EXPECT_EQ(starts(0), 1) << "its neighbour still runs";
  finish(2);
  EXPECT_TRUE(launcher_.alive.at(id_of(0)).alone);
  add("t", {job(3)});
  EXPECT_EQ(alive(), set_of({0}));
  end(0, 1);
  later();
  EXPECT_FALSE(launcher_.alive.at(id_of(0)).alone) << "another failure";
}

TEST_F(SchedulerTest, ARunThatRanOutOfMemoryIsAloneAfterARestartToo) {
  begin(jobs(2));
  end(0, kExitOutOfMemory);
  restart_beside_all();
  begin_with_active();
  EXPECT_EQ(alive(), set_of({1}));
  finish(1);
  later();
  EXPECT_TRUE(launcher_.alive.at(id_of(0)).alone);
}

TEST_F(SchedulerTest, AStartNamesTheAttemptIfItIsNotTheFirst) {
  begin(jobs(1));
  end(0, kAsAsked);
  later();
  std::vector<std::string> started;
  for (const SchedulerEvent& event : events_) {
    if (event.what == "started") started.push_back(event.id + " " + event.text);
  }
  EXPECT_EQ(started, (std::vector<std::string>{id_of(0) + " ", id_of(0) + " again (attempt 2)"}));
}

TEST_F(SchedulerTest, ARequestAboutARunThatDoesNotExistIsRefused) {
  begin(jobs(1));
  EXPECT_FALSE(scheduler_->cancel_run(id_of(7)));
  EXPECT_FALSE(scheduler_->hold(id_of(7)));
}

TEST_F(SchedulerTest, TheSameCrashOfThreeRunsPausesTheSweep) {
  begin(jobs(5));
  // What a real program says of one defect: paths, updates, times and addresses differ.
  end(0, 1, "[10:31:02] /data/runs/0123456789abcdef: no such file (update 1200, 0x7ffc12)");
  end(1, 1, "[10:44:59] /data/runs/fedcba9876543210: no such file (update 7, 0x7ffe98)");
  EXPECT_TRUE(paused().empty());
  end(2, 1, "[11:00:00] /data/runs/00112233aabbccdd: no such file (update 31, 0x7ff001)");
  EXPECT_THAT(paused(), HasSubstr("no such file"));
  const size_t started = launcher_.starts.size();
  end(3, 1, "another reason");
  EXPECT_EQ(launcher_.starts.size(), started);
  EXPECT_TRUE(finished());
  EXPECT_EQ(state(4), RunState::kQueued);
}

TEST_F(SchedulerTest, ASweepWhoseFirstFiveRunsFailInTheSameWayIsPausedAndSaysSo) {
  begin(jobs(12));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(paused(), "") << i;
    end(i, kExitSettingsRefused, "train.de:" + std::to_string(i) + ": not valid UTF-8");
  }
  EXPECT_EQ(paused(), "5 runs failed in the same way (exit code 2: train.de:4: not valid UTF-8); `tearless log " +
                          id_of(4) + "` shows more");
  EXPECT_EQ(starts(7), 0);
  end(5, kExitSettingsRefused, "train.de:5: not valid UTF-8");  // it was under way
  scheduler_->resume("s");
  for (int i = 6; i < 11; ++i) {
    EXPECT_EQ(paused(), "") << "the user has seen the first five; " << i;
    end(i, kExitSettingsRefused, "train.de:1: not valid UTF-8");
  }
  EXPECT_NE(paused(), "");
}

TEST_F(SchedulerTest, FailuresPauseNoSweepWhereTheyAreNotItsFirstEnds) {
  begin(jobs(14));
  const auto refuse = [&](int from, int to) {
    for (int i = from; i < to; ++i) end(i, kExitSettingsRefused, "no such norm");
  };
  refuse(0, 2);
  finish(2);
  refuse(3, 8);
  EXPECT_EQ(paused(), "") << "one has a result";
  restart_beside_all();
  begin_with_active();
  refuse(8, 13);
  EXPECT_EQ(paused(), "") << "which the next service knows";
}

TEST_F(SchedulerTest, ASweepOfWhichNothingIsLeftIsNotPausedByItsFailures) {
  begin(jobs(5));
  for (int i = 0; i < 5; ++i) end(i, kExitSettingsRefused, "no such norm");
  EXPECT_EQ(paused(), "");
}

TEST_F(SchedulerTest, FirstFailuresOfDifferentKindsDoNotPause) {
  begin(jobs(8));
  end(0, kExitSettingsRefused, "no such placement");
  for (int i = 1; i < 7; ++i) end(i, kExitSettingsRefused, "no such norm");
  EXPECT_EQ(paused(), "");
}

TEST_F(SchedulerTest, DifferentCrashesDoNotPause) {
  begin(jobs(3));
  end(0, 1, "out of beans");
  end(1, 1, "out of rice");
  end(2, 1, "out of tea");
  EXPECT_TRUE(paused().empty());
}

TEST_F(SchedulerTest, ProgressResetsTheCountOfTries) {
  begin(jobs(1));
  for (int64_t step = 1; step <= 6; ++step) {  // more crashes than are tried, a checkpoint between any two
    write_checkpoint(0, step);
    end(0, 1, "flaky");
    later();
  }
  EXPECT_EQ(starts(0), 7);
  for (int i = 0; i < 2; ++i) {
    end(0, 1, "flaky");
    later();
  }
  EXPECT_EQ(state(0), RunState::kFailed);  // the third in a row that got nowhere
}

TEST_F(SchedulerTest, KillsFromOutsideCountAsNoTryButThreeWithoutProgressPauseTheSweep) {
  begin(jobs(1));
  for (int64_t step = 1; step <= 5; ++step) {
    write_checkpoint(0, step);
    end(0, kKilled);
    EXPECT_TRUE(paused().empty()) << step;
    EXPECT_EQ(starts(0), step + 1);  // at once: it got somewhere
    later();
  }
  EXPECT_EQ(store_->attempts_of(id_of(0)).at(4).outcome, "killed");
  end(0, kKilled);  // the second since the last checkpoint
  EXPECT_TRUE(paused().empty());
  later();
  end(0, kKilled);
  EXPECT_THAT(paused(), HasSubstr("killed from outside 3 times"));
  EXPECT_EQ(state(0), RunState::kQueued);
}

TEST_F(SchedulerTest, AFailingMachinePausesTheSweepAndCountsNoTry) {
  for (const Exit& exit : {Exit{.code = kExitMachine}, Exit{.code = 1, .disk_full = 1}}) {
    restart();
    begin(jobs(3));
    end(0, exit);
    EXPECT_FALSE(paused().empty());
    EXPECT_EQ(state(0), RunState::kQueued);
    EXPECT_EQ(outcome(0), "machine");
    end(1, kExitStopped);
    EXPECT_TRUE(finished());
  }
}

TEST_F(SchedulerTest, AFaultOfTheLauncherPausesTheSweepAndIsTheReason) {
  begin(jobs(1));
  vanish(0, "the disk is full");
  EXPECT_EQ(outcome(0), "machine");
  EXPECT_EQ(reason(0), "the disk is full");
  EXPECT_THAT(paused(), HasSubstr("the disk is full"));
  scheduler_->resume("s");
  launcher_.die_at_once = true;
  later();
  vanish(0, "the disk is still full");
  EXPECT_EQ(paused(), "the disk is still full");
  EXPECT_EQ(state(0), RunState::kQueued);
  EXPECT_EQ(store_->attempts_of(id_of(0)).size(), 1u) << "the second has not begun";
}

TEST_F(SchedulerTest, ASupervisorKilledBeforeItsAttemptBeganIsNoAttempt) {
  launcher_.die_at_once = true;
  begin(jobs(1));
  workspace_.run(id_of(0)).make_attempt();  // made, and killed before start.json
  vanish(0);
  EXPECT_TRUE(paused().empty());
  EXPECT_TRUE(store_->attempts_of(id_of(0)).empty());
  launcher_.die_at_once = false;
  later();
  finish(0);
  EXPECT_EQ(state(0), RunState::kDone);
  const RunResult result = store_->result_of(id_of(0), {.numerics = 1});
  EXPECT_EQ(result.stale, "");
  EXPECT_EQ(result.trained_on.size(), 1u);
}

TEST_F(SchedulerTest, TheAttemptsOfADeletedFolderAreForgottenWithIt) {
  begin(jobs(1));
  const auto crash_three_times = [&] {
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(state(0), RunState::kRunning) << i;
      end(0, 1, "flaky");
      later();
    }
  };
  crash_three_times();
  EXPECT_EQ(state(0), RunState::kFailed);
  fs::remove_all(workspace_.run(id_of(0)).root());
  EXPECT_TRUE(scheduler_->retry(id_of(0)));
  crash_three_times();
  EXPECT_EQ(state(0), RunState::kFailed) << "three tries, as before";
  EXPECT_EQ(store_->attempts_of(id_of(0)).size(), 3u);
}

// --- missing data ----------------------------------------------------------------------------------------------------

class DataTest : public SchedulerTest {
 protected:
  void needs_file(harness::Run& run, const std::string& file) const {
    run.data = std::make_shared<const InputFiles>(InputFiles{{folder_ / file, sha256("right")}});
  }
};

TEST_F(DataTest, RunsOfFilesThatAreNotAsPlannedWaitUntilTheseChange) {
  const std::string file = folder_ / "train.en";
  test::write_text(file, "wrong");
  test::write_text(folder_ / "dev.en", "right");
  Runs runs = jobs(5);
  for (harness::Run& run : runs) needs_file(run, "train.en");
  needs_file(runs[4], "dev.en");
  begin(runs);
  EXPECT_EQ(launcher_.starts, ids({0, 1}));
  end(0, kExitData, "the file is not the one");
  for (const int waiting : {0, 2, 3}) {
    EXPECT_EQ(state(waiting), RunState::kWaitingData);
    EXPECT_EQ(reason(waiting), file + " has the SHA-256 " + sha256("wrong") + ", but the run was planned with " +
                                   sha256("right") + "; the run continues when that file is back");
  }
  EXPECT_EQ(launcher_.starts.back(), id_of(4)) << "of another file";
  end(1, kExitData);
  EXPECT_EQ(state(1), RunState::kWaitingData);
  EXPECT_TRUE(has_event("waits for its data"));
  finish(4);
  EXPECT_TRUE(finished()) << "nothing is left that would be started";
  EXPECT_EQ(scheduler_->counts("s").total, 1);

  for (int look = 0; look < 100; ++look) later(10);
  EXPECT_EQ(launcher_.starts.size(), 3u) << "nothing has changed";

  test::write_text(file, "right");
  later(10);
  EXPECT_EQ(launcher_.starts.size(), 3u) << "somebody may still write to it";
  later(10);
  EXPECT_EQ(launcher_.starts.size(), 5u);
  EXPECT_EQ(scheduler_->counts("s").total, 5);
  for (const int run : {0, 1, 2, 3}) finish(run);
  EXPECT_TRUE(finished());
  EXPECT_EQ(ended("s"), 5);
}

TEST_F(DataTest, RefusedDataCountAsNoTryHoweverOftenTheyChange) {
  Runs runs = jobs(1);
  needs_file(runs[0], "train.en");
  begin(runs);
  end(0, 1);  // one of three tries
  for (int time = 0; time < 10; ++time) {
    later();
    later();
    ASSERT_EQ(state(0), RunState::kRunning) << time;
    end(0, kExitData);
    ASSERT_EQ(state(0), RunState::kWaitingData) << time;
    test::write_text(folder_ / "train.en", "wrong " + std::to_string(time));
  }
  later();
  later();
  end(0, 1);
  EXPECT_EQ(state(0), RunState::kQueued);
  later();
  end(0, 1);
  EXPECT_EQ(state(0), RunState::kFailed) << "crashes count as before";
}

TEST_F(DataTest, OfTheRunsOfTwoFilesThoseOfTheChangedOneAreTriedAgainAlsoIfItChangedDuringTheAttempt) {
  const std::string train = folder_ / "train.en", dev = folder_ / "dev.en";
  for (const std::string& file : {train, dev}) test::write_text(file, "wrong");
  Runs runs = jobs(2);
  needs_file(runs[0], "train.en");
  needs_file(runs[1], "dev.en");
  begin(runs);
  test::write_text(train, "right");
  for (const int run : {0, 1}) end(run, kExitData);
  later();
  later();
  EXPECT_EQ(alive(), set_of({0}));
  for (const char* bytes : {"right", "right bytes", "right bytes and more"}) {
    test::write_text(dev, bytes);
    later();
    EXPECT_EQ(alive(), set_of({0})) << "somebody writes to it";
  }
  fs::remove(dev);
  later();
  later();
  EXPECT_EQ(alive(), set_of({0, 1})) << "the program may have the data elsewhere";
}

TEST_F(DataTest, WhereTheProgramNamesNoFilesOnlyARequestOrARestartTriesAgain) {
  begin(jobs(2));
  end(0, kExitData, "my data are gone");
  EXPECT_EQ(state(0), RunState::kWaitingData);
  EXPECT_THAT(reason(0), HasSubstr("my data are gone"));
  EXPECT_EQ(state(1), RunState::kRunning) << "it may have other data";
  finish(1);
  for (int look = 0; look < 10; ++look) later(10);
  EXPECT_EQ(starts(0), 1);
  scheduler_->add("s", Add::kSubmit);
  EXPECT_EQ(starts(0), 2);
  end(0, kExitData);
  restart();
  begin_with_active();
  EXPECT_EQ(starts(0), 3);
}

TEST_F(DataTest, AServiceThatStartsNothingLeavesRunsThatWaitForDataAlone) {
  begin(jobs(1));
  end(0, kExitData, "gone");
  restart();
  scheduler_->stop();
  scheduler_->begin();
  scheduler_->add("s", Add::kRestart);
  EXPECT_EQ(state(0), RunState::kWaitingData);
  scheduler_->cancel("s");
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(DataTest, NothingIsStartedBeforeItIsLet) {
  restart();
  scheduler_->let_start(false);
  begin(jobs(1));
  EXPECT_EQ(starts(0), 0);
  EXPECT_TRUE(scheduler_->is_busy());
  scheduler_->let_start(true);
  EXPECT_EQ(starts(0), 1);
}

TEST_F(DataTest, ARequestToHoldOutweighsThatTheDataAreGone) {
  begin(jobs(1));
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  end(0, kExitData);
  EXPECT_EQ(state(0), RunState::kHeld);
}

// --- stalls ----------------------------------------------------------------------------------------------------------

class StallTest : public SchedulerTest {
 protected:
  void train(const std::string& phase, int reports) {
    begin(jobs(1));
    if (!phase.empty()) test::write_text(workspace_.run(id_of(0)).attempt(1) / "phase", phase + "\n");
    report(reports);
  }
  // One report every 10 seconds.
  void report(int reports) {
    for (int i = 0; i < reports; ++i) {
      std::ofstream(workspace_.run(id_of(0)).metrics(), std::ios::app)
          << R"({"step": 1, "name": "train.loss", "value": 1})"
          << "\n";
      later(10);
    }
  }
  bool is_stalled() const { return launcher_.stopped.contains(id_of(0)); }
};

TEST_F(StallTest, ARunWithoutNewOutputIsStoppedAndTriedAgain) {
  policy_.stall_seconds = 60;
  begin(jobs(1));
  scheduler_->tick();
  now_ += 50;
  report(1);  // a sign
  later(49);
  EXPECT_FALSE(is_stalled());
  later(12);
  ASSERT_TRUE(is_stalled());
  EXPECT_EQ(launcher_.stopped.at(id_of(0)), Stop::kStalled);
  end(0, {.code = 137, .signal = 9, .asked = "stall"});
  EXPECT_EQ(outcome(0), "stalled");
  EXPECT_EQ(starts(0), 2);
}

TEST_F(StallTest, AnAdoptedAttemptThatIsQuietForTooLongIsStoppedToo) {
  policy_ = {.stall_seconds = 60, .grace_seconds = 20};
  begin(jobs(1));
  const auto hangs_after_restart = [&] {
    restart_beside_all();
    begin_with_active();
    scheduler_->tick();
    later(61);
    EXPECT_EQ(launcher_.stopped.at(id_of(0)), Stop::kStalled);
    EXPECT_EQ(launcher_.grace, 20);
  };
  hangs_after_restart();
  store_->move(id_of(0), RunState::kRunning, RunState::kQueued);  // as in a database that does not know the attempt
  hangs_after_restart();
}

TEST_F(StallTest, ARunThatTrainedAndReportsNothingForThirtyTimesItsLongestGapIsStalled) {
  train("training", 8);
  later(280);
  EXPECT_FALSE(is_stalled());
  later(30);
  EXPECT_TRUE(is_stalled()) << "310 s; the gaps were 10 s";
}

TEST_F(StallTest, WhatARunDoesBesideTrainingMayTakeAsLongAsTheSweepAllows) {
  train("evaluating", 8);
  later(1700);
  EXPECT_FALSE(is_stalled());
  later(200);
  EXPECT_TRUE(is_stalled());
}

TEST_F(StallTest, AProgramThatReportsNoPhaseMayBeQuietAsLongAsTheSweepAllows) {
  train("", 8);
  later(1700);
  EXPECT_FALSE(is_stalled());
}

}  // namespace
}  // namespace tearless::harness::scheduler_test
