// The global norm of the gradients and Adam over flat buffers (kernels.h: SquaredNorm, Adam, AdamOnDevice).
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/bf16.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// partial[block] = Σ g² of kPerBlock gradients.
template <bool kAligned>
struct SquaredNormBlocks {
  static constexpr const char* kName = "squared_norm";
  static constexpr int kThreads = 256;
  static constexpr int64_t kPerBlock = 1 << 14;
  SquaredNorm a;
  double* partial;

  Shape shape() const { return {blocks_for(a.size, kPerBlock), kThreads, kBlockSumBytes<double>}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t first = block.index() * kPerBlock;
    const int64_t last = first + kPerBlock < a.size ? first + kPerBlock : a.size;
    double sum = 0;
    TEARLESS_UNROLL_BY(4)
    for (int64_t i = first + block.thread() * 4; i < last; i += kThreads * 4) {
      float g[4];
      load_four<kAligned>(a.gradients + i, inside<4>(i, last), g);
      TEARLESS_UNROLL
      for (int j = 0; j < 4; ++j) sum += static_cast<double>(g[j]) * static_cast<double>(g[j]);
    }
    sum = block_sum(block, sum, block.shared());
    if (block.thread() == 0) partial[block.index()] = sum;
  }
};

/// *sum = Σ partial, by one block in a fixed order.
struct SquaredNormSum {
  static constexpr const char* kName = "squared_norm_sum";
  static constexpr int kThreads = 512;
  const double* partial;
  int64_t count;
  double* sum;

  Shape shape() const { return {1, kThreads, kBlockSumBytes<double>}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    double total = 0;
    TEARLESS_UNROLL_BY(4)
    for (int64_t i = block.thread(); i < count; i += kThreads) total += partial[i];
    total = block_sum(block, total, block.shared());
    if (block.thread() == 0) *sum = total;
  }
};

/// The factors of one update, with that of clipping.
struct ClippedFactors {
  AdamFactors adam;
  float clip;
  bool frozen;  // leave parameters and moments as they are (UpdateOutcome::frozen_at)
};

/// Factors that the host passes with the launch.
struct FactorsFromHost {
  static constexpr const char* kName = "adam";
  AdamFactors adam;
  float clip;

  template <class Block>
  TEARLESS_BODY ClippedFactors factors(Block&) const {
    return {adam, clip, false};
  }
};

/// Factors computed on the device (kernels.h: AdamOnDevice).
struct FactorsOnDevice {
  static constexpr const char* kName = "adam_on_device";
  double clip_norm;
  const UpdateInputs* inputs;
  UpdateOutcome* outcome;

  /// Thread 0 computes them for its block. All blocks get the same `frozen`, though a block may read frozen_at before
  /// or after block 0 writes it: block 0 writes it only where the norm is not finite, and then the norm alone freezes.
  template <class Block>
  TEARLESS_BODY ClippedFactors factors(Block& block) const {
    ClippedFactors* shared = reinterpret_cast<ClippedFactors*>(block.shared());
    if (block.thread() == 0) {
      const double squared_norm = outcome->squared_norm;
      const bool finite = squared_norm <= DBL_MAX;  // false for ∞ and NaN
      const uint32_t frozen_at = outcome->frozen_at;
      if (!finite && frozen_at == 0 && block.index() == 0) outcome->frozen_at = inputs->update;
      const double ratio = clip_norm / (sqrt(squared_norm) + 1e-6);
      shared->clip = clip_norm > 0 && ratio < 1 ? static_cast<float>(ratio) : 1.0f;
      shared->adam = inputs->adam;
      shared->frozen = !finite || frozen_at != 0;
    }
    block.sync();
    return *shared;
  }
};

/// Adam on a flat buffer. Gradients are zeroed even where frozen; theta_bf16 (or null) gets the new θ.
template <class Factors, bool kAligned>
struct AdamBlocks {
  static constexpr const char* kName = Factors::kName;
  static constexpr int kThreads = 256;
  static constexpr int kGroups = 2;  // of four parameters for each thread, so that eight loads are in flight
  Adam a;
  Factors source;
  uint16_t* theta_bf16;

  Shape shape() const { return {blocks_for(a.size, kThreads * kGroups * 4), kThreads, sizeof(ClippedFactors)}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t first = block.index() * kThreads * kGroups * 4 + block.thread() * 4;
    float theta[kGroups][4], m[kGroups][4], v[kGroups][4], g[kGroups][4];
    TEARLESS_UNROLL
    for (int k = 0; k < kGroups; ++k) {
      const int64_t i = first + k * kThreads * 4;
      const int count = inside<4>(i, a.size);
      load_four<kAligned>(a.gradients + i, count, g[k]);
      load_four<kAligned>(a.first_moment + i, count, m[k]);
      load_four<kAligned>(a.second_moment + i, count, v[k]);
      load_four<kAligned>(a.theta + i, count, theta[k]);
    }
    const ClippedFactors f = source.factors(block);  // after the loads, which need not wait for it
    TEARLESS_UNROLL
    for (int k = 0; k < kGroups; ++k) {
      const int64_t i = first + k * kThreads * 4;
      const int count = inside<4>(i, a.size);
      const float zeros[4] = {};
      store_four<kAligned>(a.gradients + i, count, zeros);
      if (!f.frozen) {
        TEARLESS_UNROLL
        for (int j = 0; j < 4; ++j) {
          const float clipped = f.clip * g[k][j];
          m[k][j] = a.beta1 * m[k][j] + a.one_minus_beta1 * clipped;
          v[k][j] = a.beta2 * v[k][j] + a.one_minus_beta2 * clipped * clipped;
          theta[k][j] -= f.adam.decay * theta[k][j] +
                         f.adam.step_size * m[k][j] / (sqrtf(v[k][j]) * f.adam.inverse_sqrt_correction2 + f.adam.eps);
        }
        store_four<kAligned>(a.first_moment + i, count, m[k]);
        store_four<kAligned>(a.second_moment + i, count, v[k]);
        store_four<kAligned>(a.theta + i, count, theta[k]);
      }
      if (theta_bf16) {
        if (kAligned && count == 4) {
          const Packed<uint32_t, 2> pairs = {
              {bf16_pair_bits(theta[k][0], theta[k][1]), bf16_pair_bits(theta[k][2], theta[k][3])}};
          *reinterpret_cast<Packed<uint32_t, 2>*>(theta_bf16 + i) = pairs;
        } else {
          TEARLESS_UNROLL
          for (int j = 0; j < 4; ++j) {
            if (j < count) theta_bf16[i + j] = bf16_bits(theta[k][j]);
          }
        }
      }
    }
  }
};

template <class Factors, class Runner>
void launch_adam(const Adam& a, const Factors& factors, uint16_t* theta_bf16, Runner& runner) {
  if (a.size == 0) return;
  with_alignment(all_aligned(0, a.theta, a.first_moment, a.second_moment, a.gradients, theta_bf16), [&](auto aligned) {
    runner.run(AdamBlocks<Factors, aligned.value>{a, factors, theta_bf16});
  });
}

template <class Runner>
void launch(const SquaredNorm& a, Runner& runner) {
  const int64_t count = blocks_for(a.size, SquaredNormBlocks<true>::kPerBlock);
  double* partial = runner.template workspace<double>(std::max<int64_t>(count, 1));
  with_alignment(is_aligned(a.gradients, 0), [&](auto aligned) {
    if (count > 0) runner.run(SquaredNormBlocks<aligned.value>{a, partial});
  });
  runner.run(SquaredNormSum{partial, count, a.sum});
}

template <class Runner>
void launch(const Adam& a, Runner& runner) {
  launch_adam(a, FactorsFromHost{a.factors, a.clip}, nullptr, runner);
}

template <class Runner>
void launch(const AdamOnDevice& a, Runner& runner) {
  launch_adam(a.adam, FactorsOnDevice{a.clip_norm, a.inputs, a.outcome}, a.theta_bf16, runner);
}

}  // namespace tearless::engine
