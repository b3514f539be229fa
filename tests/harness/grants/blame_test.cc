#include "harness/grants/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tearless::harness::blame_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;

class BlameTest : public testing::Test {
 protected:
  // Of a run on a host, while runs could be tried on these hosts.
  bool is_free(const std::string& run, const std::string& host, const std::set<std::string>& there = {"n1", "n2"}) {
    return blame_.note_failure(run, host, there, /*is_sound=*/false, now_);
  }

  Blame blame_;
  double now_ = 1000;
};

TEST_F(BlameTest, TheFirstFailureOfARunIsItsMachines) {
  EXPECT_TRUE(is_free("a", "n1"));
  EXPECT_THAT(blame_.not_on("a", now_), ElementsAre("n1"));
  EXPECT_THAT(blame_.not_on("b", now_), IsEmpty());
  EXPECT_THAT(blame_.left_out(now_), IsEmpty()) << "one run alone is no reason";
}

TEST_F(BlameTest, TheNextOneIsItsOwnWhereverThatIs) {
  EXPECT_TRUE(is_free("a", "n1"));
  EXPECT_FALSE(is_free("a", "n2"));
  EXPECT_FALSE(is_free("a", "n1"));
  EXPECT_TRUE(is_free("b", "n1"));
  EXPECT_FALSE(is_free("b", "n1")) << "on the same machine, after ten minutes without another one";
}

TEST_F(BlameTest, AfterTenMinutesItIsTriedThereAgain) {
  is_free("a", "n1");
  now_ += 599;
  EXPECT_THAT(blame_.not_on("a", now_), ElementsAre("n1"));
  now_ += 1;
  EXPECT_THAT(blame_.not_on("a", now_), IsEmpty());
}

TEST_F(BlameTest, WithOneMachineAloneNothingIsFree) {
  EXPECT_FALSE(is_free("a", "n1", {"n1"}));
  EXPECT_FALSE(is_free("b", "n1", {"n1"}));
  EXPECT_THAT(blame_.left_out(now_), IsEmpty());
  EXPECT_THAT(blame_.not_on("a", now_), IsEmpty());
}

TEST_F(BlameTest, AMachineOnWhichARunGotOnIsAnotherOneThoughItsWorkerIsGone) {
  blame_.note_progress("z", "n2");
  EXPECT_TRUE(is_free("a", "n1", {"n1"}));
}

TEST_F(BlameTest, TwoRunsAccuseAMachineForAnHour) {
  is_free("a", "n1");
  now_ += 3000;
  is_free("b", "n1");
  ASSERT_THAT(blame_.left_out(now_), ElementsAre(Key("n1")));
  EXPECT_THAT(blame_.left_out(now_).at("n1").runs, ElementsAre("a", "b"));
  EXPECT_EQ(blame_.left_out(now_).at("n1").until, now_ + 3600);
  EXPECT_THAT(blame_.not_on("c", now_), ElementsAre("n1"));
  EXPECT_THAT(blame_.left_out(now_ + 3599), ElementsAre(Key("n1")));
  EXPECT_THAT(blame_.left_out(now_ + 3600), IsEmpty());
  EXPECT_THAT(blame_.not_on("c", now_ + 3600), IsEmpty());
}

TEST_F(BlameTest, TwoRunsThatFailMoreThanAnHourApartDoNot) {
  is_free("a", "n1");
  now_ += 3600;
  is_free("b", "n1");
  EXPECT_THAT(blame_.left_out(now_), IsEmpty());
}

TEST_F(BlameTest, AMachineOnWhichARunGetsOnIsSound) {
  is_free("a", "n1");
  is_free("b", "n1");
  blame_.note_progress("c", "n1");
  EXPECT_THAT(blame_.left_out(now_), IsEmpty());
  EXPECT_THAT(blame_.not_on("a", now_), ElementsAre("n1")) << "it may not be for this run";
  blame_.note_failure("d", "n1", {"n1", "n2"}, /*is_sound=*/true, now_);
  blame_.note_failure("e", "n1", {"n1", "n2"}, /*is_sound=*/true, now_);
  EXPECT_THAT(blame_.left_out(now_), IsEmpty());
}

TEST_F(BlameTest, ThatTheRunGetsOnElsewhereDoesNotClearTheMachine) {
  is_free("a", "n1");
  blame_.note_progress("a", "n2");
  is_free("b", "n1");
  EXPECT_THAT(blame_.left_out(now_), ElementsAre(Key("n1")));
  EXPECT_TRUE(is_free("a", "n3", {"n2", "n3"})) << "and it has one failure free again";
}

// A program that fails everywhere must not leave out one machine after another.
TEST_F(BlameTest, ARunThatFailsOnASecondMachineClearsTheFirst) {
  EXPECT_TRUE(is_free("a", "n1"));
  EXPECT_TRUE(is_free("b", "n1"));
  EXPECT_THAT(blame_.left_out(now_), ElementsAre(Key("n1")));
  EXPECT_FALSE(is_free("a", "n2"));
  EXPECT_THAT(blame_.left_out(now_), IsEmpty());
  EXPECT_FALSE(is_free("b", "n2"));
  EXPECT_TRUE(is_free("c", "n2"));
  EXPECT_THAT(blame_.left_out(now_), IsEmpty());
}

TEST_F(BlameTest, TheLastMachineIsNotLeftOut) {
  is_free("a", "n1");
  is_free("b", "n1");
  EXPECT_FALSE(is_free("c", "n2")) << "n1 is no other one: it is left out";
  EXPECT_FALSE(is_free("d", "n2"));
  EXPECT_THAT(blame_.left_out(now_), ElementsAre(Key("n1")));
}

}  // namespace
}  // namespace tearless::harness::blame_test
