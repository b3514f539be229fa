// What follows from the settings of [run]: types of LibTorch and the tape, and the memory that training needs.
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

/// Whether updates are captured (captured_updater.h): on the GPU, unless run.ops = "reference".
inline bool captures_updates(const ExecutionOptions& execution) {
  return execution.device == ExecutionOptions::Device::kCuda && execution.ops == ExecutionOptions::Ops::kFast;
}

/// A rough upper estimate of the memory that training needs, by which a scheduler places a run before anything was
/// measured: the bytes for a model of `parameters` and batches of which the forward pass saves `saved` numbers for the
/// backward pass:
///
///   parameters   8 bytes each, value and gradient; 4 more for each of the optimiser's `buffers`; 2 more for the copy
///                in bf16 on a GPU
///   waiting      4 bytes more each, of parameter and buffers, where a checkpoint may wait in memory (checkpoint.h)
///   rows         4 bytes a number, 2 in bf16 on a GPU
///   captured     the rows twice: a captured update has memory of its own, and LibTorch keeps that of the update before
///                it, which ran operation by operation
///   on a GPU     1 GiB for the CUDA context and the libraries' kernels
///
/// On the CPU the memory is the machine's, and the program's own is left out.
int64_t estimated_memory_bytes(const ExecutionOptions& execution, int64_t parameters, int64_t saved, int64_t buffers);

}  // namespace tearless::engine
