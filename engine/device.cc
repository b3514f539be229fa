#include "engine/device.h"

#include "base/error.h"
#include "engine/cuda/cuda_library.h"
#include "engine/ops/backend.h"

namespace tearless::engine {

void open_device(const ExecutionOptions& execution) {
  if (execution.device != ExecutionOptions::Device::kCuda) return;
  open_cuda_library();
  if (cuda_devices().empty())
    fail("run.device = \"cuda\", but no NVIDIA GPU is visible; use \"cpu\", or look at nvidia-smi");
  use_cuda_kernels(*cuda_kernels().float_kernels, *cuda_kernels().optimiser);
}

}  // namespace tearless::engine
