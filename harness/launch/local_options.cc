#include "harness/launch/local_options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/run_directory.h"
#include "base/words.h"
#include "harness/launch/machine.h"
#include "harness/launch/nvml.h"

namespace tearless::harness {
namespace {

constexpr const char* kNvmlVariable = "TEARLESS_NVML";  // names another library than the driver's, for tests

}  // namespace

LocalLauncher::Options local_options(const LocalLimits& limits) {
  LocalLauncher::Options options{.tearless = std::filesystem::read_symlink("/proc/self/exe"),
                                 .capacity = {.cores = cores_of_process(),
                                              .memory_bytes = memory_of_process(),
                                              .jobs = limits.jobs,
                                              .runs_per_gpu = std::max(1, limits.runs_per_gpu),
                                              .processor = processor_name()},
                                 .pin = limits.pin};
  std::vector<int>& cores = options.capacity.cores;
  if (limits.cores > 0 && std::ssize(cores) > limits.cores) cores.resize(static_cast<size_t>(limits.cores));
  int64_t& memory = options.capacity.memory_bytes;
  if (limits.memory_bytes > 0) memory = memory == 0 ? limits.memory_bytes : std::min(memory, limits.memory_bytes);
  const char* library = std::getenv(kNvmlVariable);
  options.monitor = library ? std::make_unique<NvmlMonitor>(library) : std::make_unique<NvmlMonitor>();
  options.capacity.devices = visible_devices(options.monitor->devices(), std::getenv("CUDA_VISIBLE_DEVICES"));
  return options;
}

std::vector<Device> visible_devices(const std::vector<Device>& devices, const char* value) {
  if (!value) return devices;
  std::vector<Device> visible;
  std::istringstream entries(value);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::string_view name = trimmed(entry);
    const auto device = std::ranges::find_if(devices, [&](const Device& each) {
      const bool is_uuid = name.starts_with("GPU-") || name.starts_with("MIG-");
      return name == std::to_string(each.index) || (is_uuid && each.uuid.starts_with(name));
    });
    if (device == devices.end()) break;
    const auto is_it = [&](const Device& each) { return each.uuid == device->uuid; };
    if (std::ranges::none_of(visible, is_it)) visible.push_back(*device);
  }
  return visible;
}

}  // namespace tearless::harness
