// The CUDA kernel bodies compiled for the processor, for tests on machines without a GPU: the same arithmetic, launch
// shapes and exchanges between threads, about a million times slower. All pointers are to host memory; `stream` is
// ignored.
#pragma once

#include "engine/ops/bf16.h"
#include "engine/ops/kernels.h"
#include "tests/engine/cuda/block_on_host.h"

namespace tearless::engine::test {

extern const Kernels<float> float_kernels_on_host;
extern const Kernels<bf16> bf16_kernels_on_host;
extern const OptimiserKernels optimiser_kernels_on_host;
extern const SearchKernels search_kernels_on_host;

}  // namespace tearless::engine::test
