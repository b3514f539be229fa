// What a local launcher shares out among runs: the cores, memory and GPUs of this machine, as far as the user lets it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/launch/local_launcher.h"

namespace tearless::harness {

struct LocalLimits {
  int jobs = 0;              // concurrent runs on the CPU; 0: as many as their threads fit the cores
  int runs_per_gpu = 0;      // concurrent runs on each GPU, as far as their memory fits; 0: one
  bool pin = false;          // bind each run on the CPU to cores of its own
  int cores = 0;             // of this machine's, at most; 0: all that the process may use
  int64_t memory_bytes = 0;  // likewise
};

/// The options of a launcher on this machine, without peaks that were measured before. Its GPUs, and instances of
/// divided ones, are those that the NVIDIA driver shows, of them what CUDA_VISIBLE_DEVICES admits.
LocalLauncher::Options local_options(const LocalLimits& limits);

/// The devices that a value of CUDA_VISIBLE_DEVICES admits, in its order: indices or UUIDs (their beginnings suffice),
/// separated by commas, up to the first that names no device, as CUDA reads it. Null: all of them.
std::vector<Device> visible_devices(const std::vector<Device>& devices, const char* value);

}  // namespace tearless::harness
