#include "engine/train/execution.h"

#include <gtest/gtest.h>

namespace tearless::engine::memory_estimate_test {
namespace {

using Device = ExecutionOptions::Device;
using Precision = ExecutionOptions::Precision;
using Ops = ExecutionOptions::Ops;

constexpr int64_t kGib = int64_t{1} << 30;

// Of 1000 parameters and 500 saved numbers. On a GPU: its context, the rows once more for captured updates, and in bf16
// half the rows and a copy of the parameters.
TEST(MemoryEstimate, IsFourNumbersAParameterAndTheRowsOfABatch) {
  struct Row {
    Device device;
    Precision precision;
    Ops ops;
    int64_t bytes;
  };
  for (const Row& row : {Row{Device::kCpu, Precision::kFp32, Ops::kFast, 16'000 + 4 * 500},
                         Row{Device::kCpu, Precision::kFp32, Ops::kReference, 16'000 + 4 * 500},
                         Row{Device::kCpu, Precision::kBf16, Ops::kFast, 16'000 + 4 * 500},
                         Row{Device::kCuda, Precision::kFp32, Ops::kFast, kGib + 16'000 + 2 * 4 * 500},
                         Row{Device::kCuda, Precision::kFp32, Ops::kReference, kGib + 16'000 + 4 * 500},
                         Row{Device::kCuda, Precision::kTf32, Ops::kFast, kGib + 16'000 + 2 * 4 * 500},
                         Row{Device::kCuda, Precision::kBf16, Ops::kFast, kGib + 18'000 + 2 * 2 * 500},
                         Row{Device::kCuda, Precision::kBf16, Ops::kReference, kGib + 18'000 + 2 * 500}}) {
    ExecutionOptions execution;
    execution.device = row.device;
    execution.precision = row.precision;
    execution.ops = row.ops;
    EXPECT_EQ(estimated_memory_bytes(execution, 1000, 500, /*buffers=*/2), row.bytes);
    EXPECT_EQ(estimated_memory_bytes(execution, 1000, 500, /*buffers=*/1), row.bytes - 4000);
  }
}

TEST(MemoryEstimate, HasTheCheckpointThatMayWait) {
  ExecutionOptions execution;
  constexpr int64_t kLarge = (64 << 20) / 12;  // parameters whose checkpoint has 64 MiB, all but a few bytes
  EXPECT_EQ(estimated_memory_bytes(execution, kLarge, 0, 2), 16 * kLarge);
  EXPECT_EQ(estimated_memory_bytes(execution, kLarge + 1, 0, 2), 28 * (kLarge + 1));
  execution.checkpoint_share = 1;
  EXPECT_EQ(estimated_memory_bytes(execution, kLarge + 1, 0, 2), 16 * (kLarge + 1));
  execution.checkpoint_share = 0;
  EXPECT_EQ(estimated_memory_bytes(execution, 10, 0, 2), 280);
}

}  // namespace
}  // namespace tearless::engine::memory_estimate_test
