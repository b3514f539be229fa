// The attention sublayers: self-attention (causal in the decoder) and cross-attention. The projections q, k, v and o
// all have biases.
#pragma once

#include <string>
#include <vector>

#include "engine/model/forward_context.h"
#include "engine/model/options.h"
#include "engine/model/parameters.h"
#include "engine/ops/attention.h"

namespace tearless::engine {

/// Appends the parameters of self-attention `name`: `name`.q.weight … `name`.o.bias. Those of q, k and v are adjacent,
/// so that one matmul computes all three.
void append_self_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                                 const std::string& name);
/// Appends the q and o projections of cross-attention `name`. Its k and v come from append_cross_kv_specs().
void append_cross_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                                  const std::string& name);
/// Appends the k and v projections of all decoder layers, adjacent, so that one matmul computes them. `names`: the
/// cross-attentions, first layer first.
void append_cross_kv_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options,
                           const std::vector<std::string>& names);

/// The rows of a KV cache that a decode step writes, one per hypothesis.
struct CacheRows {
  int64_t first = 0;        // N consecutive rows from this one, if `indices` is undefined
  at::Tensor indices = {};  // [N] int64 row numbers
};

/// Causal or not is decided by the spans.
class SelfAttention {
 public:
  SelfAttention(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed,
                const std::string& name);

  /// x [T, D] → [T, D]: each row attends to the rows of its span. `spans` must outlive the tape.
  Value forward(const ForwardContext& context, const Value& x, const AttentionSpans& spans) const;
  /// One decode step: x [N, D], the newest position of each hypothesis → [N, D]. Writes its keys and values to `rows`
  /// of `self_kv` [≥ N, 2 D] (keys, then values), then attends; `spans` lists the cache rows that each hypothesis sees.
  /// Not for recording tapes: there is no backward.
  Value forward_cached(const ForwardContext& context, const Value& x, const AttentionSpans& spans, at::Tensor& self_kv,
                       const CacheRows& rows) const;

 private:
  int64_t d_model_, heads_;
  Value qkv_weight_, qkv_bias_;  // [3 D, D], [3 D]
  Value o_weight_, o_bias_;      // [D, D], [D]
  DropoutSite weight_dropout_;
};

/// Projects the encoder output to the keys and values of every decoder layer, in one matmul.
class CrossKvProjection {
 public:
  /// `names`: the cross-attentions, first layer first.
  CrossKvProjection(const Parameters& parameters, const std::vector<std::string>& names);
  /// encoder_output [S, D] → [S, layers · 2 D]: from column l · 2 D, the keys and then the values of layer l.
  Value forward(const ForwardContext& context, const Value& encoder_output) const;

 private:
  Value weight_, bias_;  // [layers · 2 D, D], [layers · 2 D]
};

class CrossAttention {
 public:
  /// `layer`: number of the decoder layer from 0; selects its columns of the projected encoder output.
  CrossAttention(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed,
                 const std::string& name, int64_t layer);

  /// x [T, D] → [T, D]: attends to `projected` [S, layers · 2 D], the output of CrossKvProjection.
  Value forward(const ForwardContext& context, const Value& x, const Value& projected,
                const AttentionSpans& spans) const;

 private:
  int64_t d_model_, heads_, layer_;
  Value q_weight_, q_bias_;  // [D, D], [D]
  Value o_weight_, o_bias_;
  DropoutSite weight_dropout_;
};

}  // namespace tearless::engine
