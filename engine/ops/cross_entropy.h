// Label-smoothed cross-entropy over the output vocabulary, in the form of TwT (docs/spec/training.md §1.8).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/ops/tape.h"

namespace tearless::engine {

/// Sums over all rows. loss_t = (1-ε)·nll_t + (ε/K)·Σ_v -log p(v): the smoothing mass is spread over the whole output
/// vocabulary, the gold token included.
struct CrossEntropySums {
  double loss = 0;
  double nll = 0;
  int64_t tokens = 0;
  CrossEntropySums& operator+=(const CrossEntropySums& other);
};

/// Inputs and outputs in device memory, for a captured update: its arguments and return values are fixed at capture.
struct LossOnDevice {
  at::Tensor loss_scale;  // [1] double: 1 / tokens
  at::Tensor sums;        // [≥ 2] double: Σ loss and Σ nll are added to the first two
};

/// logits [T, K]; labels [T] in 0 … K-1, negative for padding rows, which count for nothing. On a recording tape this
/// is the root: backward() starts from the gradient of loss / tokens (the mean per token; Tape::loss_scale() changes
/// the factor), which the kernel writes over the logits. Sums are in double, row after row. With `on_device` nothing is
/// read back and the returned sums are 0.
CrossEntropySums smoothed_cross_entropy(Tape& tape, const Value& logits, const std::vector<int32_t>& labels,
                                        double smoothing, const LossOnDevice* on_device = nullptr);

}  // namespace tearless::engine
