// Label-smoothed cross-entropy over the kept vocabulary, in the form of TwT (training.md §1.8).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/ops/tape.h"

namespace tearless::engine {

/// Sums over all rows. loss_t = (1-ε)·nll_t + (ε/K)·Σ_v -log p(v), so the smoothing mass lies on every kept type, the
/// gold one too.
struct LossSums {
  double loss = 0;
  double nll = 0;
  int64_t tokens = 0;
  LossSums& operator+=(const LossSums& other);
};

/// Where a step that is captured once and replayed finds what it cannot be told, and leaves what it cannot return.
struct LossOnDevice {
  at::Tensor share;  // [1] double: 1 / tokens
  at::Tensor sums;   // [2] double: Σ loss and Σ nll are added to it
};

/// logits [T, K], labels [T] in 0 … K-1, or negative: a row that counts for nothing. On a recording tape this is the
/// root: backward() starts from the gradient of loss / tokens (per-token mean), which the fast version writes over the
/// logits. Sums are taken in double, row after row. With `on_device` nothing is read back and the sums returned are 0.
LossSums smoothed_cross_entropy(Tape& tape, const Value& logits, const std::vector<int32_t>& labels, double smoothing,
                                const LossOnDevice* on_device = nullptr);

}  // namespace tearless::engine
