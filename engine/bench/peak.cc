#include "engine/bench/peak.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>

#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"

namespace tearless::engine {

double peak_operations_per_second() {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (const MatmulLibrary library : {MatmulLibrary::kMkl, MatmulLibrary::kOpenBlas}) {
    if (library == MatmulLibrary::kOpenBlas && !why_no_openblas().empty()) continue;
    use_matmul_library(library);
    for (const int64_t n : {512, 1024, 2048}) {
      constexpr double kOperationsATry = 2e10;
      const double operations = 2.0 * static_cast<double>(n * n * n);
      const at::Tensor a = at::ones({n, n}), b = at::ones({n, n});
      at::Tensor c = at::empty_like(a);
      for (double done = 0; done < kOperationsATry; done += operations) {
        const Clock::time_point start = Clock::now();
        matmul(a, b, c, /*add=*/false);
        best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
  }
  use_matmul_library(std::nullopt);
  return best;
}

}  // namespace tearless::engine
