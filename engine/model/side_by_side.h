// A sublayer made of two others that read the same rows and whose outputs are added: one residual connection for both
// (docs/spec/knobs.md §11.4, §11.5).
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "engine/model/sublayer.h"
#include "engine/ops/add_norm.h"

namespace tearless::engine {

class SideBySide : public Sublayer {
 public:
  /// Their parameters are named after their kinds: decoder.1.matt_aan.aan.gate.weight. REQUIRES: one of them at most
  /// keeps something of each row (std::logic_error).
  SideBySide(const LayerScope& scope, SourceProjection& source, const SublayerKind& first, const SublayerKind& second)
      : first_(first.make(scope.in_sublayer(std::string(first.name)), source)),
        second_(second.make(scope.in_sublayer(std::string(second.name)), source)),
        keeper_(second_->slot_width() > 0 ? *second_ : *first_) {
    require(first_->slot_width() == 0 || second_->slot_width() == 0, "sublayers side by side: both want the slot");
  }

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override {
    const Value first = first_->forward(context, x, inputs);
    return add_dropped(context.tape, first, second_->forward(context, x, inputs), Dropout::off(), inputs.rows);
  }

  int64_t slot_width() const override { return keeper_.slot_width(); }
  int64_t constant_slot_width() const override { return keeper_.constant_slot_width(); }
  bool slot_is_wide() const override { return keeper_.slot_is_wide(); }

 private:
  std::unique_ptr<Sublayer> first_, second_;
  const Sublayer& keeper_;  // of what is kept
};

}  // namespace tearless::engine
