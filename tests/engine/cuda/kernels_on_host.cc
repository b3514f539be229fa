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

}  // namespace

const Kernels<float> float_kernels_on_host = kernel_table<float, RunnerOnHost>();
const Kernels<bf16> bf16_kernels_on_host = kernel_table<bf16, RunnerOnHost>();
const OptimiserKernels optimiser_kernels_on_host = optimiser_table<RunnerOnHost>();
const SearchKernels search_kernels_on_host = search_table<RunnerOnHost>();

}  // namespace tearless::engine::test
