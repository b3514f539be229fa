// CUDA graphs of what LibTorch and the kernels launch together: inside libtearless_cuda.so only.
#pragma once

#include <functional>

namespace tearless::engine {

/// CudaKernels::capture.
std::function<void()> capture_graph(const std::function<void()>& launches);

}  // namespace tearless::engine
