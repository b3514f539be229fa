#include "engine/ops/adam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sqrt.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/ops/backend.h"

namespace tearless::engine {

double global_norm(const at::Tensor& gradients) {
  require(gradients.is_contiguous(), "global norm: gradients with gaps");
  const auto squared_norm = optimiser_kernels_for(gradients).squared_norm;
  if (!squared_norm) return std::sqrt(gradients.to(at::kDouble).square().sum().item<double>());
  const at::Tensor sum = at::empty({1}, gradients.options().dtype(at::kDouble));
  squared_norm({.size = gradients.numel(), .gradients = read<float>(gradients), .sum = write<double>(sum)},
               stream_for(gradients));
  return std::sqrt(sum.item<double>());
}

double gradient_factor(double gradient_norm, double clip_norm, double divisor) {
  const double clip = clip_norm > 0 ? std::min(1.0, clip_norm / (gradient_norm + 1e-6)) : 1.0;
  return clip / divisor;
}

AdamFactors adam_factors(const AdamStep& step) {
  const double t = static_cast<double>(step.update);
  const double root_correction = 1 / std::sqrt(1 - std::pow(step.beta2, t));
  const double eps = step.eps_added_to == AdamEps::kUncorrected ? step.eps * root_correction : step.eps;
  return {.step_size = static_cast<float>(step.learning_rate / (1 - std::pow(step.beta1, t))),
          .inverse_sqrt_correction2 = static_cast<float>(root_correction),
          .eps = static_cast<float>(eps),
          .decay = static_cast<float>(step.learning_rate * step.weight_decay)};
}

Adam adam_call(const AdamStep& step, const at::Tensor& gradients, const at::Tensor& parameters,
               const at::Tensor& first_moment, const at::Tensor& second_moment) {
  for (const at::Tensor& buffer : {gradients, parameters, first_moment, second_moment}) {
    require(buffer.is_contiguous() && buffer.numel() == parameters.numel(),
            "Adam: buffers of different sizes, or with gaps");
  }
  return {.size = parameters.numel(),
          .theta = write<float>(parameters),
          .first_moment = write<float>(first_moment),
          .second_moment = write<float>(second_moment),
          .gradients = write<float>(gradients),
          .beta1 = static_cast<float>(step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .one_minus_beta1 = static_cast<float>(1 - step.beta1),
          .one_minus_beta2 = static_cast<float>(1 - step.beta2),
          .factors = {}};
}

void adam_step(const AdamStep& step, double gradient_norm, at::Tensor& gradients, at::Tensor& parameters,
               at::Tensor& first_moment, at::Tensor& second_moment) {
  const double factor = gradient_factor(gradient_norm, step.clip_norm, step.gradient_divisor);
  const auto adam = optimiser_kernels_for(parameters).adam;
  if (!adam) {
    const double t = static_cast<double>(step.update);
    const double step_size = step.learning_rate / (1 - std::pow(step.beta1, t));
    const double root_correction = std::sqrt(1 - std::pow(step.beta2, t));
    const bool uncorrected = step.eps_added_to == AdamEps::kUncorrected;
    const at::Tensor g = gradients * factor;
    first_moment.mul_(step.beta1).add_(g, 1 - step.beta1);
    second_moment.mul_(step.beta2).addcmul_(g, g, 1 - step.beta2);
    if (step.weight_decay > 0) parameters.sub_(parameters * (step.learning_rate * step.weight_decay));
    const at::Tensor root = at::sqrt(second_moment);
    const at::Tensor denominator =
        uncorrected ? root.add_(step.eps).div_(root_correction) : root.div_(root_correction).add_(step.eps);
    parameters.addcdiv_(first_moment, denominator, -step_size);
    gradients.zero_();
    return;
  }
  Adam call = adam_call(step, gradients, parameters, first_moment, second_moment);
  call.clip = static_cast<float>(factor);
  call.factors = adam_factors(step);
  adam(call, stream_for(parameters));
}

}  // namespace tearless::engine
