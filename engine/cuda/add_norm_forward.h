// Forward of residual + drop(y) and the norm of it (add_norm_body.h).
//   x      = residual + drop(y), rounded to T          stored as `sum`
//   normed = gain ⊙ x̂ + bias, or scale · (1 - shrink x̂) ⊙ x̂ without a gain, x̂ = (x - mean) · inverse
//                                                        kernels.h: RowNorm, RowStatistics
// Statistics are in float. They are those of x rounded to T, because backward reads x from memory.
#pragma once

#include <cmath>

#include "engine/cuda/block.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

inline constexpr int64_t kMaxWarpRow = 1024;

/// The statistics of a row from squares = Σ (x - mean)². A NaN deviation or length must not count as clamped, so the
/// tests are of the form s <= ε.
TEARLESS_BODY RowStatistics<float> statistics_of(const RowNorm& norm, float mean, float squares, int64_t width) {
  using Denominator = RowNorm::Denominator;
  const float eps = static_cast<float>(norm.eps);
  const float on = norm.denominator_has_gradient ? 1.0f : 0.0f;
  const float n = static_cast<float>(norm.unbiased ? width - 1 : width);
  switch (norm.denominator) {
    case Denominator::kOne:
      return {mean, 1.0f, 0.0f};
    case Denominator::kRootAddEps:
      return {mean, 1.0f / sqrtf(squares / n + eps), on / n};
    case Denominator::kDeviationAddEps: {
      const float s = sqrtf(squares / n);
      return {mean, 1.0f / (s + eps), s <= 0.0f ? 0.0f : on * (s + eps) / (n * s)};
    }
    case Denominator::kDeviationClamped: {
      const float s = sqrtf(squares / n);
      return s <= eps ? RowStatistics<float>{mean, 1.0f / eps, 0.0f} : RowStatistics<float>{mean, 1.0f / s, on / n};
    }
    default: {
      const float length = sqrtf(squares);
      return length <= eps ? RowStatistics<float>{mean, 1.0f / eps, 0.0f}
                           : RowStatistics<float>{mean, 1.0f / length, on};
    }
  }
}

template <bool kAligned, int kSize, class T>
TEARLESS_BODY void load_both(const AddNorm<T>& a, int64_t t, int64_t c, int count, float (&residual)[kSize],
                             float (&y)[kSize]) {
  load_group<kAligned>(a.residual + t * a.width + c, count, residual);
  if (a.y) load_group<kAligned>(a.y + t * a.width + c, count, y);
}
/// x += drop(y), rounded to T.
template <int kSize, class T>
TEARLESS_BODY void add_dropped(const AddNorm<T>& a, const Mask& mask, const RowCounter& counter, int64_t c,
                               float (&y)[kSize], float (&x)[kSize]) {
  if (!a.y) return;
  mask.apply(c, counter.outer, counter.sentence, y);
  TEARLESS_UNROLL
  for (int i = 0; i < kSize; ++i) x[i] = rounded_to<T>(x[i] + y[i]);
}

/// normed of one group.
template <bool kAligned, int kSize, class T>
TEARLESS_BODY void norm_group(const AddNorm<T>& a, const RowStatistics<float>& s, int64_t t, int64_t c, int count,
                              float (&x)[kSize]) {
  const float inverse = s.inverse * (a.gain_size == 1 ? a.gain[0] : static_cast<float>(a.norm.scale));
  const float shrink = static_cast<float>(a.norm.shrink);
  TEARLESS_UNROLL
  for (int i = 0; i < kSize; ++i) {
    const float centred = x[i] - s.mean;
    x[i] = shrink == 0.0f ? centred * inverse : centred * inverse * (1.0f - shrink * (centred * s.inverse));
  }
  float of_channel[kSize];
  if (a.gain_size > 1) {
    load_group<kAligned>(a.gain + c, count, of_channel);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] *= of_channel[i];
  }
  if (a.bias) {
    load_group<kAligned>(a.bias + c, count, of_channel);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] += of_channel[i];
  }
  store_group<kAligned>(a.normed + t * a.width + c, count, x);
}

/// One warp per row; a lane holds kGroups groups of it.
template <class T, bool kAligned, int kGroups>
struct AddNormRows {
  static constexpr const char* kName = "add_norm";
  static constexpr int kThreads = 128;
  static constexpr int kSize = kGroup<T, kAligned>;
  static constexpr int kBlocksAtOnce = kGroups * kSize <= 16 ? 8 : 4;  // resident blocks per SM; no register spills
  AddNorm<T> a;

  Shape shape() const { return {blocks_for(a.rows, kThreads / kLanes), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t t = block.index() * block.warps() + block.warp();
    if (t >= a.rows) return;
    const Mask mask(a.dropout, a.y != nullptr);
    const RowCounter counter = counter_of(mask, a.counters, t);
    const auto channel = [&](int g) { return (g * kLanes + block.lane()) * kSize; };
    float x[kGroups][kSize], y[kGroups][kSize];
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {  // all loads first: the compiler may not move a load across a store
      const int c = channel(g);
      load_both<kAligned>(a, t, c, inside<kSize>(c, a.width), x[g], y[g]);
    }
    float sum = 0;
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(g);
      add_dropped(a, mask, counter, c, y[g], x[g]);
      if (a.sum) store_group<kAligned>(a.sum + t * a.width + c, inside<kSize>(c, a.width), x[g]);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) sum += x[g][i];  // 0 past the end of the row
    }
    if (!a.normed) return;

    const float mean = a.norm.centred ? warp_sum(block, sum) / static_cast<float>(a.width) : 0.0f;
    float squares = 0;
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int count = inside<kSize>(channel(g), a.width);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (i < count) squares += (x[g][i] - mean) * (x[g][i] - mean);
      }
    }
    const RowStatistics<float> s = statistics_of(a.norm, mean, warp_sum(block, squares), a.width);
    if (a.statistics && block.lane() == 0) a.statistics[t] = s;
    TEARLESS_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int c = channel(g);
      norm_group<kAligned>(a, s, t, c, inside<kSize>(c, a.width), x[g]);
    }
  }
};

/// One block per row of more than kMaxWarpRow channels.
template <class T, bool kAligned>
struct AddNormWideRow {
  static constexpr const char* kName = "add_norm_wide";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kGroup<T, kAligned>;
  AddNorm<T> a;

  Shape shape() const { return {a.rows, kThreads, kBlockSumBytes<float>}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t t = block.index();
    const Mask mask(a.dropout, a.y != nullptr);
    const RowCounter counter = counter_of(mask, a.counters, t);
    const auto for_groups = [&](auto&& f) {
      for (int64_t c = int64_t{block.thread()} * kSize; c < a.width; c += kThreads * kSize) {
        const int count = inside<kSize>(c, a.width);
        float x[kSize], y[kSize];
        load_both<kAligned>(a, t, c, count, x, y);
        add_dropped(a, mask, counter, c, y, x);
        f(c, count, x);
      }
    };
    float sum = 0;
    for_groups([&](int64_t c, int count, float(&x)[kSize]) {
      if (a.sum) store_group<kAligned>(a.sum + t * a.width + c, count, x);
      for (int i = 0; i < kSize; ++i) sum += x[i];
    });
    if (!a.normed) return;

    const float mean = a.norm.centred ? block_sum(block, sum, block.shared()) / static_cast<float>(a.width) : 0.0f;
    float squares = 0;
    for_groups([&](int64_t, int count, float(&x)[kSize]) {
      for (int i = 0; i < kSize; ++i) {
        if (i < count) squares += (x[i] - mean) * (x[i] - mean);
      }
    });
    const RowStatistics<float> s = statistics_of(a.norm, mean, block_sum(block, squares, block.shared()), a.width);
    if (a.statistics && block.thread() == 0) a.statistics[t] = s;
    for_groups([&](int64_t c, int count, float(&x)[kSize]) { norm_group<kAligned>(a, s, t, c, count, x); });
  }
};

}  // namespace tearless::engine
