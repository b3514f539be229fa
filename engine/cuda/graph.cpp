#include "engine/cuda/graph.h"

#include <ATen/cuda/CUDAGraph.h>

#include <memory>

namespace tearless::engine {

std::function<void()> capture_graph(const std::function<void()>& launches) {
  // One pool for all graphs: they run one after another, and nothing in it outlives a run.
  static const at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
  const auto graph = std::make_shared<at::cuda::CUDAGraph>();
  graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  try {
    launches();
  } catch (...) {
    // The stream must leave its capture; what was wrong with the launches is the news, not what ends it.
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
