// LayerNorm (Ba et al. 2016): g ⊙ (x - μ) / √(σ² + ε) + b, with the biased variance and ε inside the root unless the
// settings say otherwise (docs/spec/knobs.md §2).
#include <ATen/TensorOperators.h>

#include "engine/norm/norm.h"

namespace tearless::engine {
namespace {

class LayerNorm final : public NormKindOf<LayerNorm> {
 public:
  LayerNorm() {
    meaning = "g ⊙ (x - μ) / √(σ² + ε) + b, ε = 1e-5";
    gain = Gain::kChannel;
    bias = true;
    has_eps_mode = has_deviation = true;
  }
  std::optional<RowNorm> row(const NormDenominator& denominator, int64_t) const override {
    return RowNorm{.centred = true,
                   .denominator = denominator.of_row(),
                   .eps = denominator.eps,
                   .unbiased = denominator.unbiased()};
  }
  at::Tensor formula(const at::Tensor& x, const at::Tensor& g, const at::Tensor& b,
                     const NormDenominator& denominator) const override {
    const at::Tensor centred = x - x.mean(-1, /*keepdim=*/true);  // [T, D]
    return centred * denominator.inverse_of(centred) * g + b;
  }
};

}  // namespace

std::unique_ptr<NormKind> layer_norm_kind() { return std::make_unique<LayerNorm>(); }

}  // namespace tearless::engine
