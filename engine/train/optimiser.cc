#include "engine/train/optimiser.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include "engine/train/options.h"

namespace tearless::engine {

#define OPTIMISER(kind) std::unique_ptr<OptimiserKind> kind##_optimiser();
#include "engine/train/optimisers.def"
#undef OPTIMISER

const Kinds<OptimiserKind>& optimiser_kinds() {
#define OPTIMISER(kind) {#kind, kind##_optimiser},
  static const Kinds<OptimiserKind> kinds{{
#include "engine/train/optimisers.def"
  }};
#undef OPTIMISER
  return kinds;
}

void describe(SettingsVisitor& v, OptimiserOptions& o) {
  static const std::vector<std::string_view> names = optimiser_kinds().names();
  static const std::string meaning = "what makes an update of a gradient: " + optimiser_kinds().meanings();
  v.word({.key = "kind", .meaning = meaning, .choices = names, .neutral = "adam"}, o.kind);
  v.number(
      {.key = "weight_decay",
       .meaning = "decoupled: parameters decrease by lr · weight_decay · parameter at each update, before its step",
       .min = 0,
       .max = 10,
       .neutral = 0.0},
      o.weight_decay);
  v.number({.key = "l2",
            .meaning = "½ · l2 · sum of squared parameters belongs to the loss: l2 · parameter is added to the clipped "
                       "gradient, as by the weight_decay of PyTorch's Adam and SGD; it is not in the loss that is "
                       "reported",
            .min = 0,
            .max = 10,
            .neutral = 0.0},
           o.l2);
  for (const auto& kind : o.kinds_) {
    v.table_of(kind->name, [&] { kind->describe_own(v, kind->name == o.kind ? "" : "train.optimiser.kind"); });
  }
}

OptimiserState::OptimiserState(const OptimiserKind& kind, const at::Tensor& parameters) {
  for (int64_t i = 0; i < kind.buffers; ++i) buffers.push_back(at::zeros_like(parameters));
}

AdamStep adam_step_of(const TrainOptions& train, double learning_rate, int64_t update) {
  return {.learning_rate = learning_rate,
          .beta1 = train.adam.beta1,
          .beta2 = train.adam.beta2,
          .eps = train.adam.eps,
          .clip_norm = train.clip_norm,
          .update = update,
          .weight_decay = train.optimiser.weight_decay,
          .eps_added_to = train.optimiser.chosen().adam.value()};
}

void optimiser_step(const TrainOptions& train, double learning_rate, int64_t update, double gradient_norm,
                    double gradient_divisor, at::Tensor& gradients, at::Tensor& parameters, OptimiserState& state) {
  const OptimiserKind& kind = train.optimiser.chosen();
  const double factor = gradient_factor(gradient_norm, train.clip_norm, gradient_divisor), l2 = train.optimiser.l2;
  if (l2 > 0) gradients.add_(parameters, l2 / factor);  // each kind multiplies by the factor
  if (kind.adam) {
    AdamStep step = adam_step_of(train, learning_rate, update);
    step.gradient_divisor = gradient_divisor;
    adam_step(step, gradient_norm, gradients, parameters, state.buffers[0], state.buffers[1]);
    return;
  }
  gradients.mul_(factor);
  if (train.optimiser.weight_decay > 0) {
    parameters.sub_(parameters * (learning_rate * train.optimiser.weight_decay));
  }
  kind.formula(learning_rate, gradients, parameters, state.buffers);
  gradients.zero_();
}

}  // namespace tearless::engine
