// CUDA's kernels where there may be no GPU: their bodies as a backend of the processor, and whether the real ones can
// run.
#pragma once

#include "base/error.h"
#include "engine/cuda/cuda_library.h"
#include "engine/ops/backend.h"
#include "tests/engine/cuda/kernels_on_host.h"

namespace tearless::engine::test {

/// What a captured step does here when it is done again: the same walk, over what the host held when it was captured.
/// So an operation that reads the host's data and not the device's does something else than CUDA's graph would.
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
