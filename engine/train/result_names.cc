#include "engine/train/result_names.h"

#include <algorithm>
#include <cctype>

#include "engine/model/scope.h"
#include "engine/train/observe.h"

namespace tearless::engine {
namespace {

bool is_number(const std::string& part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// A place in the model: "encoder.*.ffn" of "encoder.3.ffn".
struct Place {
  explicit Place(const std::string& name) {
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('.', begin), name.size());
      const std::string part = name.substr(begin, end - begin);
      pattern += (begin > 0 ? "." : "") + (is_number(part) ? "*" : part);
      in_layer |= is_number(part);
      begin = end + 1;
    }
  }

  std::string pattern;
  bool in_layer = false;
};

void add_observed(const Parameters& model, const ObserveOptions& observe, std::set<std::string>& metrics) {
  for (const ParameterSpec& spec : model.specs()) {
    if (const std::string name = observed_group(observe, spec.name); !name.empty()) {
      const std::string group = Place(name).pattern;
      if (observe.groups) metrics.insert({"grad_norm." + group, "step_norm." + group, "update_ratio." + group});
      if (observe.window_means) metrics.insert("grad_norm_window_mean." + group);
    }
    const Place sublayer(parameter_group(spec.name));
    if (observe.variances && sublayer.in_layer) metrics.insert("variance." + sublayer.pattern);
  }
}

}  // namespace

ResultNames result_names(const TaskNumbers& task, const Parameters& model, const TrainOptions& train,
                         const ExecutionOptions& execution) {
  ResultNames names;
  names.metrics.insert("epoch");
  for (const auto* set : {&task.training, &task.dev}) {
    names.metrics.insert(set->begin(), set->end());
    names.scores.insert(set->begin(), set->end());
  }
  names.scores.insert(task.final.begin(), task.final.end());
  for (const ParameterSpec& spec : model.specs()) {
    const std::string length = learned_length(spec);
    if (length.empty()) continue;
    names.metrics.insert(Place(length).pattern);
    names.scores.insert(Place(length).pattern);
  }
  names.scores.insert(
      {"diverged_step", "parameters", "selected_step", "train.grad_norm_max", "train.grad_norm_mean", "updates"});
  if (train.select.count > 1) names.scores.insert("averaged_checkpoints");

  if (!train.epoch_updates || *train.epoch_updates <= train.update_limit()) names.metrics.insert("train.loss_sum");
  if (execution.log_updates <= train.update_limit()) {
    names.metrics.insert({"train.grad_norm", "train.grad_norm_window_mean", "train.loss", "train.lr"});
    add_observed(model, execution.observe, names.metrics);
  }
  const int64_t patience = execution.observe.early_stop;
  if (train.early_stop == 0 && patience > 0 && train.evaluation_limit() > patience) {
    names.metrics.insert(would_stop_metric(compared_by(train.select, task.selection, task.dev_loss)));
  }
  return names;
}

}  // namespace tearless::engine
