#include "engine/train/execution.h"

#include <ATen/Parallel.h>

#include "engine/ops/matmul.h"

namespace tearless::engine {

void prepare_processor(const ExecutionOptions& execution) {
  at::set_num_threads(static_cast<int>(execution.threads));
  using Matmul = ExecutionOptions::Matmul;
  use_matmul_library(execution.matmul == Matmul::kAuto  ? std::nullopt
                     : execution.matmul == Matmul::kMkl ? std::optional(MatmulLibrary::kMkl)
                                                        : std::optional(MatmulLibrary::kOpenBlas));
  use_bf16_matmuls(execution.device == ExecutionOptions::Device::kCpu &&
                   execution.precision == ExecutionOptions::Precision::kBf16);
}

}  // namespace tearless::engine
