// drop(ReLU(x + b)): what lies between the two matmuls of the feed-forward block. Dropout comes after the ReLU
// (docs/spec/knobs.md §4.1).
#pragma once

#include "engine/ops/dropout.h"
#include "engine/ops/packed_rows.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// x [T, F], bias [F] or empty → [T, F]. `rows` gives the dropout counters and must outlive the tape. The result may
/// overwrite x: do not read x afterwards.
Value bias_relu_dropout(Tape& tape, const Value& x, const Value& bias, const Dropout& dropout, const PackedRows& rows);

}  // namespace tearless::engine
