// One walk through the model: the tape it writes to and the update it belongs to. Dropout is on exactly where the tape
// records.
#pragma once

#include <string>

#include "engine/ops/dropout.h"
#include "engine/ops/tape.h"

namespace tearless::engine {

struct Step {
  Tape& tape;
  uint32_t update = 0;  // counted from 1; names the dropout masks
};

/// One place of the model where dropout acts, with a random stream of its own.
class DropoutSite {
 public:
  DropoutSite() = default;
  DropoutSite(double probability, uint32_t seed, const std::string& name)
      : probability_(probability), stream_(seed, "drop." + name) {}

  Dropout at(const Step& step) const {
    return step.tape.recording() ? Dropout::with(probability_, stream_, step.update) : Dropout::off();
  }

 private:
  double probability_ = 0;
  RandomStream stream_;
};

}  // namespace tearless::engine
