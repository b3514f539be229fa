// What is observed of one update by groups of parameters ([observe] groups): the norm of the gradient, and how far the
// weights move (docs/spec/training.md §7.5, §7.6); and the variances of the residual sums ([observe] variances).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/model/parameters.h"
#include "engine/model/stream_observer.h"
#include "engine/train/options.h"

namespace tearless::engine {

/// The group of a parameter: its name without "weight", "bias" or "gain", and of that at most three parts. So a group
/// is a sublayer with its norms ("encoder.1.ffn"), the norm after a stack ("encoder.final.norm"), or another part of
/// the model ("embedding.shared", "output").
std::string parameter_group(const std::string& parameter);
/// The layer of a parameter or of a sublayer: "encoder.1" of "encoder.1.ffn"; "" outside the layers.
std::string layer_of(const std::string& name);

/// The parameters of a model in groups.
class ParameterGroups {
 public:
  /// `group_of`: a parameter's group by its name; "": it is in none. The parameters must have been allocated.
  ParameterGroups(const Parameters& parameters, std::string (*group_of)(const std::string&));

  /// The L2 norm of each group's part of a buffer [P], the same bits for any number of threads.
  std::map<std::string, double> norms(const at::Tensor& buffer) const;

 private:
  struct Range {
    std::string group;
    int64_t begin, end;
  };
  std::vector<Range> ranges_;
};

class ObservedGroups {
 public:
  /// Before the optimiser's step. The gradients are `divisor` times too large. Borrows the parameters.
  ObservedGroups(Parameters& parameters, double divisor);

  /// After it: adds grad_norm.GROUP, the L2 norm of the group's gradient before clipping, and update_ratio.GROUP, the
  /// norm of the change of its values divided by their norm before; no ratio where that is 0.
  void add_metrics(std::map<std::string, double>& metrics) const;

 private:
  const Parameters& parameters_;
  ParameterGroups groups_;
  double divisor_;
  std::map<std::string, double> gradient_norms_;  // by group, of the undivided gradients
  at::Tensor before_;                             // [P]
};

/// The variance of the elements of r = x + F(x) of each sublayer, of one batch.
class SumVariances final : public StreamObserver {
 public:
  bool sees_gradients() const override { return false; }
  void see(Tape& tape, const std::string& sublayer, StreamPoint point, const Value& rows) override;
  /// By sublayer.
  const std::map<std::string, double>& variances() const { return variances_; }

 private:
  std::map<std::string, double> variances_;
};

}  // namespace tearless::engine
