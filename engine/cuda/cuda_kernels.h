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
inline constexpr uint64_t kCudaKernelsLayout = [] {
  uint64_t hash = 14695981039346656037u;
  for (const size_t size : {sizeof(AddNorm<float>),
                            sizeof(AddNormBackward<float>),
                            sizeof(BiasReluDropout<float>),
                            sizeof(BiasReluDropoutBackward<float>),
                            sizeof(Attention<float>),
                            sizeof(AttentionSpan),
                            sizeof(AttentionBackward<float>),
                            sizeof(CrossEntropy<float>),
                            sizeof(BestTokens<float>),
                            sizeof(Embedding<float>),
                            sizeof(EmbeddingBackward<float>),
                            sizeof(ColumnSums<float>),
                            sizeof(SpanMeans<float>),
                            sizeof(SpanMeansBackward<float>),
                            sizeof(Patches<float>),
                            sizeof(PatchesBackward<float>),
                            sizeof(MaxPool<float>),
                            sizeof(MaxPoolBackward<float>),
                            sizeof(SquaredNorm),
                            sizeof(Adam),
                            sizeof(AdamOnDevice),
                            sizeof(UpdateInputs),
                            sizeof(UpdateOutcome),
                            sizeof(BeamStep),
                            sizeof(Kernels<float>),
                            sizeof(OptimiserKernels),
                            sizeof(Backend),
                            sizeof(Dropout)}) {
    hash = (hash ^ size) * 1099511628211u;
  }
  return hash;
}();

}  // namespace tearless::engine

extern "C" const tearless::engine::CudaKernels* tearless_cuda_kernels();
