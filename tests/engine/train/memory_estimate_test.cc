#include "engine/train/execution.h"

#include <gtest/gtest.h>

namespace tearless::engine::memory_estimate_test {
namespace {

using Device = ExecutionOptions::Device;
using Precision = ExecutionOptions::Precision;
using Ops = ExecutionOptions::Ops;

int64_t estimate(Device device, Precision precision, Ops ops, int64_t parameters, int64_t saved) {
  ExecutionOptions execution;
  execution.device = device;
  execution.precision = precision;
  execution.ops = ops;
  return estimated_memory_bytes(execution, parameters, saved);
}

constexpr int64_t kGib = int64_t{1} << 30;

TEST(MemoryEstimate, OnTheCpuIsFourNumbersAParameterAndTheRowsOfABatch) {
  EXPECT_EQ(estimate(Device::kCpu, Precision::kFp32, Ops::kFast, 1000, 0), 16'000);
  EXPECT_EQ(estimate(Device::kCpu, Precision::kFp32, Ops::kFast, 1000, 500), 16'000 + 4 * 500);
  EXPECT_EQ(estimate(Device::kCpu, Precision::kFp32, Ops::kReference, 1000, 500), 16'000 + 4 * 500);
}

TEST(MemoryEstimate, OnAGpuHasTheContextAndTheRowsOnceMoreForCapturedUpdates) {
  EXPECT_EQ(estimate(Device::kCuda, Precision::kFp32, Ops::kFast, 1000, 500), kGib + 16'000 + 2 * 4 * 500);
  EXPECT_EQ(estimate(Device::kCuda, Precision::kFp32, Ops::kReference, 1000, 500), kGib + 16'000 + 4 * 500);
  EXPECT_EQ(estimate(Device::kCuda, Precision::kTf32, Ops::kFast, 1000, 500), kGib + 16'000 + 2 * 4 * 500);
}

TEST(MemoryEstimate, InBf16OnTheCpuIsThatOfFp32) {
  EXPECT_EQ(estimate(Device::kCpu, Precision::kBf16, Ops::kFast, 1000, 500), 16'000 + 4 * 500);
}

TEST(MemoryEstimate, InBf16OnAGpuHasHalfTheRowsAndACopyOfTheParameters) {
  EXPECT_EQ(estimate(Device::kCuda, Precision::kBf16, Ops::kFast, 1000, 500), kGib + 18'000 + 2 * 2 * 500);
  EXPECT_EQ(estimate(Device::kCuda, Precision::kBf16, Ops::kReference, 1000, 500), kGib + 18'000 + 2 * 500);
}

}  // namespace
}  // namespace tearless::engine::memory_estimate_test
