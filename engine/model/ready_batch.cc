#include "engine/model/ready_batch.h"

#include <algorithm>

namespace tearless::engine {

int64_t ReadyBatch::tokens() const {
  return std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
}

}  // namespace tearless::engine
