// Prepares the device of a run. Call it before the first tensor is created on that device.
#pragma once

#include <string>
#include <string_view>

#include "engine/train/options.h"

namespace tearless::engine {

/// For device = "cuda": opens the CUDA library, registers its kernels, sets the matmul precision, and gives the calling
/// thread its own stream. Throws UserError if there is no CUDA library, MachineError if there is no usable GPU: the
/// runs can do with another. Does nothing for "cpu".
void open_device(const ExecutionOptions& execution);

/// What may help against an error of CUDA, to be written after it; "" for any other error.
std::string advice_on(std::string_view error);

/// Why the kernels do not run on a GPU of this name and compute capability; "" if they do.
std::string why_not_usable(const std::string& name, int major, int minor);

}  // namespace tearless::engine
