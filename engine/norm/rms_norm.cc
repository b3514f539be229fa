// RMSNorm (Zhang and Sennrich 2019): g ⊙ x / √(mean(x²) + ε). (TwT §4.2) repeats its experiments with it but does not
// state its ε; 1e-8 is the RMSNorm paper's choice (docs/spec/knobs.md §2.1).
#include <ATen/TensorOperators.h>

#include "engine/norm/norm.h"

namespace tearless::engine {
namespace {

class RmsNorm final : public NormKindOf<RmsNorm> {
 public:
  RmsNorm() {
    meaning = "g ⊙ x / √(mean(x²) + ε), ε = 1e-8";
    gain = Gain::kChannel;
    default_eps = 1e-8;
    has_eps_mode = true;
  }
  std::optional<RowNorm> row(const NormDenominator& denominator, int64_t) const override {
    return RowNorm{.denominator = denominator.of_row(), .eps = denominator.eps};
  }
  at::Tensor formula(const at::Tensor& x, const at::Tensor& g, const at::Tensor&,
                     const NormDenominator& denominator) const override {
    return x * denominator.inverse_of(x) * g;  // [T, D]
  }
};

}  // namespace

std::unique_ptr<NormKind> rms_norm_kind() { return std::make_unique<RmsNorm>(); }

}  // namespace tearless::engine
