#include "engine/ops/adam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sqrt.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "engine/ops/backend.h"

namespace tearless::engine {

double global_norm(const at::Tensor& gradients) {
  assert(gradients.is_contiguous() && gradients.scalar_type() == at::kFloat);
  const auto squared_norm = optimiser_kernels_for(gradients).squared_norm;
  if (!squared_norm) return std::sqrt(gradients.to(at::kDouble).square().sum().item<double>());
  const at::Tensor sum = at::empty({1}, gradients.options().dtype(at::kDouble));
  squared_norm({.size = gradients.numel(), .gradients = read<float>(gradients), .sum = write<double>(sum)},
               stream_for(gradients));
  return std::sqrt(sum.item<double>());
}

AdamCorrections adam_corrections(const AdamStep& step) {
  const double t = static_cast<double>(step.update);
  return {.step_size = static_cast<float>(step.learning_rate / (1 - std::pow(step.beta1, t))),
          .inverse_sqrt_correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(step.beta2, t)))};
}

Adam adam_call(const AdamStep& step, const at::Tensor& gradients, const at::Tensor& parameters,
               const at::Tensor& first_moment, const at::Tensor& second_moment) {
  return {.size = parameters.numel(),
          .theta = write<float>(parameters),
          .first_moment = write<float>(first_moment),
          .second_moment = write<float>(second_moment),
          .gradients = write<float>(gradients),
          .beta1 = static_cast<float>(step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .one_minus_beta1 = static_cast<float>(1 - step.beta1),
          .one_minus_beta2 = static_cast<float>(1 - step.beta2),
          .eps = static_cast<float>(step.eps)};
}

void adam_step(const AdamStep& step, double gradient_norm, at::Tensor& gradients, at::Tensor& parameters,
               at::Tensor& first_moment, at::Tensor& second_moment) {
  const double clip = step.clip_norm > 0 ? std::min(1.0, step.clip_norm / (gradient_norm + 1e-6)) : 1.0;
  const auto adam = optimiser_kernels_for(parameters).adam;
  if (!adam) {
    const double t = static_cast<double>(step.update);
    const double step_size = step.learning_rate / (1 - std::pow(step.beta1, t));
    const double root_correction = std::sqrt(1 - std::pow(step.beta2, t));
    const at::Tensor g = gradients * clip;
    first_moment.mul_(step.beta1).add_(g, 1 - step.beta1);
    second_moment.mul_(step.beta2).addcmul_(g, g, 1 - step.beta2);
    parameters.addcdiv_(first_moment, at::sqrt(second_moment).div_(root_correction).add_(step.eps), -step_size);
    gradients.zero_();
    return;
  }
  Adam call = adam_call(step, gradients, parameters, first_moment, second_moment);
  const AdamCorrections corrections = adam_corrections(step);
  call.clip = static_cast<float>(clip);
  call.step_size = corrections.step_size;
  call.inverse_sqrt_correction2 = corrections.inverse_sqrt_correction2;
  adam(call, stream_for(parameters));
}

}  // namespace tearless::engine
