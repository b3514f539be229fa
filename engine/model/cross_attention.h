// The cross-attention sublayer of the decoder, and the projection of the encoder output that it reads. The projections
// q, k, v and o have biases.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/model/sublayer.h"

namespace tearless::engine {

/// The linear maps of the encoder output that the sublayers of all decoder layers need, as one matmul.
///   1. Each sublayer adds its maps when it is constructed.
///   2. declare(), after the last layer.
class SourceProjection {
 public:
  /// Adds maps from and to D channels. Returns the column of projected rows where the first of them begins; the others
  /// follow.
  int64_t add(const LayerScope& scope, std::initializer_list<const char*> parts);
  void declare(Parameters& parameters);

  /// encoder_output [S, D] → [S, W].
  Value forward(const ForwardContext& context, const Value& encoder_output) const;

 private:
  std::vector<ParameterSpec> weights_, biases_;  // until declare()
  int64_t columns_ = 0;
  Linear maps_;  // [W, D]
};

class CrossAttention final : public Sublayer {
 public:
  /// Adds its keys and values to `source`.
  CrossAttention(const LayerScope& scope, SourceProjection& source);

  /// Each row attends to the encoder output.
  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override;

 private:
  int64_t d_model_, heads_;
  Linear query_, output_;  // [D, D]
  int64_t keys_;           // column of the projected encoder output; the values follow
  DropoutSite weight_dropout_;
};

}  // namespace tearless::engine
