// What is observed of one update by groups of parameters ([observe] groups): the norm of the gradient, and how far the
// weights move (docs/spec/training.md §7.5, §7.6); and the variances of the residual sums ([observe] variances).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
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

/// The group of a parameter of which [observe] logs something; "": of none.
std::string observed_group(const ObserveOptions& observe, const std::string& parameter);
/// Throws UserError if groups are chosen that the model does not have, or of which nothing is logged.
void check_observed_groups(const ObserveOptions& observe, const Parameters& model);

/// The parameters of a model in groups.
class ParameterGroups {
 public:
  /// `group_of`: a parameter's group by its name; "": it is in none. The parameters must have been allocated.
  ParameterGroups(const Parameters& parameters, const std::function<std::string(const std::string&)>& group_of);

  /// The L2 norm of each group's part of a buffer [P], by group; the same bits for any number of threads.
  std::map<std::string, double> norms(const at::Tensor& buffer) const;

 private:
  struct Range {
    std::string group;
    int64_t begin, end;
  };
  std::vector<Range> ranges_;
};

/// How far an optimiser's step moves each group.
class ObservedStep {
 public:
  /// Before the step. Borrows both.
  ObservedStep(const Parameters& parameters, const ParameterGroups& groups)
      : parameters_(parameters), groups_(groups), before_(parameters.values().clone()) {}

  /// After it: adds step_norm.GROUP, the L2 norm of the change of the group's values, and update_ratio.GROUP, that
  /// divided by their norm before; no ratio where this is 0.
  void add_metrics(std::map<std::string, double>& metrics) const;

 private:
  const Parameters& parameters_;
  const ParameterGroups& groups_;
  at::Tensor before_;  // [P]
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
