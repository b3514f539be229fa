// Adam with ε added to either root (docs/spec/training.md §1.5 and §3).
#include "engine/train/optimiser.h"

namespace tearless::engine {
namespace {

class TorchAdam final : public OptimiserKindOf<TorchAdam> {
 public:
  TorchAdam() {
    meaning = "Adam with ε added to the corrected root, lr · m̂ / (√v̂ + ε), as in PyTorch";
    adam = AdamEps::kCorrected;
  }
};

class FairseqAdam final : public OptimiserKindOf<FairseqAdam> {
 public:
  FairseqAdam() {
    meaning =
        "with ε added to the root as it is, lr · √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε), as in fairseq and TensorFlow";
    adam = AdamEps::kUncorrected;
  }
};

}  // namespace

std::unique_ptr<OptimiserKind> adam_optimiser() { return std::make_unique<TorchAdam>(); }
std::unique_ptr<OptimiserKind> fairseq_adam_optimiser() { return std::make_unique<FairseqAdam>(); }

}  // namespace tearless::engine
