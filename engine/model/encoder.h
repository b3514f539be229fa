// The encoder: layers of self-attention and feed-forward on one residual stream.
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

  /// x [S, D] embedded source rows → encoder output [S, D]. `self`: the rows that each row sees. `rows` and `self` must
  /// outlive the tape.
  Value forward(const ForwardContext& context, const Value& x, const PackedRows& rows,
                const AttentionSpans& self) const;

 private:
  struct Layer {
    SublayerConnection attention_connection;
    SelfAttention attention;
    SublayerConnection ffn_connection;
    FeedForward ffn;
  };
  Placement placement_;
  std::vector<Layer> layers_;
  NormOp final_norm_;
};

}  // namespace tearless::engine
