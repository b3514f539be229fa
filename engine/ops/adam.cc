#include "engine/ops/adam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sqrt.h>

#include <algorithm>
#include <cmath>

#include "engine/ops/rows.h"

namespace tearless::engine {

double global_norm(const at::Tensor& gradients) {
  if (!gradients.device().is_cpu()) return std::sqrt(gradients.to(at::kDouble).square().sum().item<double>());
  assert(gradients.is_contiguous() && gradients.scalar_type() == at::kFloat);
  const float* g = gradients.const_data_ptr<float>();
  const int64_t size = gradients.numel();
  constexpr int64_t kBlock = 1 << 14;
  const int64_t blocks = (size + kBlock - 1) / kBlock;
  std::vector<double> partial(static_cast<size_t>(blocks));
  at::parallel_for(0, blocks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const float* from = g + block * kBlock;
      partial[static_cast<size_t>(block)] = sum_of<double>(std::min(kBlock, size - block * kBlock), [&](int64_t i) {
        return static_cast<double>(from[i]) * static_cast<double>(from[i]);
      });
    }
  });
  double sum = 0;
  for (const double p : partial) sum += p;
  return std::sqrt(sum);
}

void adam_step(const AdamStep& step, double gradient_norm, const at::Tensor& gradients, at::Tensor& parameters,
               at::Tensor& first_moment, at::Tensor& second_moment) {
  const double clip = step.clip_norm > 0 ? std::min(1.0, step.clip_norm / (gradient_norm + 1e-6)) : 1.0;
  const double t = static_cast<double>(step.update);
  const double step_size = step.learning_rate / (1 - std::pow(step.beta1, t));
  const double root_correction = std::sqrt(1 - std::pow(step.beta2, t));
  if (!parameters.device().is_cpu()) {
    const at::Tensor g = gradients * clip;
    first_moment.mul_(step.beta1).add_(g, 1 - step.beta1);
    second_moment.mul_(step.beta2).addcmul_(g, g, 1 - step.beta2);
    parameters.addcdiv_(first_moment, at::sqrt(second_moment).div_(root_correction).add_(step.eps), -step_size);
    return;
  }
  const float* g = gradients.const_data_ptr<float>();
  float* theta = parameters.mutable_data_ptr<float>();
  float* m = first_moment.mutable_data_ptr<float>();
  float* v = second_moment.mutable_data_ptr<float>();
  const auto scale = static_cast<float>(clip);
  const auto beta1 = static_cast<float>(step.beta1);
  const auto beta2 = static_cast<float>(step.beta2);
  const auto rest1 = static_cast<float>(1 - step.beta1);
  const auto rest2 = static_cast<float>(1 - step.beta2);
  const auto rate = static_cast<float>(step_size);
  const auto inverse_root = static_cast<float>(1 / root_correction);
  const auto eps = static_cast<float>(step.eps);
  at::parallel_for(0, parameters.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float clipped = scale * g[i];
      m[i] = beta1 * m[i] + rest1 * clipped;
      v[i] = beta2 * v[i] + rest2 * clipped * clipped;
      theta[i] -= rate * m[i] / (std::sqrt(v[i]) * inverse_root + eps);
    }
  });
}

}  // namespace tearless::engine
