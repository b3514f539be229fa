// The feed-forward sublayer: W₂ · drop(ReLU(W₁ x + b₁)) + b₂ (docs/spec/knobs.md §4.1).
#pragma once

#include "engine/model/sublayer.h"

namespace tearless::engine {

class FeedForward final : public Sublayer {
 public:
  explicit FeedForward(const LayerScope& scope);

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override;

 private:
  Linear inner_;  // [F, D]
  Linear outer_;  // [D, F]
  DropoutSite dropout_;
};

}  // namespace tearless::engine
