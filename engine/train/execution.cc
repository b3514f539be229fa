#include "engine/train/execution.h"

#include <ATen/Parallel.h>

#include "engine/ops/matmul.h"
#include "engine/train/checkpoint.h"

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

int64_t estimated_memory_bytes(const ExecutionOptions& execution, int64_t parameters, int64_t saved, int64_t buffers) {
  const bool on_gpu = execution.device == ExecutionOptions::Device::kCuda;
  const bool bf16 = row_precision(execution) == RowPrecision::kBf16;
  const int64_t state = 4 * (1 + buffers);
  const bool may_wait = checkpoints_may_wait(execution.checkpoint_share, static_cast<size_t>(state * parameters));
  const int64_t per_parameter = 4 + state * (may_wait ? 2 : 1) + (bf16 ? 2 : 0);
  const int64_t per_number = (bf16 ? 2 : 4) * (captures_updates(execution) ? 2 : 1);
  const int64_t context = on_gpu ? int64_t{1} << 30 : 0;
  return context + per_parameter * parameters + per_number * saved;
}

}  // namespace tearless::engine
