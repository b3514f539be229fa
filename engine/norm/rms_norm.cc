// RMSNorm (Zhang and Sennrich 2019): g ⊙ x / √(mean(x²) + ε). (TwT §4.2) repeats its experiments with it but does not
// state its ε; 1e-8 is the RMSNorm paper's choice (docs/spec/knobs.md §2.1).
#include <ATen/TensorOperators.h>

#include "engine/norm/norm.h"

namespace tearless::engine {

NormKind rms_norm_kind() {
  return {
      .meaning = "g ⊙ x / √(mean(x²) + ε), ε = 1e-8",
      .gain = NormKind::Gain::kChannel,
      .default_eps = 1e-8,
      .row = RowNorm{.denominator = RowNorm::Denominator::kRootAddEps},
      .formula =
          [](const at::Tensor& x, const at::Tensor& gain, const at::Tensor&, double eps) {
            return x * (x.square().mean(-1, /*keepdim=*/true) + eps).rsqrt() * gain;  // [T, D]
          },
  };
}

}  // namespace tearless::engine
