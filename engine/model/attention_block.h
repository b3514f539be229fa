// The two attention sublayers: self-attention (encoder, and causal in the decoder) and cross-attention. Projections q,
// k, v and o all have biases.
#pragma once

#include <string>
#include <vector>

#include "engine/model/options.h"
#include "engine/model/parameters.h"
#include "engine/model/step.h"
#include "engine/ops/attention.h"

namespace tearless::engine {

void append_attention_specs(std::vector<ParameterSpec>& specs, const ModelOptions& options, const std::string& name);

/// Keys and values of one decoder layer's past, for search: row h·capacity + t holds hypothesis h at position t.
struct KeyValueCache {
  at::Tensor rows;  // [N · capacity, 2 D]: keys, then values
  int64_t capacity = 0;
};

class AttentionBlock {
 public:
  AttentionBlock(const Parameters& parameters, const ModelOptions& options, uint32_t dropout_seed,
                 const std::string& name);

  /// x [T, D] attends to itself within the spans → [T, D].
  Value self(const Step& step, const Value& x, const AttentionSpans& spans) const;
  /// x [N, D]: one new position `t` of each hypothesis attends to positions 0 … t, which `cache` holds after this call.
  /// `spans`: one query and t + 1 keys a hypothesis. Not for recording tapes.
  Value self_cached(const Step& step, const Value& x, const AttentionSpans& spans, KeyValueCache& cache,
                    int64_t t) const;

  /// memory [S, D] → keys and values [S, 2 D].
  Value project_memory(const Step& step, const Value& memory) const;
  /// x [T, D] attends to projected memory [S, 2 D] → [T, D].
  Value cross(const Step& step, const Value& x, const Value& keys_values, const AttentionSpans& spans) const;

 private:
  int64_t d_model_, heads_;
  Value qkv_weight_, qkv_bias_;  // [3 D, D], [3 D]
  Value q_weight_, q_bias_;      // [D, D], [D]: the first third of the same numbers
  Value kv_weight_, kv_bias_;    // [2 D, D], [2 D]: the rest
  Value o_weight_, o_bias_;      // [D, D], [D]
  DropoutSite weight_dropout_;
};

}  // namespace tearless::engine
