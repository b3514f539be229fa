// Global-norm clipping and Adam over flat buffers: one pass each (training.md §1.5).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/ops/kernels.h"

namespace tearless::engine {

struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clip_norm = 1.0;  // gradients are scaled by min(1, clip / (‖g‖ + 1e-6)); 0 = no clipping
  int64_t update = 1;      // counted from 1: bias correction 1 - βᵗ
};

/// How an update's number and rate enter the step: lr / (1 - β₁ᵗ) and 1 / √(1 - β₂ᵗ).
struct AdamRates {
  float rate = 0, inverse_root = 0;
};
AdamRates adam_rates(const AdamStep& step);

/// The kernel's call over these buffers, without clip and rates.
Adam adam_call(const AdamStep& step, const at::Tensor& gradients, const at::Tensor& parameters,
               const at::Tensor& first_moment, const at::Tensor& second_moment);

/// ‖g‖₂ of a flat buffer [P], in double, the same for any number of threads.
double global_norm(const at::Tensor& gradients);

/// θ ← θ - lr · m̂ / (√v̂ + ε), with ε outside the root (the form of torch). All buffers [P] and updated in place;
/// `gradient_norm` is global_norm(gradients). The gradients are zero afterwards. No weight decay.
void adam_step(const AdamStep& step, double gradient_norm, at::Tensor& gradients, at::Tensor& parameters,
               at::Tensor& first_moment, at::Tensor& second_moment);

}  // namespace tearless::engine
