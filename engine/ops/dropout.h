// Dropout masks, twice: in the loops (four numbers a Philox call, made anew in backward) and as a tensor by integer
// arithmetic in LibTorch, for the formulas that judge the loops and for devices that have no loops of their own.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/packed_rows.h"
#include "engine/ops/random.h"

namespace tearless::engine {

/// f(c, scale) for the channels c of one row, scale being 0 or 1/(1-p); 1 where dropout is off.
template <class F>
void for_each_kept(const Dropout& dropout, int64_t width, uint32_t outer, uint32_t line, F&& f) {
  int64_t c = 0;
  for (; c + 4 <= width; c += 4) {
    const auto scales = keep_scales(dropout, static_cast<uint32_t>(c / 4), outer, line);
    for (int64_t i = 0; i < 4; ++i) f(c + i, scales[static_cast<size_t>(i)]);
  }
  if (c == width) return;
  const auto scales = keep_scales(dropout, static_cast<uint32_t>(c / 4), outer, line);
  for (int64_t i = 0; c + i < width; ++i) f(c + i, scales[static_cast<size_t>(i)]);
}

/// Multipliers (0 or 1/(1-p)) as a tensor of `like`'s type and device: rows named by (outer, line), `width` channels.
/// outer, line: [T] int64 tensors. Returns [T, width].
at::Tensor keep_scale_tensor(const Dropout& dropout, const at::Tensor& outer, const at::Tensor& line, int64_t width,
                             const at::Tensor& like);
/// The same with the rows of a packed side.
at::Tensor keep_scale_tensor(const Dropout& dropout, const PackedRows& rows, int64_t width, const at::Tensor& like);

/// A host vector as an int64 tensor on `like`'s device.
at::Tensor index_tensor(const std::vector<int32_t>& values, const at::Tensor& like);

}  // namespace tearless::engine
