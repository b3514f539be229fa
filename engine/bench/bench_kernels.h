// Measures single kernels against the memory bandwidth, without a model: the row operations, which are limited by it,
// and the optimiser.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tearless::engine {

/// The speed of one kernel.
struct KernelRate {
  std::string name;
  double bytes = 0;    // read and written, at least
  double seconds = 0;  // median time of one call
};

/// Times the row operations on tensors of `bytes` bytes, `width` elements per row, with the type and device of `like`,
/// and the optimiser on `parameters` parameters. The first rate is that of a plain copy, for comparison.
std::vector<KernelRate> kernel_rates(const at::Tensor& like, int64_t width, int64_t bytes, int64_t parameters);

/// The middle value, of an even number the upper one; `values` is not empty.
double median(std::vector<double> values);

}  // namespace tearless::engine
