// What one update asks of what is trained.
#pragma once

#include <cstdint>

#include "engine/model/parameters.h"
#include "engine/model/step.h"
#include "engine/model/transformer.h"

namespace tearless::engine {

class Trainable {
 public:
  virtual ~Trainable() = default;

  virtual Parameters& parameters() = 0;
  /// Batch `index` of the pass that was started, as that update takes it.
  virtual ReadyBatch ready(int64_t index, uint32_t update) = 0;
  /// Its loss, on the step's tape. The batch may be longer than ready() gave it, by rows that count for nothing.
  virtual LossSums loss(const Step& step, const ReadyBatch& batch) = 0;
};

}  // namespace tearless::engine
