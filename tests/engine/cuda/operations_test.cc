// The operations with the CUDA kernels, on the same cases as with the CPU's: emulated on the processor, and where there
// is a GPU on it.
#include <gtest/gtest.h>

#include "tests/engine/cuda/bodies.h"
#include "tests/engine/ops/op_cases.h"

namespace tearless::engine::operations_test {
namespace {

void expect_agreement(const std::vector<test::OpCase>& cases, at::Device device) {
  for (const test::OpCase& c : cases) {
    SCOPED_TRACE(c.name);
    test::expect_agreement_with_reference(c, at::kFloat, test::kFloatTolerance, device);
    // A case of parameters alone has no rows that could be bf16.
    if (c.first_parameter > 0) test::expect_agreement_with_reference(c, at::kBFloat16, test::kBf16Tolerance, device);
  }
}

TEST(CudaOperations, OnTheProcessorAgreeWithTheFormula) {
  const std::string_view before = cpu_backend().name;
  use_cpu_backend(test::cuda_bodies());
  // Emulated, a sentence of 300 rows takes longer than all other cases; kernels_attention_test.cc has several tiles.
  expect_agreement(test::all_cases(/*longest=*/80), at::kCPU);
  use_cpu_backend(before);
}

TEST(CudaOperations, OnAGpuAgreeWithTheFormula) {
  if (!test::gpu_is_there()) GTEST_SKIP() << "needs an NVIDIA GPU";
  use_cuda_backend(cuda_backend());
  expect_agreement(test::all_cases(), at::Device(at::kCUDA, 0));
}

}  // namespace
}  // namespace tearless::engine::operations_test
