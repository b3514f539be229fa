// What a run is given, from what was said of it and what was measured of others.
#include "harness/launch/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/launch/declared_devices.h"

namespace tearless::harness::resources_test {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

class ResourcesTest : public testing::Test {
 protected:
  // A machine with as many GPUs of 24 GiB.
  Resources machine(int gpus, int runs_per_gpu = 1, const std::map<std::string, int64_t>& peaks = {}) {
    auto monitor = std::make_unique<DeclaredDevices>(gpus);
    monitor_ = monitor.get();
    Capacity capacity{
        .cores = {0, 1, 2, 3}, .memory_bytes = 64 * kGiB, .runs_per_gpu = runs_per_gpu, .devices = monitor->devices()};
    return Resources(std::move(capacity), /*pin=*/false, std::move(monitor), peaks);
  }
  static Needs needs(const std::string& device, int64_t gib) {
    return {
        .device = device, .resource_class = "a", .memory_bytes = gib > 0 ? std::optional(gib * kGiB) : std::nullopt};
  }
  // Reserves as often as there is room. Returns how often.
  static int fill(Resources& machine, const Needs& needs) {
    int count = 0;
    while (machine.why_not(needs).empty()) machine.reserve("more " + std::to_string(count++), needs);
    return count;
  }

  DeclaredDevices* monitor_ = nullptr;
};

TEST_F(ResourcesTest, MemoryIsReservedAndTheReasonsSayHowMuch) {
  Resources cpu = machine(0);
  cpu.reserve("r", needs("cpu", 20));
  EXPECT_EQ(fill(cpu, needs("cpu", 20)), 1);
  EXPECT_EQ(cpu.why_not(needs("cpu", 20)),
            "it needs 26.0 GiB of memory, but this machine has 12.0 GiB of 64.0 GiB unreserved");
  EXPECT_EQ(cpu.why_here("r"),
            "on the CPU with 1 thread, 26.0 GiB reserved (20.0 GiB estimated, with a margin of 30 %)");
  cpu.note_use("r", 20 * kGiB);
  EXPECT_EQ(cpu.why_here("r"),
            "on the CPU with 1 thread, 26.0 GiB reserved (20.0 GiB estimated, with a margin of 30 %)")
      << "why so much was reserved, not what would be now";
  cpu.note_use("r", 40 * kGiB);
  EXPECT_EQ(cpu.why_here("r"),
            "on the CPU with 1 thread, 26.0 GiB reserved (20.0 GiB estimated, with a margin of 30 %; it has used 40.0 "
            "GiB)");
  Resources later = machine(0);
  later.reserve_anyway("r", needs("cpu", 10), "", {});
  later.note_use("r", 16 * kGiB);
  EXPECT_EQ(later.why_here("r"),
            "on the CPU with 1 thread, 13.0 GiB reserved (10.0 GiB estimated, with a margin of 30 %; it has used 16.0 "
            "GiB)");
  Needs declared = needs("cpu", 16);
  declared.declared = true;
  Resources other = machine(0);
  EXPECT_EQ(fill(other, declared), 4) << "as it stands";
  Resources gpu = machine(1);
  gpu.reserve("r", needs("cuda", 2));
  EXPECT_EQ(gpu.why_here("r"), "on GPU 0, 2.6 GiB reserved (2.0 GiB estimated, with a margin of 30 %)");
}

TEST_F(ResourcesTest, ThePeakOfARunThatEndedReplacesTheEstimateAlsoInTheNextProcess) {
  Resources cpu = machine(0);
  cpu.reserve("r", needs("cpu", 20));
  cpu.note_use("r", 10 * kGiB);
  cpu.note_use("r", 9 * kGiB);
  EXPECT_EQ(cpu.peak_of("a"), std::nullopt) << "it may use more yet";
  cpu.release("r", Resources::End::kByItself);
  EXPECT_EQ(cpu.peak_of("a"), 10 * kGiB);
  EXPECT_EQ(fill(cpu, needs("cpu", 20)), 4) << "11 GiB each; there are 4 cores";
  Resources next = machine(0, 1, {{"a", 10 * kGiB}});
  EXPECT_EQ(next.reserve("r", needs("cpu", 0)).memory_bytes, static_cast<int64_t>(std::ceil(10 * kGiB * 1.1)));
}

TEST_F(ResourcesTest, AsManyRunsShareAGpuAsWasAskedAndMemoryAllows) {
  struct Row {
    int runs_per_gpu, gib, fit;
  };
  for (const auto& [runs_per_gpu, gib, fit] : {Row{1, 2, 1}, Row{3, 2, 3}, Row{3, 10, 1}, Row{1, 0, 1}, Row{3, 0, 3}}) {
    Resources gpu = machine(1, runs_per_gpu);
    EXPECT_EQ(fill(gpu, needs("cuda", gib)), fit) << runs_per_gpu << " of " << gib << " GiB; 0: of which none is known";
  }
}

TEST_F(ResourcesTest, ARunThatMustBeAloneHasItsGpuButNotTheMachine) {
  Resources gpus = machine(2, 2);
  Needs alone = needs("cuda", 1);
  alone.alone = true;
  gpus.reserve("a", needs("cuda", 1));
  EXPECT_EQ(gpus.reserve("b", alone).device, "declared-1");
  EXPECT_EQ(gpus.why_here("b"), "on GPU 1, by itself because it ran out of memory beside others");
  EXPECT_EQ(gpus.why_not({.device = "cpu"}), "");
  EXPECT_EQ(gpus.why_not(alone), "it needs a whole GPU, but GPU 0 is not empty, GPU 1 is taken whole by a run");
}

TEST_F(ResourcesTest, MeasuresWhatItsRunsUseOfAGpuAndLeavesOneThatOthersUseAlone) {
  Resources gpu = machine(1, 2);
  gpu.reserve("r", needs("cuda", 1));
  const auto uses = [&](const std::map<int64_t, int64_t>& gib_of_pids) {
    DeviceUse use;
    for (const auto& [pid, gib] : gib_of_pids) {
      use.used_bytes += gib * kGiB;
      use.processes.push_back({.pid = pid, .bytes = gib * kGiB});
    }
    monitor_->set_use("declared-0", use);
    gpu.observe({{"r", {7, 8}}});
  };
  uses({{7, 2}, {8, 3}, {4711, 1}});
  EXPECT_EQ(gpu.why_not(needs("cuda", 1)), "it needs 5.5 GiB, but GPU 0 is used by process 4711") << "2 + 3 GiB + 10 %";
  EXPECT_EQ(gpu.shares().at(0).closed, "is used by process 4711");
  uses({{7, 2}, {8, 3}});
  EXPECT_EQ(gpu.why_not(needs("cuda", 1)), "");
  EXPECT_EQ(gpu.shares().at(0).runs, 1);
  monitor_->set_use("declared-0",
                    {.used_bytes = 9 * kGiB, .processes = {{.pid = 7, .bytes = {}}, {.pid = 8, .bytes = {}}}});
  gpu.observe({{"r", {7, 8}}});
  EXPECT_EQ(gpu.why_not(needs("cuda", 1)), "") << "beside MPS a driver may not report memory: it is as it was";
}

TEST_F(ResourcesTest, AGpuThatIsClosedHasNoRunFromTheBeginning) {
  auto monitor = std::make_unique<DeclaredDevices>(2);
  monitor->set_use("declared-0", {.closed = "is divided by MIG"});
  Capacity capacity{.cores = {0}, .runs_per_gpu = 1, .devices = monitor->devices()};
  Resources gpus(std::move(capacity), /*pin=*/false, std::move(monitor));
  EXPECT_EQ(gpus.reserve("r", needs("cuda", 1)).device, "declared-1");
  EXPECT_EQ(gpus.why_not(needs("cuda", 1)), "it needs 1.4 GiB, but GPU 0 is divided by MIG, GPU 1 has its run");
}

}  // namespace
}  // namespace tearless::harness::resources_test
