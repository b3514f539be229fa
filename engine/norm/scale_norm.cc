// ScaleNorm (TwT eq. 5): g · x / max(‖x‖₂, ε), which scales each row to the length g, one learned number. g must start
// at √d: from 1 the model hardly trains (docs/spec/discrepancies.md E3). ε clamps the length from below and is never
// added, so a zero row stays zero. In scale_norm_fixed g stays √d and is no parameter (TwT Table 7).
#include <ATen/TensorOperators.h>

#include <cmath>

#include "engine/norm/norm.h"

namespace tearless::engine {
namespace {

at::Tensor unit_length(const at::Tensor& x, double eps) {
  return x / x.norm(2, -1, /*keepdim=*/true).clamp_min(eps);  // [T, D]
}

double root_of_width(int64_t d_model) { return std::sqrt(static_cast<double>(d_model)); }

class ScaleNorm final : public NormKindOf<ScaleNorm> {
 public:
  ScaleNorm() {
    meaning = "g · x / max(‖x‖₂, ε) with one learned g, ε = 1e-5 (TwT eq. 5)";
    gain = Gain::kScalar;
  }
  double initial_gain(int64_t d_model) const override { return root_of_width(d_model); }
  std::optional<RowNorm> row(const NormDenominator& denominator, int64_t) const override {
    return RowNorm{.denominator = RowNorm::Denominator::kLengthClamped, .eps = denominator.eps};
  }
  at::Tensor formula(const at::Tensor& x, const at::Tensor& g, const at::Tensor&,
                     const NormDenominator& denominator) const override {
    return g * unit_length(x, denominator.eps);  // [T, D]
  }
};

class ScaleNormFixed final : public NormKindOf<ScaleNormFixed> {
 public:
  ScaleNormFixed() {
    meaning =
        "√d · x / max(‖x‖₂, ε), nothing learned, ε = 1e-5; with FixNorm the decoder's last norm is scale_norm "
        "(TwT Table 7)";
    before_fix_norm = "scale_norm";
  }
  std::optional<RowNorm> row(const NormDenominator& denominator, int64_t d_model) const override {
    return RowNorm{
        .denominator = RowNorm::Denominator::kLengthClamped, .eps = denominator.eps, .scale = root_of_width(d_model)};
  }
  at::Tensor formula(const at::Tensor& x, const at::Tensor&, const at::Tensor&,
                     const NormDenominator& denominator) const override {
    return root_of_width(x.size(-1)) * unit_length(x, denominator.eps);
  }
};

}  // namespace

std::unique_ptr<NormKind> scale_norm_kind() { return std::make_unique<ScaleNorm>(); }
std::unique_ptr<NormKind> scale_norm_fixed_kind() { return std::make_unique<ScaleNormFixed>(); }

}  // namespace tearless::engine
