#include "engine/cuda/cuda_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "tests/support/paths.h"

namespace tearless::engine::cuda_library_test {
namespace {

// First: the tests after it ask.
TEST(CudaLibrary, IsNotLoadedUnlessAskedFor) {
  const std::string maps = tearless::test::read_text("/proc/self/maps");
  EXPECT_EQ(maps.find("libtorch_cuda.so"), std::string::npos);
}

// Both branches are true claims on some machine: with a GPU it lists it, without one it says in a sentence what is
// missing.
TEST(CudaLibrary, ListsDevicesOrSaysWhatIsMissing) {
  try {
    for (const TearlessCudaDevice& device : cuda_devices()) {
      EXPECT_STRNE(device.name, "");
      EXPECT_THAT(device.uuid, testing::StartsWith("GPU-"));
      EXPECT_GT(device.memory_bytes, 0u);
    }
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                testing::AnyOf(testing::HasSubstr("libtearless_cuda.so"), testing::HasSubstr("NVIDIA driver")));
  }
}

TEST(CudaLibrary, SaysWhichDriverItNeeds) {
  EXPECT_EQ(driver_too_old(12080, 13000),
            "the NVIDIA driver knows CUDA 12.8 at most, and 13.0 is needed: install driver 580 or newer");
  EXPECT_EQ(driver_too_old(0, 13000), "there is no NVIDIA driver");
}

TEST(CudaLibrary, HandsOutEveryKernelOrSaysWhatIsMissing) {
  try {
    const Backend& kernels = cuda_backend();
    EXPECT_NE(kernels.float_kernels->add_norm, nullptr);
    EXPECT_NE(kernels.bf16_kernels->column_sums, nullptr);
    EXPECT_NE(kernels.optimiser->adam_on_device, nullptr);
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("libtearless_cuda.so"));
  }
}

}  // namespace
}  // namespace tearless::engine::cuda_library_test
