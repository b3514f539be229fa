// CUDA's tables of kernels as libtearless_cuda.so hands them out: shared by nvcc and the engine's compiler.
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

/// A kernel that cannot be launched throws std::runtime_error with its name, its launch shape and CUDA's words; where
/// the device has no memory left for the kernels' workspace, this. Both cross the library's border as exceptions do:
/// engine and library share one C++ runtime, as LibTorch asks anyway.
class CudaOutOfMemory : public std::bad_alloc {
 public:
  explicit CudaOutOfMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// The kernels of one device backend. `stream` is a cudaStream_t, null the default stream. A call returns when its
/// kernels are launched; an error of a kernel that runs shows in a later call.
///
/// Kernels that sum over rows keep partial sums in a workspace, one a stream, which grows to what the largest call
/// needs and stays until the process ends. So a captured graph may be replayed at any time, on the stream that it was
/// captured on or one that waits for it: what was captured on a stream and what is called on it must not run at the
/// same time.
struct CudaKernels {
  uint64_t layout;  // kCudaKernelsLayout of the library: another than the engine's is another version
  const Kernels<float>* float_kernels;
  const Kernels<bf16>* bf16_kernels;
  const OptimiserKernels* optimiser;
  const SearchKernels* search;
  /// Records what the call gives the current stream to do, without doing it, and returns what has it done: what that
  /// allocates is its own until it is destroyed. The stream must not be the default one, and nothing may wait for the
  /// device or copy from the host meanwhile. Several must not run at the same time: they share their memory.
  std::function<void()> (*capture)(const std::function<void()>& launches);
};

/// Changes with the size of any struct that crosses the border.
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
                            sizeof(SquaredNorm),
                            sizeof(Adam),
                            sizeof(AdamOnDevice),
                            sizeof(UpdateInputs),
                            sizeof(UpdateOutcome),
                            sizeof(BeamStep),
                            sizeof(Kernels<float>),
                            sizeof(OptimiserKernels),
                            sizeof(Dropout)}) {
    hash = (hash ^ size) * 1099511628211u;
  }
  return hash;
}();

}  // namespace tearless::engine

extern "C" const tearless::engine::CudaKernels* tearless_cuda_kernels();
