// The monitor over a stand-in for NVIDIA's library (tests/support/fake_nvml.cc): what it lists, and that nothing that
// is missing or lost is an exception.
#include "harness/launch/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/support/paths.h"

namespace tearless::harness::nvml_test {
namespace {

using testing::SizeIs;

class Nvml : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TEARLESS_FAKE_NVML", (folder_ / "script").c_str(), 1); }
  void TearDown() override { ::unsetenv("TEARLESS_FAKE_NVML"); }

  void write(std::string script, const std::string& more = "") {
    script += more;
    test::write_text(folder_ / "script", script);
  }

  const std::filesystem::path library_ = test::program("libfake-nvml.so");
  test::TempFolder folder_;
};

const char kTwoGpus[] =
    "gpu GPU-aaaa 25769803776 1073741824 NVIDIA GeForce RTX 4090\n"
    "gpu GPU-bbbb 85899345920 20000000000 NVIDIA H100 80GB HBM3\n"
    "process 1 4711 12000000000\n"
    "process 1 4712 -1\n";

TEST_F(Nvml, ListsDevicesByUuidWithNameAndMemory) {
  write(kTwoGpus);
  const NvmlMonitor monitor(library_);
  ASSERT_THAT(monitor.devices(), SizeIs(2));
  EXPECT_EQ(monitor.devices()[0].uuid, "GPU-aaaa");
  EXPECT_EQ(monitor.devices()[0].index, 0);
  EXPECT_EQ(monitor.devices()[1].uuid, "GPU-bbbb");
  EXPECT_EQ(monitor.devices()[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(monitor.devices()[1].memory_bytes, 85899345920);
  EXPECT_EQ(monitor.devices()[1].index, 1);
}

TEST_F(Nvml, ReportsUsedMemoryAndProcesses) {
  write(kTwoGpus);
  NvmlMonitor monitor(library_);
  const DeviceUse idle = monitor.use_of("GPU-aaaa");
  EXPECT_EQ(idle.error, "");
  EXPECT_EQ(idle.used_bytes, 1073741824);
  EXPECT_THAT(idle.processes, SizeIs(0));

  const DeviceUse busy = monitor.use_of("GPU-bbbb");
  EXPECT_EQ(busy.used_bytes, 20000000000);
  ASSERT_THAT(busy.processes, SizeIs(2));
  EXPECT_EQ(busy.processes[0].pid, 4711);
  EXPECT_EQ(busy.processes[0].bytes, 12000000000);
  EXPECT_EQ(busy.processes[1].pid, 4712);
  EXPECT_EQ(busy.processes[1].bytes, std::nullopt) << "the driver does not report it";
}

TEST_F(Nvml, ReportsMoreProcessesThanTheFirstListHasRoomFor) {
  std::string processes;
  for (int pid = 1; pid <= 300; ++pid) processes += "process 0 " + std::to_string(pid) + " 1000\n";
  write(kTwoGpus, processes);
  NvmlMonitor monitor(library_);
  const DeviceUse use = monitor.use_of("GPU-aaaa");
  EXPECT_EQ(use.error, "");
  ASSERT_THAT(use.processes, SizeIs(300));
  EXPECT_EQ(use.processes.back().pid, 300);
}

TEST_F(Nvml, SeesWhatChangedSinceTheLastCall) {
  write(kTwoGpus);
  NvmlMonitor monitor(library_);
  monitor.use_of("GPU-aaaa");
  write(kTwoGpus, "process 0 99 500\n");
  EXPECT_THAT(monitor.use_of("GPU-aaaa").processes, SizeIs(1));
}

TEST_F(Nvml, WithoutLibraryFunctionsDriverOrGpusThereAreNoDevices) {
  NvmlMonitor absent("/nowhere/libnvidia-ml.so.1");
  EXPECT_THAT(absent.devices(), SizeIs(0));
  EXPECT_EQ(absent.use_of("GPU-aaaa").error, "no GPU has this UUID");
  EXPECT_THAT(NvmlMonitor("libm.so.6").devices(), SizeIs(0));
  write("init 9\n", kTwoGpus);
  EXPECT_THAT(NvmlMonitor(library_).devices(), SizeIs(0));
  write("");
  EXPECT_THAT(NvmlMonitor(library_).devices(), SizeIs(0));
}

TEST_F(Nvml, AGpuThatCannotBeListedIsExcludedAndTheOthersKeepTheirIndex) {
  write(kTwoGpus, "lost 0 4\n");
  const NvmlMonitor monitor(library_);
  ASSERT_THAT(monitor.devices(), SizeIs(1));
  EXPECT_EQ(monitor.devices()[0].uuid, "GPU-bbbb");
  EXPECT_EQ(monitor.devices()[0].index, 1);
}

TEST_F(Nvml, AGpuThatIsLostLaterIsAnErrorInItsUseAlone) {
  write(kTwoGpus);
  NvmlMonitor monitor(library_);
  write(kTwoGpus, "lost 1 15\n");
  EXPECT_EQ(monitor.use_of("GPU-bbbb").error, "GPU is lost");
  EXPECT_EQ(monitor.use_of("GPU-aaaa").error, "");
  EXPECT_THAT(monitor.devices(), SizeIs(2));
}

TEST_F(Nvml, OfAGpuThatMigDividesItsInstancesAreTheDevices) {
  write(kTwoGpus,
        "mig 0\n"
        "part 0 MIG-1111 10737418240 1048576 NVIDIA A100 MIG 2g.10gb\n"
        "part 0 MIG-2222 5368709120 500000000 NVIDIA A100 MIG 1g.5gb\n"
        "process 0 98 4000\n"
        "process 3 99 4000\n");
  NvmlMonitor monitor(library_);
  ASSERT_THAT(monitor.devices(), SizeIs(3));
  EXPECT_EQ(monitor.devices()[0].uuid, "MIG-1111");
  EXPECT_EQ(monitor.devices()[1].uuid, "MIG-2222");
  EXPECT_EQ(monitor.devices()[1].name, "NVIDIA A100 MIG 1g.5gb");
  EXPECT_EQ(monitor.devices()[1].memory_bytes, 5368709120);
  EXPECT_EQ(monitor.devices()[1].index, 0) << "of the GPU";
  EXPECT_EQ(monitor.devices()[2].uuid, "GPU-bbbb");
  EXPECT_THAT(monitor.use_of("MIG-1111").processes, SizeIs(0));
  const DeviceUse use = monitor.use_of("MIG-2222");
  EXPECT_EQ(use.closed, "");
  EXPECT_EQ(use.used_bytes, 500000000);
  ASSERT_THAT(use.processes, SizeIs(1));
  EXPECT_EQ(use.processes[0].pid, 99);
}

TEST_F(Nvml, AGpuThatMigDividesWithoutInstancesOrLaterIsClosed) {
  write(kTwoGpus, "mig 0\n");
  NvmlMonitor monitor(library_);
  ASSERT_THAT(monitor.devices(), SizeIs(2));
  const char* closed =
      "is divided by MIG, and the service has seen no instance of it: start the service again once there are some "
      "(`nvidia-smi mig -cgi …`) or MIG has ended (`nvidia-smi -mig 0`)";
  EXPECT_EQ(monitor.use_of("GPU-aaaa").closed, closed);
  EXPECT_EQ(monitor.use_of("GPU-bbbb").closed, "");
  write(kTwoGpus, "mig 1\npart 1 MIG-1111 10 0 A part\n");
  EXPECT_EQ(monitor.use_of("GPU-aaaa").closed, "");
  EXPECT_EQ(monitor.use_of("GPU-bbbb").closed, closed);
}

TEST_F(Nvml, TheComputeModeClosesAGpuOrAdmitsOneProcess) {
  write(kTwoGpus);
  NvmlMonitor monitor(library_);
  for (const int mode : {0, 1, 2, 3}) {
    write(kTwoGpus, "mode 0 " + std::to_string(mode) + "\n");
    const DeviceUse use = monitor.use_of("GPU-aaaa");
    EXPECT_EQ(use.closed, mode == 2 ? "is in compute mode Prohibited (`nvidia-smi -c 0` ends it)" : "") << mode;
    EXPECT_EQ(use.one_process, mode == 1 || mode == 3) << mode;
  }
}

// This process takes the name of MPS's server for a while.
TEST_F(Nvml, TheServerOfMpsIsNobodysProcessAndSharesAnExclusiveGpu) {
  std::array<char, 16> name{};
  ASSERT_EQ(::prctl(PR_GET_NAME, name.data()), 0);
  write(kTwoGpus, "mode 1 3\nprocess 1 " + std::to_string(::getpid()) + " 30000000\n");
  NvmlMonitor monitor(library_);
  EXPECT_THAT(monitor.use_of("GPU-bbbb").processes, SizeIs(3));
  EXPECT_TRUE(monitor.use_of("GPU-bbbb").one_process);
  ::prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
  const DeviceUse shared = monitor.use_of("GPU-bbbb");
  ::prctl(PR_SET_NAME, name.data());
  EXPECT_THAT(shared.processes, SizeIs(2));
  EXPECT_FALSE(shared.one_process);
}

TEST_F(Nvml, ShutsTheLibraryDownAndCanOpenItAgain) {
  write(kTwoGpus);
  void* library = ::dlopen(library_.c_str(), RTLD_NOW);  // keeps its state beyond the monitor
  ASSERT_NE(library, nullptr);
  const auto count = reinterpret_cast<int (*)(unsigned*)>(::dlsym(library, "nvmlDeviceGetCount_v2"));
  unsigned found = 0;
  for (int round = 0; round < 2; ++round) {
    {
      const NvmlMonitor monitor(library_);
      EXPECT_THAT(monitor.devices(), SizeIs(2));
      EXPECT_EQ(count(&found), 0);
    }
    EXPECT_EQ(count(&found), 1) << "not initialised";
  }
  ::dlclose(library);
}

}  // namespace
}  // namespace tearless::harness::nvml_test
