#include "engine/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/error.h"
#include "engine/cuda/cuda_library.h"
#include "engine/ops/backend.h"

namespace tearless::engine {

std::string why_not_usable(const std::string& name, int major, int minor) {
  constexpr int kOldest = 8;  // tools/cmake/cuda.cmake compiles for compute capability 8.0 and later
  if (major >= kOldest) return "";
  return fmt::format(
      "run.device = \"cuda\", but {} has compute capability {}.{}; {}.0 or later is needed (A100, RTX 30)", name, major,
      minor, kOldest);
}

void open_device(const ExecutionOptions& execution) {
  if (execution.device != ExecutionOptions::Device::kCuda) return;
  open_cuda_library();
  const std::vector<TearlessCudaDevice> devices = cuda_devices();
  if (devices.empty())
    fail("run.device = \"cuda\", but no NVIDIA GPU is visible; use \"cpu\", or check the driver with nvidia-smi");
  const TearlessCudaDevice& first = devices.front();
  if (const std::string reason = why_not_usable(first.name, first.compute_major, first.compute_minor); !reason.empty())
    fail("{}", reason);
  use_cuda_backend(cuda_backend());
  // The default stream cannot be captured.
  const c10::impl::VirtualGuardImpl device(at::kCUDA);
  device.exchangeStream(device.getStreamFromGlobalPool(at::Device(at::kCUDA, 0)));
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(execution.precision == ExecutionOptions::Precision::kTf32);
  // Matmuls in bf16 accumulate in fp32.
  context.setAllowBF16ReductionCuBLAS(false);
}

}  // namespace tearless::engine
