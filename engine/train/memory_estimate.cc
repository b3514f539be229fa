#include "engine/train/memory_estimate.h"

#include "engine/train/execution.h"
#include "engine/train/updater.h"

namespace tearless::engine {

int64_t estimated_memory_bytes(const ExecutionOptions& execution, int64_t parameters, int64_t saved) {
  const bool on_gpu = execution.device == ExecutionOptions::Device::kCuda;
  const bool bf16 = row_precision(execution) == RowPrecision::kBf16;
  const int64_t per_parameter = bf16 ? 18 : 16;
  const int64_t per_number = (bf16 ? 2 : 4) * (captures_updates(execution) ? 2 : 1);
  const int64_t context = on_gpu ? int64_t{1} << 30 : 0;
  return context + per_parameter * parameters + per_number * saved;
}

}  // namespace tearless::engine
