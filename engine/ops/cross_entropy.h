// Label-smoothed cross-entropy over the columns of the logits, in four forms (docs/spec/training.md §6.0).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/ops/tape.h"

namespace tearless::engine {

/// How the mass ε is spread over the K columns. Three forms need a column for every token of the vocabulary, PAD and
/// BOS included; their K is V.
enum class SmoothingForm {
  kTwt,      // q = (1-ε)·gold + ε/K; K is the output vocabulary
  kFairseq,  // the same over the whole vocabulary: q = (1-ε)·gold + ε/V
  kZero,     // q = 1-ε of the label, ε/(V-1) of each other token; H(q) is subtracted
  kJoey      // q = 1-ε of the label, 0 of PAD, ε/(V-2) of each other token; H(q) is subtracted
};

/// The smoothing of a loss. A number by itself is that mass in the form of TwT.
struct LabelSmoothing {
  double mass = 0;  // ε
  SmoothingForm form = SmoothingForm::kTwt;

  LabelSmoothing(double of_twt = 0) : mass(of_twt) {}
  LabelSmoothing(double mass_of_form, SmoothingForm of) : mass(mass_of_form), form(of) {}

  /// Whether every token of the vocabulary needs a column of the logits, and its number is that of the column.
  bool over_whole_vocabulary() const { return mass > 0 && form != SmoothingForm::kTwt; }
};

/// Sums over all rows: loss_t = Σ_v q(v) · -log p(v), less H(q) in the forms that subtract it; nll_t = -log p(label).
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

/// What the mean of the losses is over, where it is not over the labels: Σ_t weights[t] · loss_t / divisor. Sums of
/// losses are without weights.
struct RowWeights {
  const std::vector<float>& weights;  // [T]
  int64_t divisor = 1;
};

/// logits [T, K]; labels [T] in 0 … K-1, negative for padding rows, which count for nothing. On a recording tape this
/// is the root: backward() starts from the gradient of loss / tokens (the mean per token; `row_weights` and
/// Tape::loss_scale() change the factors), which the kernel writes over the logits. Sums are in double, row after row.
/// With `on_device` nothing is read back and the returned sums are 0. std::logic_error unless each row has a label, and
/// a weight where there are weights.
CrossEntropySums smoothed_cross_entropy(Tape& tape, const Value& logits, const std::vector<int32_t>& labels,
                                        const LabelSmoothing& smoothing, const LossOnDevice* on_device = nullptr,
                                        const RowWeights* row_weights = nullptr);

}  // namespace tearless::engine
