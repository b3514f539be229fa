// AdaGrad (Duchi, Hazan and Singer 2011) with ε inside the root, as in CoreNLP's parser (docs/spec/tasks.md §4.3):
// s ← s + g², θ ← θ - lr · g / √(s + ε).
#include <ATen/TensorOperators.h>

#include "engine/train/optimiser.h"

namespace tearless::engine {
namespace {

class AdaGrad final : public OptimiserKindOf<AdaGrad> {
 public:
  AdaGrad() {
    meaning = "s ← s + gradient², then lr · gradient / √(s + ε); it has no kernel";
    buffers = 1;
  }
  void describe_own(SettingsVisitor& v, std::string_view switched_off_by) override {
    v.number({.key = "eps", .meaning = "added inside the root", .min = kMinEps, .switched_off_by = switched_off_by},
             eps);
  }
  void formula(double learning_rate, const at::Tensor& gradients, at::Tensor& parameters,
               std::vector<at::Tensor>& buffers) const override {
    buffers[0].addcmul_(gradients, gradients);
    parameters.addcdiv_(gradients, buffers[0].add(eps).sqrt_(), -learning_rate);
  }

  double eps = 1e-6;
};

}  // namespace

std::unique_ptr<OptimiserKind> adagrad_optimiser() { return std::make_unique<AdaGrad>(); }

}  // namespace tearless::engine
