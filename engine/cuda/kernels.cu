// Instantiates the kernel bodies (*_body.h) as CUDA kernels and exports the tables of them, which the engine finds with
// dlsym().
#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/cuda/cuda_kernels.h"
#include "engine/cuda/kernel_table.h"

namespace tearless::engine {
namespace {

/// Minimum number of resident blocks per SM for __launch_bounds__, which limits the registers of a thread. 0: left to
/// the compiler, which may spill a few registers.
template <class Body>
constexpr int blocks_at_once() {
  if constexpr (requires { Body::kBlocksAtOnce; }) return Body::kBlocksAtOnce;
  return 0;
}

template <class Body>
__global__ void __launch_bounds__(Body::kThreads, blocks_at_once<Body>()) run_body(const __grid_constant__ Body body) {
  DeviceBlock block;
  body(block);
}

[[noreturn]] void fail_with(cudaError_t status, const std::string& what) {
  const std::string sentence = what + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) throw CudaOutOfMemory(sentence);
  throw std::runtime_error(sentence);
}

/// Workspaces for partial sums, one for each stream of each device. A workspace that has become too small is replaced
/// but never freed: kernels already launched, and captured graphs, still write to it.
class Workspaces {
 public:
  void* of(cudaStream_t stream, size_t bytes) {
    int device = 0;
    check(cudaGetDevice(&device));
    const std::lock_guard lock(mutex_);
    Piece& piece = pieces_[{device, stream}];
    if (piece.bytes >= bytes) return piece.memory;
    // At least twice the size: the replaced ones are together no larger than the one in use.
    const size_t wanted = std::max({bytes, 2 * piece.bytes, kMinPieceBytes});
    // A graph may be under capture on this stream or elsewhere in the process, which forbids cudaMalloc() in every mode
    // but relaxed.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode));
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, wanted);
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (status != cudaSuccess) {
      cudaGetLastError();  // clears it: it would be reported for the next launch
      fail_with(status, "no " + std::to_string(wanted) + " bytes for the workspace of the kernels");
    }
    piece = {memory, wanted};
    return memory;
  }

 private:
  static constexpr size_t kMinPieceBytes = 4 << 20;
  struct Piece {
    void* memory = nullptr;
    size_t bytes = 0;
  };

  static void check(cudaError_t status) {
    if (status != cudaSuccess) fail_with(status, "no workspace for the kernels");
  }

  std::mutex mutex_;
  std::map<std::pair<int, cudaStream_t>, Piece> pieces_;
};

Workspaces& workspaces() {
  static Workspaces& all = *new Workspaces;  // the driver may be gone when static objects are destroyed
  return all;
}

class CudaRunner {
 public:
  explicit CudaRunner(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  template <class Body>
  void run(const Body& body) {
    constexpr int64_t kMaxBlocks = 0x7FFFFFFF;
    constexpr int64_t kSharedWithoutAsking = 48 << 10;
    const Shape shape = body.shape();
    if (shape.blocks == 0) return;
    const auto sentence = [&shape] {
      return std::string("CUDA kernel ") + Body::kName + " (" + std::to_string(shape.blocks) + " blocks of " +
             std::to_string(shape.threads) + " threads, " + std::to_string(shape.shared_bytes) +
             " bytes of shared memory)";
    };
    if (shape.blocks > kMaxBlocks) throw std::runtime_error(sentence() + ": too many blocks for one launch");
    if (shape.shared_bytes > kSharedWithoutAsking) {
      const cudaError_t status = cudaFuncSetAttribute(run_body<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                      static_cast<int>(shape.shared_bytes));
      if (status != cudaSuccess) {
        cudaGetLastError();
        fail_with(status, sentence());
      }
    }
    run_body<Body><<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads),
                     static_cast<size_t>(shape.shared_bytes), stream_>>>(body);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) fail_with(status, sentence());
  }

  template <class V>
  V* workspace(int64_t count) {
    return static_cast<V*>(workspaces().of(stream_, static_cast<size_t>(count) * sizeof(V)));
  }

 private:
  cudaStream_t stream_;
};

const Kernels<float> float_kernels = kernel_table<float, CudaRunner>();
const Kernels<bf16> bf16_kernels = [] {
  Kernels<bf16> table = kernel_table<bf16, CudaRunner>();
  table.weight_gradient = weight_gradient_by_cublaslt;
  return table;
}();
const OptimiserKernels optimiser_kernels = optimiser_table<CudaRunner>();
const SearchKernels search_kernels = search_table<CudaRunner>();
const CudaKernels kernels = {.layout = kCudaKernelsLayout,
                             .backend = {.name = "cuda",
                                         .float_kernels = &float_kernels,
                                         .bf16_kernels = &bf16_kernels,
                                         .optimiser = &optimiser_kernels,
                                         .search = &search_kernels,
                                         .capture = capture_graph}};

}  // namespace
}  // namespace tearless::engine

extern "C" const tearless::engine::CudaKernels* tearless_cuda_kernels() { return &tearless::engine::kernels; }
