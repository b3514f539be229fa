#include "engine/cuda/cuda_kernels.h"

#include <ATen/cuda/CUDAGraph.h>

#include <memory>

namespace tearless::engine {

std::function<void()> capture_graph(const std::function<void()>& launches) {
  // One memory pool for all graphs: they never run concurrently, and no tensor in it is needed after a replay.
  static const at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  const auto graph = std::make_shared<at::cuda::CUDAGraph>();
  graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  try {
    launches();
  } catch (...) {
    // The stream must leave capture mode. The exception to report is that of the launches, not one from ending capture.
    try {
      graph->capture_end();
    } catch (const std::exception&) {
    }
    throw;
  }
  graph->capture_end();
  return [graph] { graph->replay(); };
}

}  // namespace tearless::engine
