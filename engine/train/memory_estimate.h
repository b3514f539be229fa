// How much memory training will need, for `check`: a rough upper estimate, by which a scheduler places a run before
// anything was measured.
#pragma once

#include <cstdint>

#include "engine/train/options.h"

namespace tearless::engine {

/// Bytes for a model of `parameters` and batches of which the forward pass saves `saved` numbers for the backward pass:
///
///   parameters   16 bytes each: value, gradient, two moments; 2 more for the copy in bf16 on a GPU
///   rows         4 bytes a number, 2 in bf16 on a GPU
///   captured     the rows twice: a captured update has memory of its own, and LibTorch keeps that of the update before
///                it, which ran operation by operation
///   on a GPU     1 GiB for the CUDA context and the libraries' kernels
///
/// On the CPU the memory is the machine's, and the program's own is left out.
int64_t estimated_memory_bytes(const ExecutionOptions& execution, int64_t parameters, int64_t saved);

}  // namespace tearless::engine
