// Makes the device of a run usable before the first tensor is made on it.
#pragma once

#include "engine/train/options.h"

namespace tearless::engine {

/// For device = "cuda": opens the CUDA library, and gives the calling thread a stream of its own. UserError where there
/// is none, or no GPU.
void open_device(const ExecutionOptions& execution);

}  // namespace tearless::engine
