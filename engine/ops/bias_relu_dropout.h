// drop(ReLU(x + b)): the inner seam of the feed-forward block (knobs.md §4.1: dropout stands after the ReLU).
#pragma once

#include "engine/ops/dropout.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// x [T, F], bias [F] → [T, F]. `rows` must outlive the tape. x is written over: nobody may read it afterwards.
Value bias_relu_dropout(Tape& tape, const Value& x, const Value& bias, const Dropout& dropout, const PackedRows& rows);

}  // namespace tearless::engine
