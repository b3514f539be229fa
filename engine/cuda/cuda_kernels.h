// The tables of CUDA kernels that libtearless_cuda.so exports. Included by nvcc and by the engine's compiler; the
// engine gets them from cuda_backend() (cuda_library.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "engine/ops/bf16.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// Thrown where the device has no memory left for the kernels' workspace. Any other failed launch throws
/// std::runtime_error with the kernel's name, its launch shape and CUDA's error string. Both cross the library
/// boundary: engine and library share one C++ runtime, which LibTorch requires anyway.
class CudaOutOfMemory : public std::bad_alloc {
 public:
  explicit CudaOutOfMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// What libtearless_cuda.so exports. `stream` is a cudaStream_t, null the default stream. Calls are asynchronous: they
/// return after the launch, and an error while a kernel runs is reported by a later call.
///
/// Kernels that sum over rows put partial sums into a workspace. There is one for each stream; it grows to what the
/// largest call needs and is held until the process ends, so a captured graph stays valid. REQUIRES: a graph captured
/// on a stream never runs concurrently with other work of that stream (replay it on the same stream, or on one that
/// waits for it), because they share the workspace.
struct CudaKernels {
  uint64_t layout;  // kCudaKernelsLayout of the library; different from the engine's: another version
  Backend backend;
};

/// A hash of the sizes of all structs that cross the library boundary, to detect another version.
template <class... Crossing>
constexpr uint64_t hash_of_sizes() {
  uint64_t hash = 14695981039346656037u;
  for (const size_t size : {sizeof(Crossing)...}) hash = (hash ^ size) * 1099511628211u;
  return hash;
}
inline constexpr uint64_t kCudaKernelsLayout =
    hash_of_sizes<AddNorm<float>, AddNormBackward<float>, BiasReluDropout<float>, BiasReluDropoutBackward<float>,
                  Attention<float>, AttentionSpan, AttentionBackward<float>, RelativeAttention<float>,
                  RelativeAttentionBackward<float>, CrossEntropy<float>, BestTokens<float>, Embedding<float>,
                  EmbeddingBackward<float>, ColumnSums<float>, WeightGradient<float>, SpanMeans<float>,
                  SpanMeansBackward<float>, Patches<float>, PatchesBackward<float>, MaxPool<float>,
                  MaxPoolBackward<float>, SquaredNorm, Adam, AdamOnDevice, UpdateInputs, UpdateOutcome, BeamStep,
                  Kernels<float>, OptimiserKernels, Backend, Dropout>();

/// Why the driver does not do: the versions of CUDA that it knows and that the library needs, as CUDA counts them
/// (13000 is 13.0). Of no driver CUDA says that it knows version 0.
inline std::string driver_too_old(int known, int needed) {
  const auto text = [](int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  if (known == 0) return "there is no NVIDIA driver";
  return "the NVIDIA driver knows CUDA " + text(known) + " at most, and " + text(needed) +
         " is needed: install driver 580 or newer";
}

/// Implements Kernels::weight_gradient. Inside libtearless_cuda.so only, as what follows.
bool weight_gradient_by_cublaslt(const WeightGradient<bf16>& gradient, void* stream);

/// Implements Backend::capture, with launches by LibTorch and by our kernels.
std::function<void()> capture_graph(const std::function<void()>& launches);

}  // namespace tearless::engine

extern "C" {

const tearless::engine::CudaKernels* tearless_cuda_kernels();

struct TearlessCudaDevice {
  int index;
  char name[256];
  char uuid[48];  // "GPU-xxxxxxxx-xxxx-…", as nvidia-smi and CUDA_VISIBLE_DEVICES spell it
  uint64_t memory_bytes;
  int compute_major, compute_minor;
};

// Writes up to `capacity` devices and returns how many there are. On failure returns -1 and writes the CUDA runtime's
// error string, or driver_too_old(), to `error`.
int tearless_cuda_devices(TearlessCudaDevice* devices, int capacity, char* error, size_t error_size);
}
