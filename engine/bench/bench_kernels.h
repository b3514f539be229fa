// Measures single kernels, without a model: the row operations and the optimiser against the memory bandwidth, which
// limits them, and matmuls.
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

/// Floating-point operations per second of the fastest matmul of square fp32 matrices of 512 to 2048 rows, by any
/// matmul library of this build, on the processor with the current number of threads: what an update is measured
/// against. Takes some seconds. Leaves the automatic choice of the library in use.
double peak_operations_per_second();

/// The middle value, of an even number the upper one; `values` is not empty.
double median(std::vector<double> values);

}  // namespace tearless::engine
