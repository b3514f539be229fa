// The context of one forward pass: the tape it records on and the update it belongs to. Dropout is active exactly when
// the tape records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/stream_observer.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/dropout.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// Device memory that kernels read in place of host arguments, so that a captured update can be replayed with new
/// values.
struct ReplayInputs {
  const uint32_t* update = nullptr;  // [1] the update's number, which selects the dropout masks
  LossOnDevice loss;
};

/// Borrows what it points to.
struct ForwardContext {
  Tape& tape;
  uint32_t update = 0;                      // counted from 1; selects the dropout masks
  const ReplayInputs* on_device = nullptr;  // set by CapturedUpdater; null: host arguments are used
  StreamObserver* observer = nullptr;       // of the residual streams; null: nobody looks
};

/// The same in that forward pass.
inline CrossEntropySums smoothed_cross_entropy(const ForwardContext& context, const Value& logits,
                                               const std::vector<int32_t>& labels, const LabelSmoothing& smoothing,
                                               const RowWeights* row_weights = nullptr) {
  return smoothed_cross_entropy(context.tape, logits, labels, smoothing,
                                context.on_device ? &context.on_device->loss : nullptr, row_weights);
}

/// One place of the model where dropout is applied. Its random stream is derived from its name.
class DropoutSite {
 public:
  DropoutSite() = default;
  DropoutSite(double probability, uint32_t seed, const std::string& name)
      : probability_(probability), stream_(seed, "drop." + name) {}

  /// The same place where kept elements stay as they are, instead of being multiplied by 1 / (1 - p).
  DropoutSite without_rescaling() const {
    DropoutSite site = *this;
    site.rescales_ = false;
    return site;
  }

  /// The dropout of this forward pass; off unless the tape records.
  Dropout at(const ForwardContext& context) const {
    if (!context.tape.recording()) return Dropout::off();
    Dropout dropout = Dropout::with(probability_, stream_, context.update);
    if (!rescales_) dropout.scale = 1;
    if (context.on_device) dropout.update_at = context.on_device->update;
    return dropout;
  }

 private:
  double probability_ = 0;
  bool rescales_ = true;
  RandomStream stream_;
};

}  // namespace tearless::engine
