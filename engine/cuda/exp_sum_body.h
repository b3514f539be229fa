// Σ e^z over a row that a block reads once, without overflow: each thread keeps the largest number that it has seen and
// the sum of e^(z - largest), which fades when a larger one comes.
#pragma once

#include <cfloat>
#include <cmath>

#include "engine/cuda/block.h"

namespace tearless::engine {

struct ExpSum {
  float largest = -FLT_MAX;  // finite from the start, so that -∞ gives 0 and not ∞ - ∞
  float sum = 0;

  /// Makes room for the numbers that add() takes next.
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

  /// The block's. All its threads must call.
  template <class Block>
  TEARLESS_BODY ExpSum joined(Block& block) const {
    ExpSum all;
    all.largest = block_max(block, largest, block.shared());
    all.sum = block_sum(block, sum * expf(largest - all.largest), block.shared());
    return all;
  }
};

}  // namespace tearless::engine
