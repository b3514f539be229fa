#include "engine/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/error.h"
#include "engine/cuda/cuda_library.h"
#include "engine/ops/backend.h"

namespace tearless::engine {

void open_device(const ExecutionOptions& execution) {
  if (execution.device != ExecutionOptions::Device::kCuda) return;
  open_cuda_library();
  if (cuda_devices().empty())
    fail("run.device = \"cuda\", but no NVIDIA GPU is visible; use \"cpu\", or look at nvidia-smi");
  const CudaKernels& cuda = cuda_kernels();
  use_cuda_kernels({cuda.float_kernels, cuda.bf16_kernels, cuda.optimiser, cuda.search, cuda.capture});
  // Nothing can be captured on the default stream, where every thread of a process is by itself.
  const c10::impl::VirtualGuardImpl device(at::kCUDA);
  device.exchangeStream(device.getStreamFromGlobalPool(at::Device(at::kCUDA, 0)));
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(execution.precision == ExecutionOptions::Precision::kTf32);
  // Sums of products in bf16 stay in fp32 until they are whole.
  context.setAllowBF16ReductionCuBLAS(false);
}

}  // namespace tearless::engine
