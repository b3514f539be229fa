// What a process that runs out of memory advises.
#include "engine/train/phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace tearless::engine::phase_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(OutOfMemory, AdvisesASmallerTrainingBatchOnlyWhileItTrains) {
  EXPECT_THAT(out_of_memory(Phase::kTraining), HasSubstr("train.batch.tokens"));
  EXPECT_THAT(out_of_memory(Phase::kEvaluating),
              testing::AllOf(HasSubstr("scored"), HasSubstr("longest lines"), HasSubstr("decode.batch_tokens")));
  EXPECT_THAT(out_of_memory(Phase::kPreparing), HasSubstr("corpus"));
  for (const std::optional<Phase> other : {std::optional(Phase::kEvaluating), std::optional(Phase::kPreparing),
                                           std::optional(Phase::kPublishing), std::optional<Phase>()}) {
    EXPECT_THAT(out_of_memory(other), Not(HasSubstr("train.batch.tokens")));
  }
}

TEST(OutOfMemory, KnowsThePhaseThatTheProcessWroteLast) {
  const test::TempFolder folder;
  const RunDirectory run(folder.path());
  for (const Phase phase : {Phase::kPreparing, Phase::kTraining, Phase::kEvaluating, Phase::kPublishing}) {
    write_phase(run, 1, phase);
    EXPECT_EQ(phase_of_process(), phase);
  }
}

}  // namespace
}  // namespace tearless::engine::phase_test
