#include "engine/cuda/cuda_kernels.h"

#include <ATen/cuda/CUDAGraph.h>

#include <memory>

namespace tearless::engine {

namespace {

/// The memory of captured graphs. LibTorch drops a pool with its last graph and refuses to capture into it again.
struct Pool {
  at::cuda::MempoolId_t id = at::cuda::graph_pool_handle();
};

struct Graph {
  std::shared_ptr<Pool> pool;  // outlives the graph below it
  at::cuda::CUDAGraph graph;
};

/// One pool for all graphs that there are: they never run concurrently, and no tensor in it is needed after a replay.
std::shared_ptr<Pool> shared_pool() {
  static std::weak_ptr<Pool> newest;
  std::shared_ptr<Pool> pool = newest.lock();
  if (!pool) newest = pool = std::make_shared<Pool>();
  return pool;
}

}  // namespace

std::function<void()> capture_graph(const std::function<void()>& launches) {
  const auto captured = std::make_shared<Graph>(shared_pool());
  captured->graph.capture_begin(captured->pool->id, cudaStreamCaptureModeThreadLocal);
  try {
    launches();
  } catch (...) {
    // The stream must leave capture mode. The exception to report is that of the launches, not one from ending capture.
    try {
      captured->graph.capture_end();
    } catch (const std::exception&) {
    }
    throw;
  }
  captured->graph.capture_end();
  return [captured] { captured->graph.replay(); };
}

}  // namespace tearless::engine
