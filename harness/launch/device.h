// A GPU of this machine, or a part of one that MIG has made, and what runs on it now. A DeviceMonitor finds both out,
// through NVML (nvml.h). Devices are addressed by UUID, because the order of indices differs between NVML and CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tearless::harness {

struct Device {
  std::string uuid;          // "GPU-8f2c…" or "MIG-…", what CUDA_VISIBLE_DEVICES takes
  std::string name;          // of the model: "NVIDIA H200"
  int64_t memory_bytes = 0;  // installed memory
  int index = 0;             // the monitor's number of the GPU, as in nvidia-smi; for messages only
};

/// A process with a CUDA context on a device.
struct DeviceProcess {
  int64_t pid = 0;               // in a container with its own pid namespace this is the pid outside
  std::optional<int64_t> bytes;  // device memory; unset where the driver does not report it for a process
};

/// What a device answered. A device that does not answer is a value, not an exception: the sweep continues without it.
struct DeviceUse {
  int64_t used_bytes = 0;                     // by all processes and by the driver
  std::vector<DeviceProcess> processes = {};  // those that compute; neither a display server nor one of MPS
  std::string error = {};                     // why it did not answer, "GPU is lost"; the other fields are then unset
  std::string closed = {};                    // why no process can begin on it, "is in compute mode …"; "" if one can
  bool one_process = false;                   // it takes no second process beside one
};

class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;

  /// The devices of this machine by index; they do not change later. Empty on a machine without a GPU.
  virtual const std::vector<Device>& devices() const = 0;

  /// What the device does now. An unknown UUID is an error in the result.
  virtual DeviceUse use_of(const std::string& uuid) = 0;
};

}  // namespace tearless::harness
