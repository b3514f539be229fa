#include "tests/engine/cuda/kernels_on_host.h"

#include <cstring>
#include <vector>

#include "engine/cuda/kernel_table.h"

namespace tearless::engine::test {
namespace {

class RunnerOnHost {
 public:
  explicit RunnerOnHost(void*) {}

  template <class Body>
  void run(const Body& body) {
    static_assert(Body::kThreads <= 1024);
    const Shape shape = body.shape();
    run_blocks(shape, [&body](BlockOnHost& block) { body(block); });
  }

  template <class V>
  V* workspace(int64_t count) {
    memory_.assign(static_cast<size_t>(count) * sizeof(V), 0xFF);  // NaN, so that reading before writing shows
    return reinterpret_cast<V*>(memory_.data());
  }

 private:
  std::vector<unsigned char> memory_;
};

/// In place of cuBLASLt.
bool weight_gradient(const WeightGradient<bf16>& g, void*) {
  for (int64_t o = 0; o < g.out; ++o) {
    g.bias_sums[o] = 0;
    for (int64_t t = 0; t < g.rows; ++t) {
      const float d = static_cast<float>(g.d_y[t * g.d_y_stride + o]);
      g.bias_sums[o] += d;
      for (int64_t i = 0; i < g.in; ++i) {
        g.d_weight[o * g.d_weight_stride + i] += d * static_cast<float>(g.x[t * g.x_stride + i]);
      }
    }
  }
  return true;
}

}  // namespace

const Kernels<float> float_kernels_on_host = kernel_table<float, RunnerOnHost>();
const Kernels<bf16> bf16_kernels_on_host = [] {
  Kernels<bf16> table = kernel_table<bf16, RunnerOnHost>();
  table.weight_gradient = weight_gradient;
  return table;
}();
const OptimiserKernels optimiser_kernels_on_host = optimiser_table<RunnerOnHost>();
const SearchKernels search_kernels_on_host = search_table<RunnerOnHost>();

}  // namespace tearless::engine::test
