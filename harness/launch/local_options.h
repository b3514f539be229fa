// What a local launcher shares out among runs: the cores, memory and GPUs of this machine, as far as the user lets it.
#pragma once

#include <string>
#include <vector>

#include "harness/launch/local_launcher.h"
#include "harness/runs/devices.h"

namespace tearless::harness {

struct LocalLimits {
  int jobs = 0;                       // concurrent runs on the CPU; 0: as many as their threads fit the cores
  int runs_per_gpu = 0;               // concurrent runs on each GPU, as far as their memory fits; 0: one
  bool pin = false;                   // bind each run on the CPU to cores of its own
  std::string declared_devices = {};  // GPUs to assume instead of `devices`, as DeclaredDevices reads them
};

/// The options of a launcher on this machine, without peaks that were measured before. `devices`: those that the
/// training program can use. UserError if `limits.declared_devices` is malformed.
LocalLauncher::Options local_options(const LocalLimits& limits, const std::vector<ProgramDevice>& devices);

}  // namespace tearless::harness
