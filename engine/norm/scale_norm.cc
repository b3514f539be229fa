// ScaleNorm (Nguyen and Salazar 2019, "Transformers without Tears", eq. 5): g · x / max(‖x‖₂, ε), each row to the
// length of one learned number g. The trap: g must start at √d; from 1 the model hardly trains (discrepancies.md §E3).
// ε clamps the length from below (it is never added), so a zero row stays zero. Where the norm stands:
// engine/model/residual.h. Tested by tests/engine/norm/.
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
