// The attention sublayer of Transformer-XL (Dai et al. 2019, §3.3; docs/spec/tasks.md §1.2): rows see each other by
// their distance, and a memory of the sublayer's inputs of earlier segments. No projection has a bias. It keeps its
// inputs, or where parameters are constant, their keys and values.
#pragma once

#include "engine/model/sublayer.h"

namespace tearless::engine {

/// The two vectors [D] that all layers share: u is added to a query where it meets a key, w where it meets a distance.
struct SharedQueries {
  Value u, w;
};

class RelativeSelfAttention final : public Sublayer {
 public:
  RelativeSelfAttention(const LayerScope& scope, SharedQueries shared);

  /// REQUIRES: inputs.distances, and a state.
  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override;
  int64_t slot_width() const override { return d_model_; }
  int64_t constant_slot_width() const override { return 2 * d_model_; }

 private:
  int64_t d_model_, heads_;
  SharedQueries shared_;
  Value query_;              // [D, D]
  Value key_value_;          // [2 D, D]: k and v are one matmul
  Value distance_, output_;  // [D, D]
  DropoutSite weight_dropout_;
};

}  // namespace tearless::engine
