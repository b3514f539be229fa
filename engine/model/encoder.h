// The encoder: layers of {self-attention, feed-forward} along one residual stream.
#pragma once

#include <string>
#include <vector>

#include "engine/model/attention_block.h"
#include "engine/model/feed_forward.h"
#include "engine/model/residual.h"

namespace tearless::engine {

void append_encoder_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options);

class Encoder {
 public:
  Encoder(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed);

  /// x [S, D] embedded source rows → memory [S, D]. `self`: which rows see which. `rows` and `self` must outlive the
  /// tape.
  Value forward(const Step& step, const Value& x, const PackedRows& rows, const AttentionSpans& self) const;

 private:
  struct Layer {
    Seam attention_seam;
    SelfAttention attention;
    Seam ffn_seam;
    FeedForward ffn;
  };
  Placement placement_;
  std::vector<Layer> layers_;
  NormOp final_norm_;
};

}  // namespace tearless::engine
