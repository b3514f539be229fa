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

/// bf16 on a GPU has bf16 rows. tf32, and bf16 on the CPU, have fp32 rows: they change matmuls only (engine/device.cc,
/// prepare_processor()).
inline RowPrecision row_precision(const ExecutionOptions& execution) {
  const bool cuda = execution.device == ExecutionOptions::Device::kCuda;
  return cuda && execution.precision == ExecutionOptions::Precision::kBf16 ? RowPrecision::kBf16 : RowPrecision::kFp32;
}

inline Tape::Ops ops_of(const ExecutionOptions& execution) {
  return execution.ops == ExecutionOptions::Ops::kReference ? Tape::Ops::kReference : Tape::Ops::kFast;
}

/// Sets the number of threads, the matmul library and the precision of matmuls on the processor, for this process.
/// UserError where the library is not to be had, or the processor has no bf16 instructions.
void prepare_processor(const ExecutionOptions& execution);

}  // namespace tearless::engine
