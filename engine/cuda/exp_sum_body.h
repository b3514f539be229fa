// Σ e^z over a row that a block reads once, without overflow (online softmax): each thread holds its running maximum
// and the sum of e^(z - maximum), which it rescales when the maximum grows.
#pragma once

#include <cfloat>
#include <cmath>

#include "engine/cuda/block.h"

namespace tearless::engine {

struct ExpSum {
  float largest = -FLT_MAX;  // finite, so that z = -∞ gives e^(-∞) = 0 and not e^(∞ - ∞)
  float sum = 0;

  /// Raises `largest` to the maximum of the first `count` elements of z and rescales the sum. REQUIRES: called before
  /// add() of these elements.
  template <int kSize>
  TEARLESS_BODY void raise(const float (&z)[kSize], int count) {
    float top = largest;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) {
      if (i < count) top = fmaxf(top, z[i]);
    }
    sum *= expf(largest - top);
    largest = top;
  }
  TEARLESS_BODY void add(float z) { sum += expf(z - largest); }

  /// The maximum and sum of the whole block. All its threads must call. Uses kBlockSumBytes<float> of shared memory.
  template <class Block>
  TEARLESS_BODY ExpSum joined(Block& block) const {
    ExpSum all;
    all.largest = block_max(block, largest, block.shared());
    all.sum = block_sum(block, sum * expf(largest - all.largest), block.shared());
    return all;
  }
};

}  // namespace tearless::engine
