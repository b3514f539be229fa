// Dropout masks as tensors, by integer arithmetic in LibTorch, for the operations' formulas (Tape::by_formula()).
// Kernels compute the same masks themselves, in forward and again in backward.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/packed_rows.h"
#include "engine/ops/random.h"

namespace tearless::engine {

/// The multipliers (0 or 1/(1-p)) as a tensor [T, width] of `like`'s type and device. outer, sentence: [T] int64
/// tensors, the rows' counters (random.h).
at::Tensor keep_scale_tensor(const Dropout& dropout, const at::Tensor& outer, const at::Tensor& sentence, int64_t width,
                             const at::Tensor& like);
/// The same with the counters of a packed side's rows.
at::Tensor keep_scale_tensor(const Dropout& dropout, const PackedRows& rows, int64_t width, const at::Tensor& like);

/// A copy of a host vector as an int64 tensor on `like`'s device.
at::Tensor index_tensor(const std::vector<int32_t>& values, const at::Tensor& like);

}  // namespace tearless::engine
