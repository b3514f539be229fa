// What is reserved and what is refused, and why; what holds in random sequences.
#include "harness/launch/ledger.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace tearless::harness::ledger_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kGiB = int64_t{1} << 30;

std::vector<Device> gpus(const std::vector<int64_t>& sizes) {
  std::vector<Device> devices;
  for (const int64_t size : sizes) {
    const int index = static_cast<int>(devices.size());
    devices.push_back({.uuid = fmt::format("GPU-{}", index), .name = "", .memory_bytes = size * kGiB, .index = index});
  }
  return devices;
}

Ledger machine(const std::vector<int64_t>& sizes, std::vector<int> cores = {0, 1, 2, 3}, int jobs = 0,
               int runs_per_gpu = 8) {
  return Ledger({.cores = std::move(cores),
                 .memory_bytes = 64 * kGiB,
                 .jobs = jobs,
                 .runs_per_gpu = runs_per_gpu,
                 .devices = gpus(sizes)});
}

Needs on_cpu(int threads, int64_t gib = 0) { return {.threads = threads, .memory_bytes = gib * kGiB}; }
Needs on_gpu(double gib) { return {.device = "cuda", .memory_bytes = static_cast<int64_t>(gib * kGiB)}; }
Needs whole_gpu() { return {.device = "cuda"}; }

DeviceUse use(int64_t used_gib, const std::vector<DeviceProcess>& processes = {}) {
  return {.used_bytes = used_gib * kGiB, .processes = processes, .error = ""};
}

// --- kinds of devices ------------------------------------------------------------------------------------------------

TEST(Ledger, ARunThatNeedsAKindOfGpuGetsNoOther) {
  Capacity capacity{.cores = {0}, .memory_bytes = 64 * kGiB, .devices = gpus({80, 40}), .processor = "Xeon"};
  capacity.devices[0].name = "A100";
  capacity.devices[1].name = "H100";
  Ledger ledger(capacity);
  const Needs large{.device = "cuda", .memory_bytes = 60 * kGiB, .kind = "H100"};
  const auto slot = ledger.reserve(large);
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->device, "GPU-1") << "of its kind it is the largest, and taken whole";
  EXPECT_THAT(ledger.why_not(large), testing::HasSubstr("GPU 0 is no H100, for which alone its sweep is"));
  EXPECT_TRUE(ledger.can_ever(large));
  EXPECT_FALSE(ledger.can_ever({.device = "cuda", .kind = "V100"}));
  EXPECT_EQ(ledger.why_not({.device = "cuda", .kind = "A100"}), "");
}

TEST(Ledger, ARunThatNeedsAnotherProcessorNeverFits) {
  const Ledger ledger({.cores = {0}, .memory_bytes = 64 * kGiB, .processor = "Xeon"});
  EXPECT_EQ(ledger.why_not({.kind = "Xeon"}), "");
  EXPECT_EQ(ledger.why_not({.kind = "EPYC"}), "its sweep is for EPYC alone (same_device), and this machine has Xeon");
  EXPECT_TRUE(ledger.can_ever({.kind = "Xeon"}));
  EXPECT_FALSE(ledger.can_ever({.kind = "EPYC"}));
}

// --- the CPU ---------------------------------------------------------------------------------------------------------

TEST(Ledger, GivesEachRunCoresOfItsOwn) {
  Ledger ledger = machine({}, {2, 3, 6, 7});
  const auto first = ledger.reserve(on_cpu(1));
  const auto second = ledger.reserve(on_cpu(2));
  ASSERT_TRUE(first && second);
  EXPECT_THAT(first->cores, ElementsAre(2));
  EXPECT_THAT(second->cores, ElementsAre(3, 6));
  EXPECT_EQ(second->device, "");
  EXPECT_FALSE(ledger.reserve(on_cpu(2)));
  EXPECT_EQ(ledger.why_not(on_cpu(2)), "it needs 2 cores, but 1 of 4 are unreserved");
  ledger.release(*first);
  EXPECT_EQ(ledger.why_not(on_cpu(2)), "");
  EXPECT_THAT(ledger.reserve(on_cpu(2))->cores, ElementsAre(2, 7));
}

TEST(Ledger, GivesARunWithMoreThreadsThanCoresAllCoresAndOneWithoutThreadsOne) {
  EXPECT_THAT(machine({}).reserve(on_cpu(0))->cores, ElementsAre(0));
  Ledger ledger = machine({});
  EXPECT_THAT(ledger.reserve(on_cpu(16))->cores, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(ledger.reserve(on_cpu(1)));
}

TEST(Ledger, WithJobsCountsRunsOnTheCpuAndPinsNone) {
  Ledger ledger = machine({24}, {0}, 2);
  const auto first = ledger.reserve(on_cpu(16));
  EXPECT_THAT(first->cores, IsEmpty());
  EXPECT_TRUE(ledger.reserve(on_gpu(1))) << "does not count";
  EXPECT_TRUE(ledger.reserve(on_cpu(16)));
  EXPECT_EQ(ledger.why_not(on_cpu(1)), "the CPU has its 2 runs");
  EXPECT_TRUE(ledger.reserve(on_gpu(1)));
  ledger.release(*first);
  EXPECT_TRUE(ledger.reserve(on_cpu(1)));
}

TEST(Ledger, MemoryOfTheMachineLimitsRunsOnTheCpu) {
  Ledger ledger = machine({24});
  const auto first = ledger.reserve(on_cpu(1, 40));
  EXPECT_EQ(first->memory_bytes, 40 * kGiB);
  EXPECT_EQ(ledger.why_not(on_cpu(1, 25)),
            "it needs 25.0 GiB of memory, but this machine has 24.0 GiB of 64.0 GiB unreserved");
  EXPECT_TRUE(ledger.reserve(on_gpu(24)));
  EXPECT_TRUE(ledger.reserve(on_cpu(1, 24)));
  EXPECT_FALSE(ledger.reserve(on_cpu(1, 1)));
  EXPECT_TRUE(ledger.reserve(on_cpu(1, 0)));
}

TEST(Ledger, ARunThatNeedsMoreThanTheMachineHasTakesAllItsMemory) {
  Ledger ledger = machine({});
  const auto small = ledger.reserve(on_cpu(1, 1));
  EXPECT_FALSE(ledger.reserve(on_cpu(1, 1000)));
  ledger.release(*small);
  EXPECT_EQ(ledger.reserve(on_cpu(1, 1000))->memory_bytes, 64 * kGiB);
  EXPECT_FALSE(ledger.reserve(on_cpu(1, 1)));
}

TEST(Ledger, MemoryThatIsNotKnownLimitsNothing) {
  Ledger ledger({.cores = {0, 1}, .memory_bytes = 0, .jobs = 0, .devices = {}});
  EXPECT_TRUE(ledger.reserve(on_cpu(1, 40)));
  EXPECT_TRUE(ledger.reserve(on_cpu(1, 40)));
}

// --- GPUs ------------------------------------------------------------------------------------------------------------

TEST(Ledger, SpreadsRunsOverDevicesBeforeTheyShareOne) {
  Ledger ledger = machine({24, 80, 24});
  std::vector<std::string> order;
  for (int i = 0; i < 6; ++i) order.push_back(ledger.reserve(on_gpu(2))->device);
  EXPECT_THAT(order, ElementsAre("GPU-1", "GPU-0", "GPU-2", "GPU-1", "GPU-0", "GPU-2"));
}

TEST(Ledger, SharesADeviceAsFarAsItsMemoryGoes) {
  Ledger ledger = machine({24});
  EXPECT_EQ(ledger.reserve(on_gpu(15))->memory_bytes, 15 * kGiB);
  EXPECT_EQ(ledger.why_not(on_gpu(9.1)), "it needs 9.1 GiB, but GPU 0 has 9.0 GiB unreserved");
  EXPECT_TRUE(ledger.reserve(on_gpu(9)));
  EXPECT_FALSE(ledger.reserve(on_gpu(0.001)));
}

TEST(Ledger, NamesTheReasonOfEachDevice) {
  Ledger ledger = machine({24, 24, 24, 24});
  ledger.reserve_anyway(on_gpu(20), "GPU-0");
  ledger.reserve_anyway(whole_gpu(), "GPU-1");
  ledger.note_use("GPU-2", use(9, {{.pid = 4711, .bytes = 8 * kGiB}}), {});
  ledger.note_use("GPU-3", {.used_bytes = 0, .processes = {}, .error = "GPU is lost"}, {});
  EXPECT_EQ(ledger.why_not(on_gpu(5)),
            "it needs 5.0 GiB, but GPU 0 has 4.0 GiB unreserved, GPU 1 is taken whole by a run, GPU 2 is used by "
            "process 4711, GPU 3 does not answer (GPU is lost)");
  EXPECT_FALSE(ledger.reserve(on_gpu(5)));
}

TEST(Ledger, WithoutGpusARunOnOneIsNeverPossible) {
  Ledger ledger = machine({});
  EXPECT_FALSE(ledger.can_ever(on_gpu(1)));
  EXPECT_TRUE(ledger.can_ever(on_cpu(100)));
  EXPECT_FALSE(ledger.reserve(on_gpu(1)));
  EXPECT_EQ(ledger.why_not(on_gpu(1)), "it needs a CUDA device, but the NVIDIA driver shows no GPU here");
  EXPECT_TRUE(machine({24}).can_ever(on_gpu(100)));
}

TEST(Ledger, ARunOfUnknownMemoryTakesAWholeDevice) {
  Ledger ledger = machine({24, 24});
  const auto whole = ledger.reserve(whole_gpu());
  EXPECT_EQ(whole->memory_bytes, 24 * kGiB);
  const auto shared = ledger.reserve(on_gpu(1));
  EXPECT_EQ(shared->device, "GPU-1");
  EXPECT_EQ(ledger.why_not(whole_gpu()), "it needs a whole GPU, but GPU 0 is taken whole by a run, GPU 1 is not empty");
  ledger.release(*shared);
  EXPECT_EQ(ledger.reserve(whole_gpu())->device, "GPU-1");
}

TEST(Ledger, ARunThatNeedsMoreThanAnyDeviceHasTakesTheLargestWhole) {
  Ledger ledger = machine({24, 80});
  const auto small = ledger.reserve(on_gpu(1));
  ASSERT_EQ(small->device, "GPU-1");
  EXPECT_EQ(ledger.why_not(on_gpu(100)), "it needs 100.0 GiB, but GPU 0 has 24.0 GiB unreserved, GPU 1 is not empty");
  ledger.release(*small);
  const auto large = ledger.reserve(on_gpu(100));
  EXPECT_EQ(large->device, "GPU-1");
  EXPECT_EQ(large->memory_bytes, 80 * kGiB);
  EXPECT_EQ(ledger.reserve(on_gpu(30)), std::nullopt) << "fits GPU 1 alone";
  Ledger beside_driver = machine({24});
  beside_driver.note_use("GPU-0", use(1), {});
  EXPECT_EQ(beside_driver.reserve(on_gpu(23.5))->memory_bytes, 23 * kGiB) << "more than the driver leaves";
  EXPECT_FALSE(beside_driver.reserve(on_gpu(0)));
}

TEST(Ledger, SharesADeviceAmongAsManyRunsAsWasAsked) {
  Ledger one = machine({24}, {0}, 0, 1), two = machine({24}, {0}, 0, 2);
  EXPECT_TRUE(one.reserve(on_gpu(1)));
  EXPECT_EQ(one.why_not(on_gpu(1)), "it needs 1.0 GiB, but GPU 0 has its run");
  EXPECT_TRUE(two.reserve(on_gpu(1)));
  EXPECT_TRUE(two.reserve(on_gpu(1)));
  EXPECT_EQ(two.why_not(on_gpu(1)), "it needs 1.0 GiB, but GPU 0 has its 2 runs");
}

// --- alone -----------------------------------------------------------------------------------------------------------

TEST(Ledger, ARunThatMustBeAloneWaitsForTheOthersAndKeepsThemOut) {
  Ledger ledger = machine({24});
  Needs alone = on_cpu(1);
  alone.alone = true;
  const auto first = ledger.reserve(on_cpu(1));
  EXPECT_EQ(ledger.why_not(alone), "it must run alone, and 1 run is on this machine");
  const auto second = ledger.reserve(on_gpu(1));
  EXPECT_EQ(ledger.why_not(alone), "it must run alone, and 2 runs are on this machine");
  EXPECT_FALSE(ledger.reserve(alone));
  ledger.release(*first);
  ledger.release(*second);
  const auto held = ledger.reserve(alone);
  ASSERT_TRUE(held);
  EXPECT_EQ(ledger.why_not(on_cpu(1)), "a run that must run alone is on this machine");
  EXPECT_FALSE(ledger.reserve(on_gpu(1)));
  ledger.release(*held);
  EXPECT_TRUE(ledger.reserve(on_gpu(1)));
}

// --- attempts that are running already -------------------------------------------------------------------------------

TEST(Ledger, AdoptsMoreThanThereIs) {
  Ledger ledger = machine({24});
  const auto first = ledger.reserve(on_cpu(3, 60));
  const Reservation adopted = ledger.reserve_anyway(on_cpu(3, 60), "");
  EXPECT_EQ(adopted.memory_bytes, 60 * kGiB);
  EXPECT_THAT(adopted.cores, ElementsAre(3, 0, 1)) << "the free core, and two that are counted twice";
  EXPECT_EQ(ledger.why_not(on_cpu(1)), "it needs 1 core, but 0 of 4 are unreserved");
  EXPECT_EQ(ledger.why_not(on_cpu(1, 1)),
            "it needs 1.0 GiB of memory, but this machine has 0 MiB of 64.0 GiB unreserved");
  ledger.release(*first);
  EXPECT_THAT(ledger.reserve(on_cpu(1))->cores, ElementsAre(2));

  const Reservation gpu = ledger.reserve_anyway(on_gpu(20), "GPU-0");
  const Reservation other = ledger.reserve_anyway(on_gpu(20), "GPU-0");
  EXPECT_EQ(ledger.why_not(on_gpu(1)), "it needs 1.0 GiB, but GPU 0 has 0 MiB unreserved");
  ledger.release(gpu);
  EXPECT_TRUE(ledger.reserve(on_gpu(4)));
  ledger.release(other);
}

TEST(Ledger, AdoptsARunOnItsCoresOrOnADeviceThatIsGone) {
  Ledger pinned = machine({});
  EXPECT_THAT(pinned.reserve_anyway(on_cpu(2), "", {1, 2}).cores, ElementsAre(1, 2));
  EXPECT_THAT(pinned.reserve(on_cpu(2))->cores, ElementsAre(0, 3));
  Ledger ledger = machine({24});
  const Reservation gone = ledger.reserve_anyway(on_gpu(20), "GPU-9");
  EXPECT_EQ(gone.device, "GPU-9");
  EXPECT_TRUE(ledger.reserve(on_gpu(24)));
  EXPECT_EQ(ledger.why_not(on_cpu(4)), "");
  ledger.release(gone);
}

TEST(Ledger, RefusesToReleaseTwiceAndToHaveNoCores) {
  Ledger ledger = machine({});
  const auto held = ledger.reserve(on_cpu(1));
  ledger.release(*held);
  EXPECT_THROW(ledger.release(*held), std::logic_error);
  EXPECT_THROW(machine({24}, {}), std::logic_error);
}

// --- what others use -------------------------------------------------------------------------------------------------

TEST(Ledger, LeavesADeviceOfOthersAloneUntilTheyAreGone) {
  Ledger ledger = machine({24, 24});
  ledger.note_use("GPU-0", use(1, {{.pid = 1, .bytes = kGiB / 2}}), {2});
  EXPECT_EQ(ledger.reserve(on_gpu(1))->device, "GPU-1");
  EXPECT_EQ(ledger.reserve(on_gpu(1))->device, "GPU-1") << "rather than GPU 0, which has no run of ours";
  ledger.note_use("GPU-0", use(1), {2});
  EXPECT_EQ(ledger.reserve(on_gpu(1))->device, "GPU-0");
}

// A run of ours with process 2 has 4 GiB of the GPU's 24, beside 1 GiB of the driver.
TEST(Ledger, ReservesOfADeviceWhatNobodyUsesAndNamesWhoDoes) {
  const DeviceProcess ours{.pid = 2, .bytes = 4 * kGiB}, more{.pid = 2, .bytes = 10 * kGiB};
  const auto others = [](std::vector<int64_t> pids) {
    std::vector<DeviceProcess> all{{.pid = 2, .bytes = 4 * kGiB}};
    for (const int64_t pid : pids) all.push_back({.pid = pid, .bytes = 1});
    return all;
  };
  struct Row {
    const char* claim;
    DeviceUse now;
    double gib;
    const char* refusal;  // of a run that needs `gib`
  };
  const std::vector<Row> rows = {
      {"the driver's memory is nobody's", use(5, {ours}), 19, ""},
      {"the driver's memory is nobody's", use(5, {ours}), 20, "has 19.0 GiB unreserved"},
      // In a container NVML lists the pids outside, so ours are never among them.
      {"where ours cannot be recognised nobody is", use(5, {{.pid = 70001, .bytes = 4 * kGiB}}), 19, ""},
      {"what is not reported is as it was", use(5, {{.pid = 2, .bytes = std::nullopt}}), 20, "has 19.0 GiB unreserved"},
      {"what ours use beyond their reservations is taken", use(11, {more}), 14, "has 13.0 GiB unreserved"},
      {"others are named", use(6, others({7})), 1, "is used by process 7"},
      {"a few of them", use(6, others({7, 8, 9})), 1, "is used by processes 7, 8, 9"},
      {"not all of many", use(6, others({7, 8, 9, 10})), 1, "is used by processes 7, 8, 9 and 1 more"},
      {"a lost device takes no run", {.used_bytes = 0, .processes = {}, .error = "lost"}, 1, "does not answer (lost)"},
      {"and takes runs again", use(5, {ours}), 19, ""},
      {"nor does one that is closed", {.closed = "is Prohibited"}, 1, "is Prohibited"},
  };
  Ledger ledger = machine({24});
  ledger.note_use("GPU-0", use(1), {2});
  ledger.reserve(on_gpu(4));
  for (const auto& [claim, now, gib, refusal] : rows) {
    ledger.note_use("GPU-0", now, {2});
    ledger.note_use("GPU-7", now, {2});  // a device that the machine does not have
    const std::string why = ledger.why_not(on_gpu(gib));
    EXPECT_EQ(why, *refusal ? fmt::format("it needs {:.1f} GiB, but GPU 0 {}", gib, refusal) : "") << claim;
  }
}

TEST(Ledger, AGpuInExclusiveComputeModeTakesOneRunAtATime) {
  Ledger ledger = machine({24, 24});
  ledger.note_use("GPU-0", {.one_process = true}, {});
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) order.push_back(ledger.reserve(on_gpu(1))->device);
  EXPECT_THAT(order, ElementsAre("GPU-0", "GPU-1", "GPU-1", "GPU-1"));
  EXPECT_EQ(ledger.why_not(on_gpu(22)),
            "it needs 22.0 GiB, but GPU 0 has its run, and no room for another in its exclusive compute mode "
            "(`nvidia-smi -c 0` ends it), GPU 1 has 21.0 GiB unreserved");
}

TEST(Ledger, WaitsForTheMemoryOfAnEndedRun) {
  Ledger ledger = machine({24});
  const auto held = ledger.reserve(on_gpu(4));
  ledger.note_use("GPU-0", use(11, {{.pid = 2, .bytes = 10 * kGiB}}), {2});
  ledger.release(*held);
  EXPECT_EQ(ledger.why_not(on_gpu(14)), "") << "what it used beyond its reservation is free";
  ledger.note_use("GPU-0", use(5, {{.pid = 2, .bytes = 4 * kGiB}}), {2});
  EXPECT_EQ(ledger.why_not(on_gpu(4)), "it needs 4.0 GiB, but GPU 0 is used by process 2") << "it has no reservation";
  ledger.note_use("GPU-0", use(5), {});
  EXPECT_EQ(ledger.why_not(on_gpu(4)),
            "it needs 4.0 GiB, but GPU 0 has 5.0 GiB in use by processes that are not listed");
  ledger.note_use("GPU-0", use(3), {});
  EXPECT_NE(ledger.why_not(on_gpu(4)), "");
  ledger.note_use("GPU-0", use(2), {});
  EXPECT_EQ(ledger.why_not(on_gpu(4)), "") << "as much as a driver may use";
}

// --- random sequences ------------------------------------------------------------------------------------------------

class RandomLedger {
 public:
  explicit RandomLedger(unsigned seed) : random_(seed) {
    for (int core = 0, most = 1 + below(8); core < most; ++core) capacity_.cores.push_back(3 * core + 1);
    capacity_.memory_bytes = (1 + below(64)) * kGiB;
    capacity_.jobs = below(3) == 0 ? 1 + below(4) : 0;
    capacity_.runs_per_gpu = 1 + below(5);
    std::vector<int64_t> sizes;
    for (int i = 0, most = below(4); i < most; ++i) sizes.push_back(4 + below(20));
    capacity_.devices = gpus(sizes);
    ledger_ = std::make_unique<Ledger>(capacity_);
  }

  // True if something was reserved.
  bool step() {
    if (below(10) < 5) return reserve();
    if (below(3) > 0 && !held_.empty()) {
      const auto some = held_.begin() + below(static_cast<int>(held_.size()));
      ledger_->release(*some);
      held_.erase(some);
    } else if (!capacity_.devices.empty()) {
      const std::string& uuid = some_device().uuid;
      const bool is_free =
          std::none_of(held_.begin(), held_.end(), [&](const auto& run) { return run.device == uuid; });
      if (!is_free) return false;  // what is found beside our runs: the tests above
      closed_[uuid] = below(3) == 0;
      ledger_->note_use(uuid, closed_[uuid] ? use(0, {{.pid = 5, .bytes = 1}}) : use(0), {});
    }
    return false;
  }

  // The invariants of ledger.h.
  void check() const {
    int64_t memory = 0;
    std::set<int> cores;
    std::map<std::string, int64_t> on_gpu;
    for (const Reservation& run : held_) {
      (run.device.empty() ? memory : on_gpu[run.device]) += run.memory_bytes;
      for (const int core : run.cores) ASSERT_TRUE(cores.insert(core).second) << core << " belongs to two runs";
    }
    ASSERT_LE(memory, capacity_.memory_bytes);
    for (const int core : cores) ASSERT_EQ(core % 3, 1) << "it is not one of the machine's";
    for (const Device& device : capacity_.devices) ASSERT_LE(on_gpu[device.uuid], device.memory_bytes);
  }

  // Whatever was reserved and released before, an empty machine has room.
  void check_that_all_is_free_at_the_end() {
    for (const Reservation& run : held_) ledger_->release(run);
    for (const Device& device : capacity_.devices) ledger_->note_use(device.uuid, use(0), {});
    for (Needs needs : {on_cpu(8, 99), on_gpu(99), whole_gpu()}) {
      needs.alone = below(2) == 0;
      if (ledger_->can_ever(needs)) {
        ASSERT_EQ(ledger_->why_not(needs), "");
      }
    }
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  const Device& some_device() {
    return capacity_.devices[static_cast<size_t>(below(static_cast<int>(capacity_.devices.size())))];
  }

  bool reserve() {
    Needs needs{.device = below(2) == 0 ? "cuda" : "cpu", .threads = below(5)};
    if (below(8) > 0) needs.memory_bytes = below(6) == 0 ? below(80) * kGiB : below(8) * kGiB + below(3);
    needs.alone = below(40) == 0;
    const std::string why = ledger_->why_not(needs);
    const auto run = ledger_->reserve(needs);
    EXPECT_EQ(run.has_value(), why.empty()) << why;
    if (!run) return false;
    EXPECT_EQ(run->device.empty(), needs.device == "cpu");
    EXPECT_FALSE(closed_[run->device]) << "others use it";
    held_.push_back(*run);
    return true;
  }

  std::mt19937 random_;
  Capacity capacity_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<Reservation> held_;
  std::map<std::string, bool> closed_;  // devices that others use
};

TEST(Ledger, ReservesNothingTwiceInRandomSequences) {
  int reserved = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomLedger sequence(seed);
    for (int step = 0; step < 100 && !testing::Test::HasFailure(); ++step) {
      reserved += sequence.step();
      sequence.check();
    }
    sequence.check_that_all_is_free_at_the_end();
  }
  EXPECT_GT(reserved, 5000);
}

TEST(Ledger, RunsThatWereAdoptedOnTheSameCoreCountAsTwo) {
  Ledger ledger({.cores = {0, 1}});
  const Reservation first = ledger.reserve_anyway(on_cpu(1), "");
  const Reservation second = ledger.reserve_anyway(on_cpu(1), "");
  ledger.reserve_anyway(on_cpu(1), "");  // on a core of another
  ledger.release(second);
  EXPECT_FALSE(ledger.reserve(on_cpu(1))) << "two runs on two cores";
  ledger.release(first);
  EXPECT_TRUE(ledger.reserve(on_cpu(1)));
}

}  // namespace
}  // namespace tearless::harness::ledger_test
