// A batch as the forward pass takes it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/attention.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// Word dropout has been applied, labels are columns of the logits, and the attention spans are filled in.
struct ReadyBatch {
  PackedRows source = {}, target = {};
  std::vector<int32_t> labels = {};  // [target T] columns of the logits; negative: the row is left out of the loss
  AttentionSpans source_spans = {}, target_spans = {}, cross_spans = {};

  int64_t row_count() const { return source.row_count() + target.row_count(); }
};

}  // namespace tearless::engine
