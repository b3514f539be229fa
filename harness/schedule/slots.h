// The capacity of this machine for concurrent runs: CPU cores, and CUDA devices by UUID.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

/// Capacity that a run occupies. Return it with Slots::release().
struct Slot {
  int cores = 0;            // free slots taken on the CPU: cores, or 1 if Slots counts runs
  std::string cuda_device;  // UUID; "" on the CPU
};

class Slots {
 public:
  /// `jobs` > 0: at most `jobs` concurrent runs on the CPU, whatever their threads. `jobs` = 0: as many as their
  /// threads fit `cores`. A CUDA device takes `runs_per_device` runs.
  Slots(int cores, int jobs, const std::vector<std::string>& cuda_devices, int runs_per_device = 1)
      : free_(jobs > 0 ? jobs : cores), by_cores_(jobs <= 0), all_(free_) {
    for (const std::string& device : cuda_devices) free_on_device_[device] = runs_per_device;
  }

  /// False for a run on "cuda" if this machine has no CUDA device.
  bool can_ever_run(const std::string& device) const { return device != "cuda" || !free_on_device_.empty(); }

  /// Takes capacity for a run; nullopt if there is not enough free now. A run with more threads than there are cores
  /// takes all cores. `device`: "cpu" or "cuda".
  std::optional<Slot> take(const std::string& device, int threads) {
    if (device == "cuda") {
      // The device with the most free slots, so that runs spread over the devices before they share one.
      const auto device = std::max_element(free_on_device_.begin(), free_on_device_.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
      if (device == free_on_device_.end() || device->second <= 0) return std::nullopt;
      --device->second;
      return Slot{.cores = 0, .cuda_device = device->first};
    }
    const int wanted = by_cores_ ? std::min(std::max(threads, 1), all_) : 1;
    if (free_ < wanted) return std::nullopt;
    free_ -= wanted;
    return Slot{.cores = wanted, .cuda_device = ""};
  }

  /// Takes CPU capacity for an attempt that is running already. Free capacity may become negative.
  Slot take_anyway(int threads) {
    const int taken = by_cores_ ? std::min(std::max(threads, 1), all_) : 1;
    free_ -= taken;
    return {.cores = taken, .cuda_device = ""};
  }

  /// As take_anyway(), on the CUDA device `uuid`.
  Slot take_device(const std::string& uuid) {
    if (const auto device = free_on_device_.find(uuid); device != free_on_device_.end()) --device->second;
    return {.cores = 0, .cuda_device = uuid};
  }

  void release(const Slot& slot) {
    free_ += slot.cores;
    if (const auto device = free_on_device_.find(slot.cuda_device); device != free_on_device_.end()) ++device->second;
  }

 private:
  int free_;                                   // free slots on the CPU; negative after take_anyway()
  bool by_cores_;                              // a slot is a core; false: a slot is a run
  int all_;                                    // number of slots on the CPU
  std::map<std::string, int> free_on_device_;  // UUID → free slots
};

}  // namespace tearless::harness
