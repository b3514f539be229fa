// Loads libtearless_cuda.so, and with it ATen's CUDA backend, for runs with device = "cuda". A run on the CPU never
// loads it, so the engine starts on machines without GPU, driver and CUDA libraries.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/cuda/cuda_kernels.h"

namespace tearless::engine {

// Where libtearless_cuda.so is expected: in the directory of the running program. A CPU build does not have it.
std::filesystem::path cuda_library_file();

// Loads libtearless_cuda.so from the directory of the running program; from then on tensors on device "cuda" work. Does
// nothing after the first call; the library stays loaded until the process ends. UserError when it is absent or cannot
// be loaded.
void open_cuda_library();

// The GPUs visible to this process; may be empty. Loads the library. UserError as open_cuda_library(); MachineError
// when the devices cannot be listed.
std::vector<TearlessCudaDevice> cuda_devices();

// The kernels for CUDA tensors, valid until the process ends. Loads the library. UserError as open_cuda_library(), and
// when the library was built from another version of the sources than the engine.
const Backend& cuda_backend();

}  // namespace tearless::engine
