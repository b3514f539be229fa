// Global-norm clipping and Adam (docs/spec/training.md §1.5). All parameters are one flat fp32 buffer [P], and so are
// gradients and moments; each function makes one pass over them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/ops/kernels.h"

namespace tearless::engine {

/// One update of Adam.
struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clip_norm = 1.0;  // gradients are scaled by min(1, clip / (‖g‖ + 1e-6)); 0 = no clipping
  int64_t update = 1;      // counted from 1: bias correction 1 - βᵗ
};

/// The factors that depend on learning rate and update number t: lr / (1 - β₁ᵗ) and 1 / √(1 - β₂ᵗ).
struct AdamCorrections {
  float step_size = 0, inverse_sqrt_correction2 = 0;
};
AdamCorrections adam_corrections(const AdamStep& step);

/// The kernel's arguments for these buffers, all but clip, step_size and inverse_sqrt_correction2.
Adam adam_call(const AdamStep& step, const at::Tensor& gradients, const at::Tensor& parameters,
               const at::Tensor& first_moment, const at::Tensor& second_moment);

/// ‖g‖₂ of a flat buffer [P], in double, the same bits for any number of threads. Waits for the device.
double global_norm(const at::Tensor& gradients);

/// Clips, then θ ← θ - lr · m̂ / (√v̂ + ε) with ε outside the root, as in torch.optim.Adam. No weight decay. All
/// buffers [P], updated in place; the gradients are zero afterwards. `gradient_norm` is global_norm(gradients).
void adam_step(const AdamStep& step, double gradient_norm, at::Tensor& gradients, at::Tensor& parameters,
               at::Tensor& first_moment, at::Tensor& second_moment);

}  // namespace tearless::engine
