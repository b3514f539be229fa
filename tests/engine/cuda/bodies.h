// The CUDA kernels as a backend of the processor, for tests where there may be no GPU; and whether there is one.
#pragma once

#include "base/error.h"
#include "engine/cuda/cuda_library.h"
#include "engine/ops/backend.h"
#include "tests/engine/cuda/kernels_on_host.h"

namespace tearless::engine::test {

/// A replay calls the captured function again with the host values of the capture, so that a test fails where an
/// operation reads the host's data instead of the device's.
inline const Backend& cuda_bodies() {
  static const Backend bodies{.name = "CUDA's bodies",
                              .supported = true,
                              .float_kernels = &float_kernels_on_host,
                              .bf16_kernels = &bf16_kernels_on_host,
                              .optimiser = &optimiser_kernels_on_host,
                              .search = &search_kernels_on_host,
                              .capture = [](const std::function<void()>& launches) { return launches; }};
  return bodies;
}

/// Opens the CUDA library where there is one.
inline bool gpu_is_there() {
  try {
    return !cuda_devices().empty();
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace tearless::engine::test
