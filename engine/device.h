// Makes the device of a run usable before the first tensor is made on it.
#pragma once

#include <string>

#include "engine/train/options.h"

namespace tearless::engine {

/// For device = "cuda": opens the CUDA library, and gives the calling thread a stream of its own. UserError where there
/// is none, or no GPU.
void open_device(const ExecutionOptions& execution);

/// Why no kernel of ours runs on a GPU of this name and compute capability; "" where they do.
std::string why_not_usable(const std::string& name, int major, int minor);

}  // namespace tearless::engine
