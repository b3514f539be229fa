// The room as a scheduler uses it, on simulated GPUs: a needs is asked, reserved, and the run started. What the devices
// report teaches its peak, its throughput how many share a GPU, and memory that does not suffice ends it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/devices/declared_devices.h"
#include "harness/devices/ledger.h"
#include "harness/devices/memory_needs.h"
#include "harness/devices/sharing.h"

namespace tearless::harness::simulated_sweep_test {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr double kTick = 60;  // seconds

struct Shape {
  int64_t peak = 0;                       // bytes of the device
  int64_t estimate = 0;                   // 0: there is none
  double tokens = 0;                      // of a whole run
  std::function<double(int)> throughput;  // of k runs on one GPU together, in tokens/s
};

struct SweepResult {
  double seconds = 0;
  int out_of_memory = 0;
  std::map<std::string, int> most_on_one_device;  // of each shape
};

// Trains `runs` runs of each shape. A run uses half of its peak until it has half of its tokens, then its peak. The one
// that asks for more than its GPU has ends. The pid of a run is the id of its reservation. Runs of different shapes
// slow each other as if all had the slower one's model.
class SimulatedSweep {
 public:
  SimulatedSweep(const std::string& devices, std::map<std::string, Shape> shapes, int runs, bool share)
      : declared_(devices, "--devices"),
        ledger_({.cores = {0}, .memory_bytes = 0, .jobs = 0, .devices = declared_.devices()}),
        shapes_(std::move(shapes)),
        share_(share) {
    for (int i = 0; i < runs; ++i) {
      for (const auto& [name, shape] : shapes_) queue_.push_back(name);
    }
  }

  SweepResult run() {
    while (!queue_.empty() || !running_.empty()) {
      start();
      EXPECT_FALSE(running_.empty()) << "nothing runs, and " << queue_.size() << " wait: " << why_;
      if (running_.empty() || result_.seconds > 1e7) break;
      train();
    }
    return result_;
  }

 private:
  struct Run {
    std::string resource_class;
    Reservation reservation;
    double trained = 0;  // tokens
    bool ended = false;
  };

  Needs need_of(const std::string& shape) {
    Needs needs;
    needs.device = "cuda";
    const int64_t estimate = shapes_.at(shape).estimate;
    needs.memory_bytes =
        needs_.of(shape, {.declared = {}, .estimate = estimate > 0 ? std::optional(estimate) : std::nullopt}).bytes;
    if (!share_) return needs;
    const int64_t memory = declared_.devices().front().memory_bytes;
    const int most = needs.memory_bytes ? static_cast<int>(memory / *needs.memory_bytes) : 1;
    needs.runs_per_device = sharing_.runs_per_device(shape, most).runs;
    return needs;
  }

  void start() {
    for (const Run& run : running_)
      ledger_.set_runs_per_device(run.reservation, need_of(run.resource_class).runs_per_device);
    std::vector<std::string> waiting;
    for (const std::string& shape : queue_) {
      const Needs needs = need_of(shape);
      if (const auto reservation = ledger_.reserve(needs)) {
        running_.push_back({.resource_class = shape, .reservation = *reservation, .trained = 0, .ended = false});
      } else {
        why_ = ledger_.why_not(needs);
        waiting.push_back(shape);
      }
    }
    queue_ = waiting;
  }

  void train() {
    result_.seconds += kTick;
    std::map<std::string, std::vector<Run*>> on_device;
    for (Run& run : running_) on_device[run.reservation.device].push_back(&run);
    for (auto& [device, runs] : on_device) train_on(runs);
    std::erase_if(running_, [](const Run& run) { return run.ended; });
  }

  void train_on(const std::vector<Run*>& runs) {
    const int count = static_cast<int>(runs.size());
    double sum = 1e300;
    bool same = true;
    for (const Run* run : runs) {
      sum = std::min(sum, shapes_.at(run->resource_class).throughput(count));
      same = same && run->resource_class == runs.front()->resource_class;
    }
    DeviceUse use;
    std::set<int64_t> pids;
    for (Run* run : runs) {
      const Shape& shape = shapes_.at(run->resource_class);
      run->trained += kTick * sum / count;
      const int64_t uses = run->trained >= shape.tokens / 2 ? shape.peak : shape.peak / 2;
      int& most = result_.most_on_one_device[run->resource_class];
      most = std::max(most, count);
      if (use.used_bytes + uses > memory_of(run->reservation.device)) {
        ++result_.out_of_memory;
        needs_.ran_out(run->resource_class, run->reservation.memory_bytes, count > 1);
        queue_.push_back(run->resource_class);
      } else {
        needs_.learn_use(run->resource_class, uses);
        if (run->trained < shape.tokens) {
          use.used_bytes += uses;
          use.processes.push_back({.pid = run->reservation.id, .bytes = uses});
          pids.insert(run->reservation.id);
          continue;
        }
        needs_.learn_peak(run->resource_class, uses);
      }
      ledger_.release(run->reservation);
      run->ended = true;
    }
    const std::string device = runs.front()->reservation.device;
    declared_.set_use(device, use);
    ledger_.note_use(device, declared_.use_of(device), pids);
    if (same && std::none_of(runs.begin(), runs.end(), [](const Run* run) { return run->ended; })) {
      sharing_.observe(
          {.resource_class = runs.front()->resource_class, .runs = count, .seconds = kTick, .updates = kTick * sum});
    }
  }

  int64_t memory_of(const std::string& uuid) const {
    for (const Device& device : declared_.devices()) {
      if (device.uuid == uuid) return device.memory_bytes;
    }
    return 0;
  }

  DeclaredDevices declared_;
  Ledger ledger_;
  MemoryNeeds needs_;
  Sharing sharing_;
  std::map<std::string, Shape> shapes_;
  bool share_;
  std::vector<std::string> queue_;
  std::vector<Run> running_;
  std::string why_;
  SweepResult result_;
};

// Small models: three of them fill a GPU.
Shape small(int64_t peak_gib, int64_t estimate_gib) {
  return {.peak = peak_gib * kGiB, .estimate = estimate_gib * kGiB, .tokens = 1000.0 * 3600, .throughput = [](int k) {
            return 1000.0 * std::min(k, 3);
          }};
}

TEST(SimulatedSweep, OfSmallModelsTakesLessThanHalfTheTimeWhenTheyShareGpus) {
  const SweepResult single = SimulatedSweep("2 x 24GiB", {{"small", small(4, 5)}}, 24, false).run();
  const SweepResult shared = SimulatedSweep("2 x 24GiB", {{"small", small(4, 5)}}, 24, true).run();
  EXPECT_EQ(single.seconds, 12 * 3600);
  EXPECT_EQ(single.most_on_one_device.at("small"), 1);
  EXPECT_LT(shared.seconds, single.seconds / 2);
  EXPECT_EQ(shared.out_of_memory, 0);
  EXPECT_LE(shared.most_on_one_device.at("small"), 4) << "three fill the GPU, the fourth was the search";
}

TEST(SimulatedSweep, OfModelsThatFillAGpuTakesHardlyLongerThanOneByOne) {
  Shape shape = small(4, 5);
  shape.throughput = [](int k) { return 1000.0 * (1 - 0.1 * (k - 1)); };
  const SweepResult single = SimulatedSweep("2 x 24GiB", {{"full", shape}}, 24, false).run();
  const SweepResult shared = SimulatedSweep("2 x 24GiB", {{"full", shape}}, 24, true).run();
  EXPECT_LE(shared.seconds, 1.05 * single.seconds);
}

TEST(SimulatedSweep, LearnsFromAnEstimateThatIsFarTooLow) {
  const SweepResult result = SimulatedSweep("1 x 24GiB", {{"small", small(10, 1)}}, 12, true).run();
  EXPECT_EQ(result.most_on_one_device.at("small"), 4);
  EXPECT_LE(result.out_of_memory, 2) << "while no run had reached its peak";
}

TEST(SimulatedSweep, WithoutAnEstimateMeasuresTheFirstRunAlone) {
  const SweepResult result = SimulatedSweep("1 x 24GiB", {{"small", small(6, 0)}}, 12, true).run();
  EXPECT_EQ(result.out_of_memory, 0);
  EXPECT_GE(result.most_on_one_device.at("small"), 3);
}

TEST(SimulatedSweep, OfLargeAndSmallModelsEndsAndNeverExceedsMemory) {
  std::map<std::string, Shape> shapes = {{"small", small(4, 5)}, {"large", small(20, 18)}};
  const SweepResult result = SimulatedSweep("2 x 24GiB", shapes, 8, true).run();
  EXPECT_EQ(result.out_of_memory, 0);
  EXPECT_EQ(result.most_on_one_device.at("large"), 1);
}

}  // namespace
}  // namespace tearless::harness::simulated_sweep_test
