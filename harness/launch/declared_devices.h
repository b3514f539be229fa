// GPUs that are declared instead of found, for demonstrations and tests on a machine without them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/launch/device.h"

namespace tearless::harness {

class DeclaredDevices : public DeviceMonitor {
 public:
  /// `text` is a list such as "4 x 24GiB" or "2 x 24GiB, 80GiB"; "none" declares a machine without a GPU. The UUIDs are
  /// "declared-0", "declared-1" …: CUDA finds no such device. UserError, which names `option`, for any other text.
  DeclaredDevices(std::string_view text, std::string_view option);

  const std::vector<Device>& devices() const override { return devices_; }
  DeviceUse use_of(const std::string& uuid) override;

  /// What use_of(uuid) will answer; until then the device is idle.
  void set_use(const std::string& uuid, DeviceUse use) { uses_[uuid] = std::move(use); }

 private:
  std::vector<Device> devices_;
  std::map<std::string, DeviceUse> uses_;
};

}  // namespace tearless::harness
