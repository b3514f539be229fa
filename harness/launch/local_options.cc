#include "harness/launch/local_options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "harness/launch/declared_devices.h"
#include "harness/launch/machine.h"
#include "harness/launch/nvml.h"

namespace tearless::harness {
namespace {

constexpr const char* kNvmlVariable = "TEARLESS_NVML";  // names another library than the driver's, for tests

}  // namespace

// The devices that both the training program and the driver's library know are watched; those that only the program
// knows are used without that.
LocalLauncher::Options local_options(const LocalLimits& limits, const std::vector<ProgramDevice>& usable) {
  LocalLauncher::Options options{.tearless = std::filesystem::read_symlink("/proc/self/exe"),
                                 .capacity = {.cores = cores_of_process(),
                                              .memory_bytes = memory_of_process(),
                                              .jobs = limits.jobs,
                                              .runs_per_gpu = std::max(1, limits.runs_per_gpu)},
                                 .pin = limits.pin};
  std::vector<Device>& devices = options.capacity.devices;
  if (!limits.declared_devices.empty()) {
    options.monitor = std::make_unique<DeclaredDevices>(limits.declared_devices, "--devices");
    devices = options.monitor->devices();
    return options;
  }
  for (const ProgramDevice& device : usable) {
    if (device.kind != "cuda") continue;
    const int index = static_cast<int>(devices.size());
    devices.push_back({.uuid = device.uuid, .name = device.name, .memory_bytes = device.memory_bytes, .index = index});
  }
  if (devices.empty()) return options;
  const char* library = std::getenv(kNvmlVariable);
  options.monitor = library ? std::make_unique<NvmlMonitor>(library) : std::make_unique<NvmlMonitor>();
  for (Device& device : devices) {
    for (const Device& known : options.monitor->devices()) {
      if (known.uuid == device.uuid) device = known;
    }
  }
  return options;
}

}  // namespace tearless::harness
