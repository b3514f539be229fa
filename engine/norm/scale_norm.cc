// ScaleNorm (TwT eq. 5): g · x / max(‖x‖₂, ε), which scales each row to the length g, one learned number. g must start
// at √d: from 1 the model hardly trains (docs/spec/discrepancies.md E3). ε clamps the length from below and is never
// added, so a zero row stays zero.
#include <ATen/TensorOperators.h>

#include <cmath>

#include "engine/norm/norm.h"

namespace tearless::engine {

NormKind scale_norm_kind() {
  return {
      .meaning = "g · x / max(‖x‖₂, ε) with one learned g, ε = 1e-5 (TwT eq. 5)",
      .gain = NormKind::Gain::kScalar,
      .initial_gain = [](int64_t d_model) { return std::sqrt(static_cast<double>(d_model)); },
      .row = RowNorm{.denominator = RowNorm::Denominator::kLengthClamped},
      .formula =
          [](const at::Tensor& x, const at::Tensor& gain, const at::Tensor&, double eps) {
            const at::Tensor length = x.norm(2, -1, /*keepdim=*/true).clamp_min(eps);  // [T, 1]
            return gain * (x / length);                                                // [T, D]
          },
  };
}

}  // namespace tearless::engine
