#include "engine/ops/packed_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "engine/ops/backend.h"
#include "engine/ops/matmul.h"

namespace tearless::engine {

at::Tensor PackedWeights::panels_of(const at::Tensor& weight) {
  if (!weight.device().is_cpu() || weight.scalar_type() != at::kFloat || uses_bf16_matmuls()) return {};
  const Kernels<float>& kernels = kernels_for<float>(weight);
  if (!kernels.packed_matmul) return {};
  const std::lock_guard lock(mutex_);
  const int64_t out = weight.size(0), in = weight.size(1), width = kernels.panel_width;
  Packed& packed = packed_[{weight.const_data_ptr(), out}];
  if (!packed.panels.defined()) {
    const int64_t count = (out + width - 1) / width;
    const at::Tensor filled = at::zeros({count * width, in}, weight.options());
    filled.slice(0, 0, out).copy_(weight);
    packed = {weight, filled.view({count, width, in}).transpose(1, 2).contiguous()};
  }
  return packed.panels;
}

}  // namespace tearless::engine
