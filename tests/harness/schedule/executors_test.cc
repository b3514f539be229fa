// Runs of executors: machines that others have, and that may have room for nothing for hours.
#include <functional>
#include <map>
#include <string>

#include "harness/schedule/job_queue.h"
#include "tests/harness/schedule/scheduler_fixture.h"

namespace tearless::harness::executors_test {
namespace {

using scheduler_test::SchedulerTest;
using testing::ElementsAre;
using testing::IsEmpty;
using Refusal = Launcher::Refusal;

Needs far(int threads = 1) { return {.threads = threads, .executor = "far"}; }

class Queue : public testing::Test {
 protected:
  void push(const std::string& id, const Needs& needs) { queue_.push(id, needs, {.place = places_++}); }
  std::string take(double now, const std::map<Needs, Refusal>& refused) {
    asked_ = 0;
    return queue_
        .take(now,
              [&](const Needs& needs) {
                ++asked_;
                const auto found = refused.find(needs);
                return found == refused.end() ? std::nullopt : std::optional(found->second);
              })
        .value_or("");
  }

  JobQueue queue_;
  int64_t places_ = 0;
  int asked_ = 0;
};

TEST_F(Queue, AKindThatWaitsForMachinesBlocksNobody) {
  push("waits", far(8));
  for (const char* id : {"a", "b", "c"}) push(id, far(1));
  const std::map<Needs, Refusal> refused = {{far(8), {.why = "no worker", .others_may_pass = true}}};
  EXPECT_EQ(take(0, refused), "a");
  EXPECT_EQ(take(10'000, refused), "b");
  EXPECT_EQ(take(20'000, refused), "c") << "it was never skipped: no machine was taken from it";
  EXPECT_EQ(take(20'000, {}), "waits");
}

TEST_F(Queue, PatienceIsWithinAnExecutor) {
  push("large", far(8));
  push("small", far(1));
  push("local", {});
  push("local too", {});
  push("small too", far(1));
  const std::map<Needs, Refusal> refused = {{far(8), {.why = "no room"}}};
  EXPECT_EQ(take(0, refused), "small");
  EXPECT_EQ(take(599, refused), "local");
  EXPECT_EQ(take(601, refused), "local too") << "what it waits for is not here";
  EXPECT_EQ(take(601, refused), "") << "and the small one of its executor waits for it now";
  EXPECT_EQ(take(601, {}), "large");
}

TEST_F(Queue, WhatIsSkippedElsewhereHasNotWaited) {
  push("large", far(8));
  push("local", {});
  push("small", far(1));
  push("small too", far(1));
  const std::map<Needs, Refusal> refused = {{far(8), {.why = "no room"}}};
  EXPECT_EQ(take(0, refused), "local");
  EXPECT_EQ(take(1000, refused), "small") << "its patience begins with this one";
  EXPECT_EQ(take(1001, refused), "small too");
}

TEST_F(Queue, WhenNothingFitsEachKindIsAskedOnce) {
  for (int i = 0; i < 1000; ++i) push(std::to_string(i), i % 2 == 0 ? far() : Needs{});
  EXPECT_EQ(take(0, {{far(), {.why = "no worker", .others_may_pass = true}}, {Needs{}, {.why = "no room"}}}), "");
  EXPECT_EQ(asked_, 2);
}

TEST_F(SchedulerTest, ARunHasTheExecutorOfItsSweepThatWasSubmittedLast) {
  policy_.executor = "far";
  begin(jobs(1));
  EXPECT_EQ(launcher_.alive.at(scheduler_test::id_of(0)).executor, "far");
  policy_.executor = "";
  add("t", {job(1)});
  EXPECT_EQ(launcher_.alive.at(scheduler_test::id_of(1)).executor, "");
}

std::string kind_of(const std::map<std::string, Needs>& alive, int number) {
  return alive.at(scheduler_test::id_of(number)).kind;
}

TEST_F(SchedulerTest, AllRunsOfASweepAreOnTheKindOfDeviceOfItsFirstAttempt) {
  policy_.same_device = true;
  launcher_.device = "NVIDIA H100";
  begin(jobs(3));
  EXPECT_THAT(alive(), set_of({0})) << "one goes first";
  EXPECT_EQ(kind_of(launcher_.alive, 0), "");
  EXPECT_EQ(launcher_.alive.at(scheduler_test::id_of(0)).first_of, "") << "the launcher knows no sweeps";
  EXPECT_THAT(why(1), testing::HasSubstr("the first attempt of its sweep, which decides the kind of device of all"));
  later();
  EXPECT_THAT(alive(), set_of({0, 1}));
  EXPECT_EQ(kind_of(launcher_.alive, 1), "NVIDIA H100");
  launcher_.device = "cpu";
  finish(0);
  EXPECT_EQ(kind_of(launcher_.alive, 2), "NVIDIA H100") << "of the first attempt, not of the last";
  restart_beside_all();
  scheduler_->begin();
  add("s", jobs(4), Scheduler::Add::kRestart);
  finish(1);
  EXPECT_EQ(kind_of(launcher_.alive, 3), "NVIDIA H100") << "the next service knows it";
}

TEST_F(SchedulerTest, OnACpuTheKindIsTheProcessor) {
  policy_.same_device = true;
  begin(jobs(2));
  later();
  EXPECT_EQ(kind_of(launcher_.alive, 1), processor_name());
}

TEST_F(SchedulerTest, WhereTheFirstAttemptNeverBeganAnotherRunGoesFirst) {
  policy_.same_device = true;
  launcher_.die_at_once = true;
  begin(jobs(2));
  later();
  EXPECT_THAT(alive(), set_of({0}));
  scheduler_->hold(scheduler_test::id_of(0));
  launcher_.alive.clear();
  launcher_.on_end(scheduler_test::id_of(0), {.never_began = true});
  EXPECT_THAT(alive(), set_of({1}));
  EXPECT_EQ(kind_of(launcher_.alive, 1), "");
}

TEST_F(SchedulerTest, WithoutSameDeviceEachRunGoesWhereRoomIs) {
  begin(jobs(2));
  later();
  EXPECT_THAT(alive(), set_of({0, 1}));
  EXPECT_EQ(kind_of(launcher_.alive, 1), "");
}

TEST_F(SchedulerTest, ATakenBackGrantIsNoEnd) {
  launcher_.die_at_once = true;  // no start.json is written
  begin(jobs(1));
  for (int i = 0; i < 5; ++i) {
    launcher_.alive.clear();
    launcher_.on_end(scheduler_test::id_of(0), {.never_began = true});
    EXPECT_TRUE(launcher_.alive.contains(scheduler_test::id_of(0))) << "it is started again at once";
  }
  EXPECT_EQ(scheduler_->paused("s"), "");
  EXPECT_THAT(store_->attempts_of(scheduler_test::id_of(0)), IsEmpty());
  pause("s");
  launcher_.alive.clear();
  launcher_.on_end(scheduler_test::id_of(0), {.never_began = true});
  EXPECT_EQ(state(0), RunState::kQueued);
  scheduler_->resume("s");
  scheduler_->hold(scheduler_test::id_of(0));
  launcher_.alive.clear();
  launcher_.on_end(scheduler_test::id_of(0), {.never_began = true});
  EXPECT_EQ(state(0), RunState::kHeld);
}

}  // namespace
}  // namespace tearless::harness::executors_test
