// Tests of what CUDA runs as a whole: each in fp32 and bf16, with the kernels' bodies on the processor and, where there
// is one, on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "engine/device.h"
#include "engine/model/parameters.h"
#include "tests/engine/cuda/bodies.h"
#include "tests/support/sanitized.h"

namespace tearless::engine::test {

struct DeviceSetting {
  const char* name;
  RowPrecision precision;
  at::Device device;
};

class OnDevices : public testing::TestWithParam<DeviceSetting> {
 public:
  ~OnDevices() override { use_cpu_backend(before_); }

 protected:
  void SetUp() override {
    if (tearless::test::kSanitized && GetParam().precision == RowPrecision::kFp32) {
      GTEST_SKIP() << "a minute under the sanitizers; bf16's kernels are the same templates";
    }
    if (on_processor()) {
      use_cpu_backend(cuda_bodies());
    } else if (gpu_is_there()) {
      open_device({.device = ExecutionOptions::Device::kCuda});
    } else {
      GTEST_SKIP() << "needs an NVIDIA GPU";
    }
  }
  static bool on_processor() { return GetParam().device.is_cpu(); }

 private:
  std::string_view before_ = cpu_backend().name;
};

inline auto device_settings() {
  const at::Device gpu(at::kCUDA, 0);
  return testing::Values(DeviceSetting{"fp32_on_the_processor", RowPrecision::kFp32, at::kCPU},
                         DeviceSetting{"bf16_on_the_processor", RowPrecision::kBf16, at::kCPU},
                         DeviceSetting{"fp32_on_a_gpu", RowPrecision::kFp32, gpu},
                         DeviceSetting{"bf16_on_a_gpu", RowPrecision::kBf16, gpu});
}
inline std::string device_setting_name(const testing::TestParamInfo<DeviceSetting>& info) { return info.param.name; }

}  // namespace tearless::engine::test
