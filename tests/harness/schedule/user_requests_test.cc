// What users ask for of single runs, with those that derive from them.
#include "tests/harness/schedule/scheduler_fixture.h"

namespace tearless::harness::scheduler_test {
namespace {

class UserRequests : public SchedulerTest {};

TEST_F(UserRequests, ADerivedRunThatAUserHoldsStaysHeldWhenItsTrainedRunIsReleased) {
  begin({job(0), job(100)});
  EXPECT_TRUE(scheduler_->hold(id_of(100)));
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  end(0, kAsAsked);
  ASSERT_EQ(state(0), RunState::kHeld);
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  finish(0);
  EXPECT_EQ(state(100), RunState::kHeld);
  EXPECT_TRUE(scheduler_->release(id_of(100)));
  EXPECT_EQ(state(100), RunState::kRunning);
}

TEST_F(UserRequests, ADerivedRunThatAUserCancelledStaysCancelledWhenItsTrainedRunIsReleased) {
  begin({job(0), job(100)});
  EXPECT_TRUE(scheduler_->cancel_run(id_of(100)));
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  end(0, kAsAsked);
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  finish(0);
  EXPECT_EQ(state(100), RunState::kCancelled);
}

TEST_F(UserRequests, ADerivedRunIsNotReleasedWhileItsTrainedRunIsHeld) {
  begin({job(0), job(100)});
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  end(0, kAsAsked);
  EXPECT_FALSE(scheduler_->release(id_of(100)));
  EXPECT_EQ(state(100), RunState::kHeld);
}

TEST_F(UserRequests, ADerivedRunIsTriedAgainWithItsTrainedRunAndNotWithoutIt) {
  begin({job(0), job(100)});
  end(0, kExitSettingsRefused);
  ASSERT_EQ(state(0), RunState::kFailed);
  ASSERT_EQ(state(100), RunState::kFailed);
  EXPECT_FALSE(scheduler_->retry(id_of(100)));
  EXPECT_EQ(state(100), RunState::kFailed);
  EXPECT_TRUE(scheduler_->retry(id_of(0)));
  EXPECT_TRUE(scheduler_->retry(id_of(100))) << "it was queued with the other";
  finish(0);
  EXPECT_EQ(state(100), RunState::kRunning);
}

TEST_F(UserRequests, AHeldRunOfACancelledSweepIsCancelledWhenItIsReleasedWhileItStops) {
  begin({job(0)});
  EXPECT_TRUE(scheduler_->hold(id_of(0)));
  scheduler_->cancel("s");
  EXPECT_TRUE(scheduler_->release(id_of(0)));
  end(0, kAsAsked);
  EXPECT_EQ(state(0), RunState::kCancelled);
}

TEST_F(UserRequests, ARunThatIsDiscardedHasNothingAndIsTrainedWhenItsSweepIsSubmittedAgain) {
  begin({job(0), job(1)});
  EXPECT_FALSE(scheduler_->discard(id_of(0))) << "it is running";
  finish(0);
  finish(1);
  EXPECT_TRUE(scheduler_->discard(id_of(0)));
  EXPECT_TRUE(scheduler_->discard(id_of(0))) << "again";
  EXPECT_EQ(state(0), RunState::kCancelled);
  EXPECT_FALSE(fs::exists(workspace_.run(id_of(0)).root()));
  EXPECT_TRUE(store_->attempts_of(id_of(0)).empty());
  EXPECT_FALSE(store_->recorded_result(id_of(0)));
  launcher_.starts.clear();
  add("s", {job(0), job(1)});
  EXPECT_EQ(launcher_.starts, ids({0}));
  finish(0);
  EXPECT_EQ(state(0), RunState::kDone);
  EXPECT_FALSE(scheduler_->discard("0000000000000000"));
}

TEST_F(UserRequests, AFailedOrHeldRunIsDiscardedToo) {
  begin({job(0), job(1)});
  end(0, kExitSettingsRefused);
  EXPECT_TRUE(scheduler_->hold(id_of(1)));
  end(1, kAsAsked);
  for (const int run : {0, 1}) {
    EXPECT_TRUE(scheduler_->discard(id_of(run))) << run;
    EXPECT_EQ(state(run), RunState::kCancelled) << run;
  }
}

TEST_F(UserRequests, ADerivedRunThatWasMadeFromAnEarlierResultIsMadeAgainWhenThereIsAnother) {
  begin({job(0), job(100)});
  finish(0);
  const RunDirectory trained = workspace_.run(id_of(0)), derived = workspace_.run(id_of(100));
  const auto make_derived = [&] {
    test::write_text(derived.scores(), R"({"wide.test.bleu": 20})");
    write_done(derived, "done", 0, "decode", {"scores.json"}, {{id_of(0) + "/DONE", sha256_of_file(trained.done())}});
    end(100, 0);
  };
  make_derived();
  ASSERT_EQ(states(1), std::vector{RunState::kDone});
  ASSERT_EQ(state(100), RunState::kDone);

  EXPECT_TRUE(scheduler_->discard(id_of(0)));
  add("s", {job(0), job(100)});
  EXPECT_EQ(state(100), RunState::kDone) << "it may be of the same result";
  write_result(0);
  test::write_text(trained.scores(), R"({"test.bleu": 21})");
  write_done(trained, "done", 10, "max_updates", {"scores.json"});
  launcher_.starts.clear();
  end(0, 0);
  EXPECT_EQ(launcher_.starts, ids({100}));
  EXPECT_FALSE(fs::exists(derived.done()));
  make_derived();
  EXPECT_EQ(state(100), RunState::kDone);
}

TEST_F(UserRequests, ADerivedRunThatWasMadeFromAnEarlierResultIsMadeAgainWhenItsSweepIsSubmitted) {
  begin({job(0)});
  finish(0);
  const RunDirectory trained = workspace_.run(id_of(0)), derived = workspace_.run(id_of(100));
  add("d", {job(100)});
  test::write_text(derived.scores(), R"({"wide.test.bleu": 20})");
  write_done(derived, "done", 0, "decode", {"scores.json"}, {{id_of(0) + "/DONE", sha256_of_file(trained.done())}});
  end(100, 0);
  ASSERT_EQ(state(100), RunState::kDone);
  scheduler_->drop("d");
  EXPECT_TRUE(scheduler_->discard(id_of(0)));
  add("s", {job(0)});
  write_result(0);
  test::write_text(trained.scores(), R"({"test.bleu": 21})");
  write_done(trained, "done", 10, "max_updates", {"scores.json"});
  end(0, 0);
  ASSERT_EQ(state(100), RunState::kDone) << "nobody asks for it";
  launcher_.starts.clear();
  add("d", {job(100)});
  EXPECT_EQ(launcher_.starts, ids({100}));
  EXPECT_EQ(state(100), RunState::kRunning);
  EXPECT_FALSE(fs::exists(derived.done()));
}

}  // namespace
}  // namespace tearless::harness::scheduler_test
