// Online softmax: the maximum of the scores read so far and Σ e^(score - max). When the maximum grows, the sum and all
// that was weighted by exponentials is rescaled, so scores are read once and no exponential overflows:
//
//   max'   = max(max, new scores)
//   sum'   = sum · e^(max - max') + Σ e^(new score - max')
//   out'   = out · e^(max - max') + Σ e^(new score - max') · v          (attention; out / sum at the end)
//
// Attention has one OnlineSoftmax for each of a warp's query rows (attention_simt_forward.h, attention_mma_forward.h);
// kernels over rows of logits have one LogitSoftmax for each thread, joined over the block.
#pragma once

#include <cfloat>
#include <cmath>

#include "engine/cuda/block.h"

namespace tearless::engine {

inline constexpr float kLog2OfE = 1.44269504f;

/// Scores as they are.
struct BaseE {
  TEARLESS_BODY static float exp(float x) { return expf(x); }
  TEARLESS_BODY static float natural(float max) { return max; }
};
/// Scores multiplied by log2 e: exp2f() is one instruction on a GPU.
struct Base2 {
  TEARLESS_BODY static float exp(float x) { return exp2f(x); }
  TEARLESS_BODY static float natural(float max) { return max / kLog2OfE; }
};

template <class Base>
struct OnlineSoftmax {
  float max = -FLT_MAX;  // finite, so that a score of -∞ gives e^(-∞) = 0 and not e^(∞ - ∞)
  float sum = 0;

  /// Sets the maximum to new_max ≥ max, rescales the sum, and returns the factor for what else is to be rescaled.
  TEARLESS_BODY float raise_to(float new_max) {
    const float rescale = Base::exp(max - new_max);
    max = new_max;
    sum *= rescale;
    return rescale;
  }
  /// e^(score - max), which the caller adds to a sum.
  TEARLESS_BODY float exp(float score) const { return Base::exp(score - max); }
  /// log Σ e^score, of the whole row's sum.
  TEARLESS_BODY float logsumexp() const { return Base::natural(max) + logf(sum); }
};

/// Of a thread's part of a row of logits, read in groups: raise() for a group, then add() of its logits.
struct LogitSoftmax : OnlineSoftmax<BaseE> {
  /// Raises the maximum to that of the first `count` elements of z.
  template <int kSize>
  TEARLESS_BODY void raise(const float (&z)[kSize], int count) {
    float new_max = max;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) {
      if (i < count) new_max = fmaxf(new_max, z[i]);
    }
    raise_to(new_max);
  }
  TEARLESS_BODY void add(float z) { sum += exp(z); }

  /// That of the whole row. All threads of the block must call. Uses kBlockSumBytes<float> of shared memory.
  template <class Block>
  TEARLESS_BODY LogitSoftmax joined(Block& block) const {
    LogitSoftmax row;
    row.max = block_max(block, max, block.shared());
    row.sum = block_sum(block, sum * BaseE::exp(max - row.max), block.shared());
    return row;
  }
};

}  // namespace tearless::engine
