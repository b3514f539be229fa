// Gates: how much of two rows passes (the average attention network of Zhang et al. 2018; docs/spec/knobs.md §11.5).
#pragma once

#include "engine/ops/tape.h"

namespace tearless::engine {

/// a [T, W], b [T, W] → [T, 2 W]: the columns of a, then those of b.
Value join_columns(Tape& tape, const Value& a, const Value& b);

/// gates [T, 2 D], x [T, 2 D] → [T, D]: σ(gates) ⊙ x, with the two halves of a row added.
Value gated_sum(Tape& tape, const Value& gates, const Value& x);

}  // namespace tearless::engine
