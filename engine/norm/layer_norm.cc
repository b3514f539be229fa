// LayerNorm (Ba et al. 2016): g ⊙ (x - μ) / √(σ² + ε) + b, with the biased variance and ε inside the root
// (docs/spec/knobs.md §2).
#include <ATen/TensorOperators.h>

#include "engine/norm/norm.h"

namespace tearless::engine {

NormKind layer_norm_kind() {
  return {
      .meaning = "g ⊙ (x - μ) / √(σ² + ε) + b, ε = 1e-5",
      .gain = NormKind::Gain::kChannel,
      .bias = true,
      .row = RowNorm{.centred = true, .denominator = RowNorm::Denominator::kRootAddEps},
      .formula =
          [](const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) {
            const at::Tensor centred = x - x.mean(-1, /*keepdim=*/true);              // [T, D]
            const at::Tensor variance = centred.square().mean(-1, /*keepdim=*/true);  // [T, 1]
            return centred * (variance + eps).rsqrt() * gain + bias;
          },
  };
}

}  // namespace tearless::engine
