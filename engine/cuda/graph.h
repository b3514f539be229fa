// Capture of CUDA graphs that hold launches by LibTorch and by our kernels. Inside libtearless_cuda.so only.
#pragma once

#include <functional>

namespace tearless::engine {

/// Implements CudaKernels::capture (cuda_kernels.h).
std::function<void()> capture_graph(const std::function<void()>& launches);

}  // namespace tearless::engine
