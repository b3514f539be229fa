// One update, operation by operation.
#include "engine/train/updater.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/train/captured_updater.h"
#include "tests/engine/train/toy.h"

namespace tearless::engine::updater_test {
namespace {

TEST(Updater, WithAProfileWaitsForTheDeviceAfterEachOperationAndTheOptimiser) {
  test::Toy toy;
  TapeProfile profile;
  int64_t waits = 0;
  profile.wait = [&] { ++waits; };
  const TrainOptions train;
  const ExecutionOptions execution;
  OptimiserState moments(train.optimiser.chosen(), toy.parameters().values());
  const auto updater = make_updater(toy, train, execution, moments, &profile);
  toy.start_pass(0);
  updater->start(1, 0, 0.1);
  ASSERT_EQ(updater->collect().size(), 1u);
  int64_t expected = 0;
  for (const auto& [operation, times] : profile.operations) {
    EXPECT_EQ(times.calls, 1) << operation;
    EXPECT_GE(times.forward_seconds, 0) << operation;
    expected += operation == "clip, Adam" ? 1 : 2;  // an operation of the tape goes forward and backward
  }
  EXPECT_EQ(profile.operations.count("clip, Adam"), 1u);
  EXPECT_GT(expected, 1);
  EXPECT_EQ(waits, expected);
}

TEST(CapturedUpdater, OfSeveralBatchesOrOfAnotherOptimiserThanAdamIsRefused) {
  test::Toy toy;
  TrainOptions one_batch, two_batches, sgd;
  two_batches.accumulate = 2;
  sgd.optimiser.kind = "sgd";
  OptimiserState moments(one_batch.optimiser.chosen(), toy.parameters().values());
  const auto make = [&](const TrainOptions& train) { CapturedUpdater(toy, train, moments, /*capture=*/nullptr); };
  EXPECT_NO_THROW(make(one_batch));
  EXPECT_THROW(make(two_batches), std::logic_error);
  EXPECT_THROW(make(sgd), std::logic_error);
}

}  // namespace
}  // namespace tearless::engine::updater_test
