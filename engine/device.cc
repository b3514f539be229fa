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
      "run.device = \"cuda\", but {} has compute capability {}.{}; {}.0 or later is needed (A100, RTX 30): leave it "
      "out of CUDA_VISIBLE_DEVICES",
      name, major, minor, kOldest);
}

std::string advice_on(std::string_view error) {
  const auto names = [&](std::string_view what) { return error.find(what) != std::string_view::npos; };
  if (names("MPS client") || names("MPS server")) {
    return "; the GPU's MPS has ended or takes no more: begin it again (`nvidia-cuda-mps-control -d`), or do without";
  }
  if (names("busy or unavailable")) {
    return "; another process has the GPU to itself (`nvidia-smi` shows it), or its compute mode is Prohibited: "
           "`nvidia-smi -c 0` lets several use it";
  }
  if (!names("CUDA")) return "";
  // A GPU that fails or is taken away shows as an error in whatever CUDA call comes next.
  return "; if other programs fail on this GPU too, check nvidia-smi and the kernel's log (dmesg)";
}

void open_device(const ExecutionOptions& execution) {
  if (execution.device != ExecutionOptions::Device::kCuda) return;
  open_cuda_library();
  const std::vector<TearlessCudaDevice> devices = cuda_devices();
  if (devices.empty())
    throw MachineError(
        "run.device = \"cuda\", but no NVIDIA GPU is visible; use \"cpu\", or check the driver with nvidia-smi");
  const TearlessCudaDevice& first = devices.front();
  if (const std::string reason = why_not_usable(first.name, first.compute_major, first.compute_minor); !reason.empty())
    throw MachineError(reason);
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
