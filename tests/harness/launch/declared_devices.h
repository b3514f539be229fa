// GPUs of 24 GiB that there are not, for tests of what is shared out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/launch/device.h"

namespace tearless::harness {

class DeclaredDevices : public DeviceMonitor {
 public:
  explicit DeclaredDevices(int count) {
    for (int i = 0; i < count; ++i)
      devices_.push_back(
          {.uuid = "declared-" + std::to_string(i), .name = "declared", .memory_bytes = int64_t{24} << 30, .index = i});
  }

  const std::vector<Device>& devices() const override { return devices_; }
  DeviceUse use_of(const std::string& uuid) override { return uses_[uuid]; }

  /// What use_of(uuid) will answer; until then the device is idle.
  void set_use(const std::string& uuid, DeviceUse use) { uses_[uuid] = std::move(use); }

 private:
  std::vector<Device> devices_;
  std::map<std::string, DeviceUse> uses_;
};

}  // namespace tearless::harness
