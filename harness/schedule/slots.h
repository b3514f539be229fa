// Room for runs on this machine: cores, and CUDA devices by UUID.
#pragma once

#include <optional>
#include <set>
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
  /// into `cores`.
  Slots(int cores, int jobs, const std::vector<std::string>& cuda_devices)
      : free_(jobs > 0 ? jobs : cores),
        by_cores_(jobs <= 0),
        all_(free_),
        devices_(cuda_devices.begin(), cuda_devices.end()) {}

  /// Whether such a run can ever have room.
  bool can_ever_run(const std::string& device) const {
    return device != "cuda" || !devices_.empty() || devices_taken_ > 0;
  }

  /// Nothing where there is no room now. A run with more threads than there are cores takes them all.
  std::optional<Slot> take(const std::string& device, int threads) {
    if (device == "cuda") {
      if (devices_.empty()) return std::nullopt;
      ++devices_taken_;
      return Slot{.cores = 0, .cuda_device = devices_.extract(devices_.begin()).value()};
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
    devices_taken_ += static_cast<int>(devices_.erase(uuid));
    return {.cores = 0, .cuda_device = uuid};
  }

  void give_back(const Slot& slot) {
    free_ += slot.cores;
    if (slot.cuda_device.empty()) return;
    devices_.insert(slot.cuda_device);
    --devices_taken_;
  }

 private:
  int free_;
  bool by_cores_;
  int all_;
  std::set<std::string> devices_;
  int devices_taken_ = 0;
};

}  // namespace tearless::harness
