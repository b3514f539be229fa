// The engine's door to CUDA: opens libtearless_cuda.so, and with it ATen's CUDA backend, when a run asks for device =
// "cuda". A run on the CPU never comes here, so the engine starts where there is no GPU, no driver and no CUDA library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cuda/cuda_kernels.h"

namespace tearless::engine {

struct CudaDevice {
  int index;
  std::string name;
  std::string uuid;
  std::uint64_t memory_bytes;
  int compute_major, compute_minor;
};

// Opens the library that lies beside the running program; from then on tensors on device "cuda" work. Cheap after the
// first call; the library stays open until the process ends. Throws UserError when it is absent or cannot be loaded.
void open_cuda_library();

// The GPUs visible to this process; empty where there are none. Opens the library, and throws as it does.
std::vector<CudaDevice> cuda_devices();

// The hand-written operations for CUDA. Opens the library, and throws as it does; UserError too where the library was
// built from other sources than the engine. Valid until the process ends.
const CudaKernels& cuda_kernels();

}  // namespace tearless::engine
