// Dropout masks as tensors, by integer arithmetic in LibTorch: for the formulas, which judge the kernels and stand in
// where a device has none. Kernels make the same masks for themselves.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/packed_rows.h"
#include "engine/ops/random.h"

namespace tearless::engine {

/// Multipliers (0 or 1/(1-p)) as a tensor of `like`'s type and device: rows named by (outer, line), `width` channels.
/// outer, line: [T] int64 tensors. Returns [T, width].
at::Tensor keep_scale_tensor(const Dropout& dropout, const at::Tensor& outer, const at::Tensor& line, int64_t width,
                             const at::Tensor& like);
/// The same with the rows of a packed side.
at::Tensor keep_scale_tensor(const Dropout& dropout, const PackedRows& rows, int64_t width, const at::Tensor& like);

/// A host vector as an int64 tensor on `like`'s device.
at::Tensor index_tensor(const std::vector<int32_t>& values, const at::Tensor& like);

}  // namespace tearless::engine
