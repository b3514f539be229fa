// The operations on CUDA's kernels, held to the same cases as the processor's: here the kernels' bodies run on the
// processor, and where there is a GPU the kernels themselves.
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cuda/cuda_library.h"
#include "engine/cuda/kernels_on_host.h"
#include "engine/ops/backend.h"
#include "tests/engine/ops/op_cases.h"

namespace tearless::engine {
namespace {

TEST(CudaOperations, WithBodiesRunOnTheProcessorAgreeWithTheJudge) {
  const CpuBackend bodies{"CUDA's bodies", true, &float_kernels_on_host, nullptr, &optimiser_kernels_on_host};
  const std::string_view before = cpu_backend().name;
  use_cpu_backend(bodies);
  for (const test::OpCase& c : test::all_cases()) {
    SCOPED_TRACE(c.name);
    test::expect_agreement_with_judge(c, at::kFloat, test::kFloatTolerance);
  }
  use_cpu_backend(before);
}

TEST(CudaOperations, OnAGpuAgreeWithTheJudge) {
  bool found = false;
  try {
    found = !cuda_devices().empty();
  } catch (const UserError&) {
  }
  if (!found) GTEST_SKIP() << "needs an NVIDIA GPU";
  use_cuda_kernels(*cuda_kernels().float_kernels, *cuda_kernels().optimiser);
  for (const test::OpCase& c : test::all_cases()) {
    SCOPED_TRACE(c.name);
    test::expect_agreement_with_judge(c, at::kFloat, test::kFloatTolerance, at::Device(at::kCUDA, 0));
  }
}

}  // namespace
}  // namespace tearless::engine
