// Numbers of a batch, such as pixels, as rows on the device.
#pragma once

#include <vector>

#include "engine/ops/tape.h"

namespace tearless::engine {

/// values [T · width] → [T, width] of the given type on like's device: a copy, of which no gradient is wanted. Reads
/// the tape's device copy of `values` where there is one; `values` must not change before the tape's work is done.
/// REQUIRES: width divides the number of values.
Value input_rows(const Tape& tape, const std::vector<float>& values, int64_t width, const at::Tensor& like,
                 at::ScalarType type);

}  // namespace tearless::engine
