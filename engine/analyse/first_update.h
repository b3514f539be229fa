// What one pass of the first batch shows of a model: the gradients at the named points of its residual streams
// (engine/model/stream_observer.h) and those of its layers' parameters. Makes no update.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/train/options.h"
#include "engine/train/task.h"

namespace tearless::engine {

/// The norms of δ = ∂ℓ/∂rows [T, D] at one point. With several batches T is of all of them.
struct GradientNorms {
  double of_sum = 0;       // of Σ δ over the rows [D]
  double of_elements = 0;  // of δ
};

/// A sublayer by its points: x, r = x + drop(F(x)), o (StreamPoint).
struct SublayerGradients {
  GradientNorms input, sum, output;
  double variance = 0;  // of the elements of r
};

struct FirstUpdate {
  std::map<std::string, SublayerGradients> sublayers;  // "encoder.1.ffn"
  std::map<std::string, double> layers;                // "encoder.1" → L2 norm of the gradient of its parameters
};

/// The first update of training up to its optimiser's step, with the parameters that the task has now: the first
/// train.accumulate batches of pass 0, in training mode, with the dropout masks of update 1. The gradients are those
/// that training would clip, and the same on any number of threads; afterwards they are zero. Throws UserError if the
/// loss is not finite.
FirstUpdate analyse_first_update(Task& task, const TrainOptions& train, const ExecutionOptions& execution);

}  // namespace tearless::engine
