// What is observed of one update by groups of parameters ([observe] groups): the norm of the gradient, and how far the
// weights move (docs/spec/training.md §7.5, §7.6).
//
// A group is a sublayer with its norms ("encoder.1.ffn"), the norm after a stack ("encoder.final.norm"), or another
// part of the model ("embedding.shared", "output").
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "engine/model/parameters.h"

namespace tearless::engine {

/// The group of a parameter: its name without "weight", "bias" or "gain", and of that at most three parts.
std::string parameter_group(const std::string& parameter);

class ObservedGroups {
 public:
  /// Before the optimiser's step. The gradients are `divisor` times too large. Borrows the parameters.
  ObservedGroups(Parameters& parameters, double divisor);

  /// After it: adds grad_norm.GROUP, the L2 norm of the group's gradient before clipping, and update_ratio.GROUP, the
  /// norm of the change of its values divided by their norm before; no ratio where that is 0.
  void add_metrics(std::map<std::string, double>& metrics) const;

 private:
  const Parameters& parameters_;
  std::map<std::string, double> gradient_squares_;  // by group
  at::Tensor before_;                               // [P]
};

}  // namespace tearless::engine
