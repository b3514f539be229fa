// The projections of the encoder output that the sublayers of all decoder layers read, as one matmul.
//   1. Each sublayer adds its maps when it is constructed.
//   2. declare(), after the last layer.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/model/layer_scope.h"

namespace tearless::engine {

class SourceProjection {
 public:
  /// Adds maps from and to D channels. Returns the column of projected rows where the first of them begins; the others
  /// follow.
  int64_t add(const LayerScope& scope, std::initializer_list<const char*> parts);
  /// Declares the maps, if there are any.
  void declare(Parameters& parameters);

  /// encoder_output [S, D] → [S, W]. REQUIRES: there are maps.
  Value forward(const ForwardContext& context, const Value& encoder_output) const;
  /// The map whose result begins in that column of projected rows, for other rows: D → D.
  Linear map(Tape& tape, int64_t column) const;

 private:
  std::vector<ParameterSpec> weights_, biases_;  // until declare()
  int64_t columns_ = 0;
  Linear maps_;  // [W, D]
};

}  // namespace tearless::engine
