// The GPUs of this machine, through NVIDIA's management library. The library is opened at run time: it belongs to the
// driver, which a machine without a GPU need not have.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/launch/device.h"

namespace tearless::harness {

class NvmlMonitor : public DeviceMonitor {
 public:
  /// Opens `library` and lists the devices; in the place of a GPU that MIG divides, its instances. Never throws for a
  /// missing library, driver or device: devices() then lacks them.
  explicit NvmlMonitor(const std::filesystem::path& library = "libnvidia-ml.so.1");
  ~NvmlMonitor() override;
  NvmlMonitor(const NvmlMonitor&) = delete;
  NvmlMonitor& operator=(const NvmlMonitor&) = delete;

  const std::vector<Device>& devices() const override { return devices_; }
  DeviceUse use_of(const std::string& uuid) override;

 private:
  struct Api;

  std::unique_ptr<Api> api_;  // null if the library could not be opened or initialised
  std::vector<Device> devices_;
  std::map<std::string, void*> handles_;  // UUID → NVML's handle; valid until nvmlShutdown
};

}  // namespace tearless::harness
