// The norms of Xu et al. 2019, "Understanding and Improving Layer Normalization" (ADA), none with parameters
// (docs/spec/knobs.md §2). y = (x - μ) / σ:
//   ln_simple    y                                       ADA eq. 2
//   detach_norm  y without gradients of μ and σ          ADA eq. 4
//   detach_mean  y without a gradient of μ               ADA Table 3
//   detach_var   y without a gradient of σ               ADA Table 3; the deviation is detached (ADA footnote 3)
//   ada_norm     C (1 - k y) ⊙ y, the factor detached    ADA eq. 9
// Gradients, with δ = ∂ℓ/∂y, δ̄ its mean, c = mean(δ ⊙ y), ε = 0 (ADA App. 7.2):
//   ln_simple (δ - δ̄ - c y)/σ   detach_mean (δ - c y)/σ   detach_var (δ - δ̄)/σ   detach_norm δ/σ
// The paper writes σ biased and without ε; its code divides by the unbiased deviation + 1e-5, which is
// model.norm.deviation = "unbiased" with eps_mode = "std_add" (docs/spec/discrepancies.md B2).
#include <ATen/TensorOperators.h>

#include "engine/norm/norm.h"

namespace tearless::engine {
namespace {

/// (x - μ) / σ with the gradients of μ, σ or both stopped.
template <class Kind>
class Standardised : public NormKindOf<Kind> {
 public:
  std::optional<RowNorm> row(const NormDenominator& denominator, int64_t) const override {
    return RowNorm{.centred = true,
                   .denominator = denominator.of_row(),
                   .eps = denominator.eps,
                   .unbiased = denominator.unbiased(),
                   .mean_has_gradient = !mean_stopped_,
                   .denominator_has_gradient = !deviation_stopped_};
  }
  at::Tensor formula(const at::Tensor& x, const at::Tensor&, const at::Tensor&,
                     const NormDenominator& denominator) const override {
    return standardised(x, denominator);
  }

 protected:
  Standardised(bool mean_stopped, bool deviation_stopped)
      : mean_stopped_(mean_stopped), deviation_stopped_(deviation_stopped) {
    this->has_eps_mode = this->has_deviation = true;
  }
  at::Tensor standardised(const at::Tensor& x, const NormDenominator& d) const {
    const at::Tensor mean = x.mean(-1, /*keepdim=*/true);  // [T, 1]
    const at::Tensor inverse =
        d.inverse_of(x - mean);  // a function of x even where the gradient of the mean is stopped
    return (x - (mean_stopped_ ? stop_gradient(mean) : mean)) * (deviation_stopped_ ? stop_gradient(inverse) : inverse);
  }

 private:
  bool mean_stopped_, deviation_stopped_;
};

class LnSimple final : public Standardised<LnSimple> {
 public:
  LnSimple() : Standardised(false, false) { meaning = "(x - μ) / √(σ² + ε), no gain and bias, ε = 1e-5 (ADA eq. 2)"; }
};

class DetachNorm final : public Standardised<DetachNorm> {
 public:
  DetachNorm() : Standardised(true, true) { meaning = "as ln_simple, without gradients of μ and σ (ADA eq. 4)"; }
};

class DetachMean final : public Standardised<DetachMean> {
 public:
  DetachMean() : Standardised(true, false) { meaning = "as ln_simple, without a gradient of μ (ADA Table 3)"; }
};

class DetachVar final : public Standardised<DetachVar> {
 public:
  DetachVar() : Standardised(false, true) { meaning = "as ln_simple, without a gradient of σ (ADA Table 3)"; }
};

class AdaNorm final : public Standardised<AdaNorm> {
 public:
  AdaNorm() : Standardised(false, false) {
    meaning = "C (1 - k y) ⊙ y with y of ln_simple, without a gradient of the factor (ADA eq. 9)";
  }
  void describe_own(SettingsVisitor& v, std::string_view switched_off_by) override {
    v.number({.key = "c",
              .meaning = "C of ada_norm, of the size of the output (ADA §4.1; per task: ADA App. 7.1)",
              .min = 0,
              .max = 1000,
              .switched_off_by = switched_off_by},
             c_);
    v.number({.key = "k",
              .meaning = "k of ada_norm: how much large elements shrink (ADA §4.1)",
              .min = 0,
              .max = 1,
              .switched_off_by = switched_off_by},
             k_);
  }
  std::optional<RowNorm> row(const NormDenominator& denominator, int64_t d_model) const override {
    std::optional<RowNorm> row = Standardised::row(denominator, d_model);
    row->scale = c_;
    row->shrink = k_;
    return row;
  }
  at::Tensor formula(const at::Tensor& x, const at::Tensor&, const at::Tensor&,
                     const NormDenominator& denominator) const override {
    const at::Tensor y = standardised(x, denominator);
    return stop_gradient(c_ * (1 - k_ * y)) * y;
  }

 private:
  double c_ = 1, k_ = 0.1;
};

}  // namespace

std::unique_ptr<NormKind> ln_simple_kind() { return std::make_unique<LnSimple>(); }
std::unique_ptr<NormKind> detach_norm_kind() { return std::make_unique<DetachNorm>(); }
std::unique_ptr<NormKind> detach_mean_kind() { return std::make_unique<DetachMean>(); }
std::unique_ptr<NormKind> detach_var_kind() { return std::make_unique<DetachVar>(); }
std::unique_ptr<NormKind> ada_norm_kind() { return std::make_unique<AdaNorm>(); }

}  // namespace tearless::engine
