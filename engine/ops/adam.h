// Global-norm clipping and Adam (docs/spec/training.md §1.5, §3). All parameters are one flat fp32 buffer [P], and so
// are gradients and moments; the kernels of global_norm() and adam_step() make one pass over them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/ops/kernels.h"

namespace tearless::engine {

/// What ε is added to (docs/spec/training.md §1.5 and §3).
enum class AdamEps {
  kCorrected,   // √v̂, as in torch.optim.Adam
  kUncorrected  // √v, as in fairseq and TensorFlow
};

/// The factor of gradients that are divided and then clipped: min(1, clip_norm / (‖g‖ + 1e-6)) / divisor.
/// `gradient_norm` is ‖g‖ of the divided ones; clip_norm 0: no clipping.
double gradient_factor(double gradient_norm, double clip_norm, double divisor);

/// One update of Adam.
struct AdamStep {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clip_norm = 1.0;   // as for gradient_factor()
  int64_t update = 1;       // counted from 1: bias correction 1 - βᵗ
  double weight_decay = 0;  // decoupled: θ decreases by lr · weight_decay · θ too
  AdamEps eps_added_to = AdamEps::kCorrected;
  double gradient_divisor = 1;  // what the gradients are to be divided by, before clipping
};

/// The factors that depend on learning rate and update number t: lr / (1 - β₁ᵗ), c = 1 / √(1 - β₂ᵗ), ε and
/// lr · weight_decay. An ε that is added to √v is ε · c here, because
/// lr · √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε) = lr / (1 - β₁ᵗ) · m / (√v · c + ε · c).
AdamFactors adam_factors(const AdamStep& step);

/// The kernel's arguments for these buffers, all but clip and factors.
Adam adam_call(const AdamStep& step, const at::Tensor& gradients, const at::Tensor& parameters,
               const at::Tensor& first_moment, const at::Tensor& second_moment);

/// ‖g‖₂ of a flat buffer [P], in double, the same bits for any number of threads. Waits for the device.
double global_norm(const at::Tensor& gradients);

/// Divides the gradients, clips them, then θ ← θ - lr · weight_decay · θ - lr · m̂ / (√v̂ + ε) with ε outside the root.
/// All buffers [P], updated in place; the gradients are zero afterwards. `gradient_norm` is that of the divided
/// gradients: global_norm(gradients) / step.gradient_divisor.
void adam_step(const AdamStep& step, double gradient_norm, at::Tensor& gradients, at::Tensor& parameters,
               at::Tensor& first_moment, at::Tensor& second_moment);

}  // namespace tearless::engine
