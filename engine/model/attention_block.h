// The attention sublayers: self-attention (encoder, and causal in the decoder) and cross-attention. Projections q, k, v
// and o all have biases.
#pragma once

#include <string>
#include <vector>

#include "engine/model/options.h"
#include "engine/model/parameters.h"
#include "engine/model/step.h"
#include "engine/ops/attention.h"

namespace tearless::engine {

void append_self_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                                 const std::string& name);
/// All but keys and values, which append_memory_specs() makes for all layers.
void append_cross_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                                  const std::string& name);
void append_memory_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                         const std::vector<std::string>& names);

/// The rows of a cache that are written: N from `first` on, or those that `named` [N] int64 names.
struct CacheRows {
  int64_t first = 0;
  at::Tensor named = {};
};

class SelfAttention {
 public:
  SelfAttention(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed,
                const std::string& name);

  /// x [T, D] attends to itself within the spans → [T, D].
  Value forward(const Step& step, const Value& x, const AttentionSpans& spans) const;
  /// Search: x [N, D], one new position of each hypothesis. Its keys and values go to rows of `past` [≥ N, 2 D] (keys,
  /// then values); the spans say which of all rows each hypothesis sees. Not for recording tapes.
  Value forward_cached(const Step& step, const Value& x, const AttentionSpans& spans, at::Tensor& past,
                       const CacheRows& rows) const;

 private:
  int64_t d_model_, heads_;
  Value qkv_weight_, qkv_bias_;  // [3 D, D], [3 D]
  Value o_weight_, o_bias_;      // [D, D], [D]
  DropoutSite weight_dropout_;
};

/// The encoder's output as keys and values of every decoder layer: one product.
class MemoryProjection {
 public:
  /// `names`: the cross-attentions, from the first layer to the last.
  MemoryProjection(const Parameters& parameters, const std::vector<std::string>& names);
  /// memory [S, D] → [S, layers · 2 D]: of layer l keys, then values, from column l · 2 D.
  Value forward(const Step& step, const Value& memory) const;

 private:
  Value weight_, bias_;  // [layers · 2 D, D], [layers · 2 D]
};

class CrossAttention {
 public:
  /// `layer`: counted from 0, its place in the projected memory.
  CrossAttention(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed,
                 const std::string& name, int64_t layer);

  /// x [T, D] attends to the projected memory [S, layers · 2 D] → [T, D].
  Value forward(const Step& step, const Value& x, const Value& projected, const AttentionSpans& spans) const;

 private:
  int64_t d_model_, heads_, layer_;
  Value q_weight_, q_bias_;  // [D, D], [D]
  Value o_weight_, o_bias_;
  DropoutSite weight_dropout_;
};

}  // namespace tearless::engine
