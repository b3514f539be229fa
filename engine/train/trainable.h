// What an Updater needs of the model that it trains: parameters, batches and the loss.
#pragma once

#include <cstdint>

#include "engine/model/forward_context.h"
#include "engine/model/parameters.h"
#include "engine/model/ready_batch.h"
#include "engine/ops/cross_entropy.h"

namespace tearless::engine {

class Trainable {
 public:
  virtual ~Trainable() = default;

  virtual Parameters& parameters() = 0;
  /// Batch `index` of the started pass, prepared for that update.
  virtual ReadyBatch ready(int64_t index, uint32_t update) = 0;
  /// The loss of a batch from ready(), recorded on the context's tape. The batch may have been padded (padded_batch.h).
  virtual LossSums loss(const ForwardContext& context, const ReadyBatch& batch) = 0;
};

}  // namespace tearless::engine
