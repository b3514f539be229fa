// What [run] asks for, in LibTorch's and the tape's terms.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/model/parameters.h"
#include "engine/ops/tape.h"
#include "engine/train/options.h"

namespace tearless::engine {

inline at::Device device_of(const ExecutionOptions& execution) {
  return execution.device == ExecutionOptions::Device::kCuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

inline Compute compute_of(const ExecutionOptions& execution) {
  return execution.precision == ExecutionOptions::Precision::kBf16 ? Compute::kBf16 : Compute::kFp32;
}

inline Tape::Ops ops_of(const ExecutionOptions& execution) {
  return execution.ops == ExecutionOptions::Ops::kReference ? Tape::Ops::kReference : Tape::Ops::kFast;
}

}  // namespace tearless::engine
