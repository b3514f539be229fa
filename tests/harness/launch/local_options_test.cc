// The GPUs that a launcher of this machine shares out: those of the driver that CUDA_VISIBLE_DEVICES admits.
#include "harness/launch/local_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace tearless::harness::local_options_test {
namespace {

std::vector<std::string> uuids(const std::vector<Device>& devices) {
  std::vector<std::string> all;
  for (const Device& device : devices) all.push_back(device.uuid);
  return all;
}

class LocalOptionsTest : public testing::Test {
 protected:
  LocalOptionsTest() {
    test::write_text(folder_ / "gpus", "gpu GPU-aa11 1000 0 One\ngpu GPU-aa22 2000 0 Two\ngpu GPU-bb33 3000 0 Three\n");
    ::setenv("TEARLESS_NVML", test::program("libfake-nvml.so").c_str(), 1);
    ::setenv("TEARLESS_FAKE_NVML", (folder_ / "gpus").c_str(), 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  ~LocalOptionsTest() override {
    for (const char* name : {"TEARLESS_NVML", "TEARLESS_FAKE_NVML", "CUDA_VISIBLE_DEVICES"}) ::unsetenv(name);
  }
  static std::vector<std::string> found() { return uuids(local_options({}).capacity.devices); }

  test::TempFolder folder_;
};

TEST_F(LocalOptionsTest, AllGpusOfTheDriverAreSharedOut) {
  EXPECT_EQ(found(), (std::vector<std::string>{"GPU-aa11", "GPU-aa22", "GPU-bb33"}));
  const Device last = local_options({}).capacity.devices.at(2);
  EXPECT_EQ(last.memory_bytes, 3000);
  EXPECT_EQ(last.name, "Three");
  EXPECT_EQ(last.index, 2);
}

TEST_F(LocalOptionsTest, WithoutADriverThereAreNone) {
  ::setenv("TEARLESS_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  EXPECT_EQ(found(), std::vector<std::string>());
}

TEST_F(LocalOptionsTest, CudaVisibleDevicesAdmitsSomeOfThem) {
  const auto visible = [](const char* value) {
    ::setenv("CUDA_VISIBLE_DEVICES", value, 1);
    return found();
  };
  EXPECT_EQ(visible("1"), std::vector<std::string>{"GPU-aa22"});
  EXPECT_EQ(visible("2, 0"), (std::vector<std::string>{"GPU-bb33", "GPU-aa11"}));
  EXPECT_EQ(visible("GPU-bb,GPU-aa22"), (std::vector<std::string>{"GPU-bb33", "GPU-aa22"}));
  EXPECT_EQ(visible("0,0"), std::vector<std::string>{"GPU-aa11"});
  EXPECT_EQ(visible("0,7,1"), std::vector<std::string>{"GPU-aa11"}) << "up to the first that names none";
  EXPECT_EQ(visible(""), std::vector<std::string>());
  EXPECT_EQ(visible("-1"), std::vector<std::string>());
  EXPECT_EQ(visible("NoDevFiles"), std::vector<std::string>());
}

// As in a job of Slurm.
TEST_F(LocalOptionsTest, CudaVisibleDevicesAdmitsInstancesOfADividedGpu) {
  test::write_text(folder_ / "gpus", "gpu GPU-aa 9 0 One\nmig 0\npart 0 MIG-1a 4 0 Half\npart 0 MIG-1b 4 0 Half\n");
  EXPECT_EQ(found(), (std::vector<std::string>{"MIG-1a", "MIG-1b"}));
  ::setenv("CUDA_VISIBLE_DEVICES", "MIG-1b", 1);
  EXPECT_EQ(found(), std::vector<std::string>{"MIG-1b"});
}

TEST_F(LocalOptionsTest, APartOfTheMachineIsSharedOut) {
  const Capacity all = local_options({}).capacity;
  const Capacity part = local_options({.cores = 1, .memory_bytes = 1000}).capacity;
  EXPECT_EQ(part.cores, std::vector<int>{all.cores.front()});
  EXPECT_EQ(part.memory_bytes, 1000);
  const Capacity more = local_options({.cores = 100'000, .memory_bytes = int64_t{1} << 60}).capacity;
  EXPECT_EQ(more.cores, all.cores);
  EXPECT_EQ(more.memory_bytes, all.memory_bytes);
}

}  // namespace
}  // namespace tearless::harness::local_options_test
