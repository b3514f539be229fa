// No norm: the identity, for final norms too ("w/o Norm" in Xu et al. 2019).
#include "engine/norm/norm.h"

namespace tearless::engine {
namespace {

class NoNorm final : public NormKindOf<NoNorm> {
 public:
  NoNorm() {
    meaning = "the identity";
    has_eps = false;
  }
  std::optional<RowNorm> row(const NormDenominator&, int64_t) const override { return RowNorm{}; }
  at::Tensor formula(const at::Tensor& x, const at::Tensor&, const at::Tensor&, const NormDenominator&) const override {
    return x;
  }
};

}  // namespace

std::unique_ptr<NormKind> none_kind() { return std::make_unique<NoNorm>(); }

}  // namespace tearless::engine
