// The same numbers as rows of another width.
#pragma once

#include "engine/ops/tape.h"

namespace tearless::engine {

/// x [R, C] → [R · C / width, width], in the same memory; backward copies nothing either. An operation that overwrites
/// the result overwrites x. REQUIRES: x is contiguous, and width divides R · C.
Value reshape(Tape& tape, const Value& x, int64_t width);

}  // namespace tearless::engine
