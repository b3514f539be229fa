// One walk through the model: the tape it writes to and the update it belongs to. Dropout is on exactly where the tape
// records.
#pragma once

#include <string>

#include "engine/ops/cross_entropy.h"
#include "engine/ops/dropout.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

/// Device memory that a captured step reads when it is replayed, in place of what it was called with.
struct StepOnDevice {
  const uint32_t* update = nullptr;
  LossOnDevice loss;
};

struct Step {
  Tape& tape;
  uint32_t update = 0;  // counted from 1; names the dropout masks
  const StepOnDevice* on_device = nullptr;
};

/// One place of the model where dropout acts, with a random stream of its own.
class DropoutSite {
 public:
  DropoutSite() = default;
  DropoutSite(double probability, uint32_t seed, const std::string& name)
      : probability_(probability), stream_(seed, "drop." + name) {}

  Dropout at(const Step& step) const {
    if (!step.tape.recording()) return Dropout::off();
    Dropout dropout = Dropout::with(probability_, stream_, step.update);
    if (step.on_device) dropout.update_at = step.on_device->update;
    return dropout;
  }

 private:
  double probability_ = 0;
  RandomStream stream_;
};

}  // namespace tearless::engine
