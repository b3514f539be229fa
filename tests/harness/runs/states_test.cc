#include "harness/runs/states.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tearless::harness::states_test {
namespace {

constexpr RunState kAll[] = {RunState::kQueued, RunState::kRunning, RunState::kDone,        RunState::kDiverged,
                             RunState::kFailed, RunState::kHeld,    RunState::kWaitingData, RunState::kCancelled};

TEST(States, AreNamedOneToOne) {
  for (const RunState state : kAll) EXPECT_EQ(state_named(name_of(state)), state);
  EXPECT_EQ(name_of(RunState::kWaitingData), "waiting_data");
  EXPECT_EQ(name_of(FailureClass::kOutOfMemory), "out_of_memory");
  EXPECT_EQ(failure_named(""), FailureClass::kNone);
  EXPECT_THROW(state_named("finished"), std::logic_error);
}

TEST(States, CountsAreWrittenInTheOrderOfTheStates) {
  EXPECT_EQ(text_of(StateCounts{{RunState::kFailed, 1}, {RunState::kQueued, 12}}), "12 queued, 1 failed");
  EXPECT_EQ(text_of(StateCounts()), "");
}

TEST(States, OnlyAQueuedRunCanStart) {
  for (const RunState state : kAll) EXPECT_EQ(is_legal(state, RunState::kRunning), state == RunState::kQueued);
}

TEST(States, EveryStateButRunningLeadsBackToTheQueueSomehow) {
  for (const RunState state : kAll) EXPECT_EQ(is_legal(state, RunState::kQueued), state != RunState::kQueued);
}

TEST(States, AResultIsNeverReplacedByAnother) {
  for (const RunState result : {RunState::kDone, RunState::kDiverged}) {
    for (const RunState state : kAll) EXPECT_EQ(is_legal(result, state), state == RunState::kQueued);
  }
}

}  // namespace
}  // namespace tearless::harness::states_test
