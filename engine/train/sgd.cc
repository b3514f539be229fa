// Gradient descent with momentum, as in torch.optim.SGD: b ← μ · b + g, θ ← θ - lr · b.
#include <ATen/TensorOperators.h>

#include "engine/train/optimiser.h"

namespace tearless::engine {
namespace {

class Sgd final : public OptimiserKindOf<Sgd> {
 public:
  Sgd() {
    meaning = "b ← momentum · b + gradient, then lr · b, as in PyTorch; it has no kernel";
    buffers = 1;
  }
  void describe_own(SettingsVisitor& v, std::string_view switched_off_by) override {
    v.number({.key = "momentum",
              .meaning = "decay of the sum of gradients",
              .min = 0,
              .max = 0.999999,
              .neutral = 0.0,
              .switched_off_by = switched_off_by},
             momentum);
  }
  void formula(double learning_rate, const at::Tensor& gradients, at::Tensor& parameters,
               std::vector<at::Tensor>& buffers) const override {
    buffers[0].mul_(momentum).add_(gradients);
    parameters.sub_(buffers[0], learning_rate);
  }

  double momentum = 0;
};

}  // namespace

std::unique_ptr<OptimiserKind> sgd_optimiser() { return std::make_unique<Sgd>(); }

}  // namespace tearless::engine
