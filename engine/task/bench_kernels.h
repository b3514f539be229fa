// How near single kernels come to the memory's speed, apart from any model: the row operations that only move numbers,
// and the optimiser.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tearless::engine {

struct KernelRate {
  std::string name;
  double bytes = 0;    // that must pass between processor and memory
  double seconds = 0;  // median of one call
};

/// Rows of `width` elements of like's type and device, `bytes` of them together; the optimiser over `parameters`
/// numbers. The first rate is that of a plain copy, the yardstick of the others.
std::vector<KernelRate> kernel_rates(const at::Tensor& like, int64_t width, int64_t bytes, int64_t parameters);

}  // namespace tearless::engine
