// Converts the settings of [run] to the types of LibTorch and the tape.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/model/parameters.h"
#include "engine/ops/tape.h"
#include "engine/train/options.h"

namespace tearless::engine {

inline at::Device device_of(const ExecutionOptions& execution) {
  return execution.device == ExecutionOptions::Device::kCuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

/// tf32 has fp32 rows: it changes matmuls only (engine/device.cc).
inline RowPrecision row_precision(const ExecutionOptions& execution) {
  return execution.precision == ExecutionOptions::Precision::kBf16 ? RowPrecision::kBf16 : RowPrecision::kFp32;
}

inline Tape::Ops ops_of(const ExecutionOptions& execution) {
  return execution.ops == ExecutionOptions::Ops::kReference ? Tape::Ops::kReference : Tape::Ops::kFast;
}

/// Sets the number of threads and the matmul library of this process. UserError where the library is not to be had.
void prepare_processor(const ExecutionOptions& execution);

}  // namespace tearless::engine
