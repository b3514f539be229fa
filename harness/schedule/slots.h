// Room for runs on this machine: cores, and CUDA devices by UUID.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

/// Room that a run has; give it back.
struct Slot {
  int cores = 0;
  std::string cuda_device;  // UUID; "" on the CPU
};

class Slots {
 public:
  /// `jobs` > 0: that many runs on the CPU at once, however many threads each has; else as many as their threads fit
  /// into `cores`. A device has room for `runs_per_device`.
  Slots(int cores, int jobs, const std::vector<std::string>& cuda_devices, int runs_per_device = 1)
      : free_(jobs > 0 ? jobs : cores), by_cores_(jobs <= 0), all_(free_) {
    for (const std::string& device : cuda_devices) free_on_device_[device] = runs_per_device;
  }

  /// Whether such a run can ever have room.
  bool can_ever_run(const std::string& device) const { return device != "cuda" || !free_on_device_.empty(); }

  /// Nothing where there is no room now. A run with more threads than there are cores takes them all.
  std::optional<Slot> take(const std::string& device, int threads) {
    if (device == "cuda") {
      // The emptiest, so that runs spread before they share.
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

  /// For an attempt that is running already: it has its room, whether or not that leaves less than none.
  Slot take_anyway(int threads) {
    const int taken = by_cores_ ? std::min(std::max(threads, 1), all_) : 1;
    free_ -= taken;
    return {.cores = taken, .cuda_device = ""};
  }
  /// Likewise on a device.
  Slot take_device(const std::string& uuid) {
    if (const auto device = free_on_device_.find(uuid); device != free_on_device_.end()) --device->second;
    return {.cores = 0, .cuda_device = uuid};
  }

  void give_back(const Slot& slot) {
    free_ += slot.cores;
    if (const auto device = free_on_device_.find(slot.cuda_device); device != free_on_device_.end()) ++device->second;
  }

 private:
  int free_;
  bool by_cores_;
  int all_;
  std::map<std::string, int> free_on_device_;
};

}  // namespace tearless::harness
