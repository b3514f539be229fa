// The operations on CUDA's kernels, held to the same cases as the processor's: here the kernels' bodies run on the
// processor, and where there is a GPU the kernels themselves.
#include <gtest/gtest.h>

#include "tests/engine/cuda/bodies.h"
#include "tests/engine/ops/op_cases.h"

namespace tearless::engine {
namespace {

void expect_agreement(const std::vector<test::OpCase>& cases, at::Device device) {
  for (const test::OpCase& c : cases) {
    SCOPED_TRACE(c.name);
    test::expect_agreement_with_judge(c, at::kFloat, test::kFloatTolerance, device);
    // What takes parameters alone has no rows to be in bf16.
    if (c.first_parameter > 0) test::expect_agreement_with_judge(c, at::kBFloat16, test::kBf16Tolerance, device);
  }
}

TEST(CudaOperations, WithBodiesRunOnTheProcessorAgreeWithTheJudge) {
  const std::string_view before = cpu_backend().name;
  use_cpu_backend(test::cuda_bodies());
  // Thread by thread, a sentence of 300 rows takes longer than all other cases; kernels_attention_test.cc has kernels
  // walk over several tiles.
  expect_agreement(test::all_cases(/*longest=*/80), at::kCPU);
  use_cpu_backend(before);
}

TEST(CudaOperations, OnAGpuAgreeWithTheJudge) {
  if (!test::gpu_is_there()) GTEST_SKIP() << "needs an NVIDIA GPU";
  use_cuda_backend(cuda_backend());
  expect_agreement(test::all_cases(), at::Device(at::kCUDA, 0));
}

}  // namespace
}  // namespace tearless::engine
