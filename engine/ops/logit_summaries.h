// What a search needs of each row of logits besides the row itself: it looks for the best tokens in few blocks of it,
// and needs their log p alone.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/ops/tape.h"

namespace tearless::engine {

/// log p(v) of a row is z_v − log_sum. A block is kLogitBlock neighbouring columns (kernels.h), the last may be
/// shorter.
struct LogitSummary {
  at::Tensor log_sums;  // [T]: log Σ_v e^z_v
  at::Tensor maxima;    // [T, blocks]: the largest logit of each block
};

/// `logits`: [T, K]. Has no gradient.
LogitSummary summary_of(const Tape& tape, const at::Tensor& logits);

}  // namespace tearless::engine
