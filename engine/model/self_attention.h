// The self-attention sublayer. Its rows see each other as the spans say: all rows of the sentence, or in the decoder
// those before (causal). The projections q, k, v and o have biases.
#pragma once

#include "engine/model/sublayer.h"

namespace tearless::engine {

class SelfAttention final : public Sublayer {
 public:
  explicit SelfAttention(const LayerScope& scope);

  Value forward(const ForwardContext& context, const Value& x, const SublayerInputs& inputs) const override;
  /// Keys, then values.
  int64_t cache_width() const override { return 2 * d_model_; }
  Value step(const ForwardContext& context, const Value& x, const SublayerInputs& inputs, const CacheRows& written,
             at::Tensor& cache) const override;

 private:
  int64_t d_model_, heads_;
  Linear qkv_;     // [3 D, D]: q, k and v are one matmul
  Linear output_;  // [D, D]
  DropoutSite weight_dropout_;
};

}  // namespace tearless::engine
