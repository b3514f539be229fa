// Forward of attention where every span has one query and keys that are looked up, as the self-attention of search has
// (attention_body.h). A warp computes one (span, head) without shared memory: kLanesPerKey lanes have a key's channels,
// a group of 16 bytes each, and the warp's other lanes the next keys. Each such set of lanes has an online softmax over
// every kKeys-th key of the span; they are joined at the end. Chosen by Attention::one_query.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "engine/cuda/attention_span.h"
#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/cuda/online_softmax.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, int kLanesPerKey>
struct OneQueryAttention {
  static constexpr const char* kName = "attention_one_query";
  static constexpr int kThreads = 128;
  static constexpr int kSize = kWideGroup<T>;
  Attention<T> a;

  Shape shape() const { return {blocks_for(a.span_count * a.heads, kThreads / kLanes), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t index = block.index() * (kThreads / kLanes) + block.warp();
    if (index >= a.span_count * a.heads) return;
    const SpanHead<T> s(a, index, true);
    if (s.span.query_count == 0) return;
    const IndexedRows<const T> k = s.indexed_keys(a, a.k, a.k_stride, true);
    const IndexedRows<const T> v = s.indexed_keys(a, a.v, a.v_stride, true);
    const int keys = s.span.key_count;
    const int set = block.lane() / kLanesPerKey, channel = block.lane() % kLanesPerKey * kSize;
    const bool has_channels = channel < static_cast<int>(a.d_head);
    float q[kSize], out[kSize] = {};
    load_group<true>(s.q.row(0) + channel, has_channels ? kSize : 0, q);
    const float scale = score_scale(a.d_head) * kLog2OfE;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) q[i] *= scale;
    OnlineSoftmax<Base2> softmax;
    TEARLESS_UNROLL_BY(1)
    for (int begin = 0; begin < keys; begin += kAtOnce * kKeys) {
      float x[kAtOnce][kSize], y[kAtOnce][kSize], score[kAtOnce];
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const int key = begin + n * kKeys + set;
        const bool is_there = key < keys && has_channels;
        const int readable = is_there ? key : 0;
        load_group<true>(k.row(readable) + channel, is_there ? kSize : 0, x[n]);
        load_group<true>(v.row(readable) + channel, is_there ? kSize : 0, y[n]);
      }
      float max = softmax.max;
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        float dot = 0;
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) dot += q[i] * x[n][i];
        TEARLESS_UNROLL
        for (int away = kLanesPerKey / 2; away > 0; away /= 2) dot += block.from_lane(dot, block.lane() ^ away);
        score[n] = begin + n * kKeys + set < keys ? dot : -INFINITY;
        max = fmaxf(max, score[n]);
      }
      const float rescale = softmax.raise_to(max);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) out[i] *= rescale;
      TEARLESS_UNROLL
      for (int n = 0; n < kAtOnce; ++n) {
        const float weight = softmax.exp(score[n]);
        softmax.sum += weight;
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) out[i] += weight * y[n][i];
      }
    }
    join(block, softmax, out);
    if (set != 0 || !has_channels) return;
    const float inverse = keys > 0 ? 1.0f / softmax.sum : 0.0f;
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) out[i] *= inverse;
    store_group<true>(s.query_rows(a, a.out, a.heads * a.d_head, true).row(0) + channel, kSize, out);
  }

 private:
  static constexpr int kKeys = kLanes / kLanesPerKey;  // that the warp has at a time
  static constexpr int kAtOnce = 4;                    // loads of each matrix in flight

  /// Adds up the warp's sets of lanes; every one then has the whole.
  template <class Block>
  TEARLESS_BODY static void join(Block& block, OnlineSoftmax<Base2>& softmax, float (&out)[kSize]) {
    TEARLESS_UNROLL
    for (int away = kLanesPerKey; away < kLanes; away *= 2) {
      const int other = block.lane() ^ away;
      const float other_max = block.from_lane(softmax.max, other), other_sum = block.from_lane(softmax.sum, other);
      const float max = fmaxf(softmax.max, other_max), of_other = Base2::exp(other_max - max);
      const float rescale = softmax.raise_to(max);
      softmax.sum += of_other * other_sum;
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        out[i] = rescale * out[i] + of_other * block.from_lane(out[i], other);
      }
    }
  }
};

/// Launches it, or returns false where it does not support the call.
template <class T, class Runner>
bool launch_one_query(const Attention<T>& a, Runner& runner) {
  if (!a.one_query || !a.key_rows || a.max_query_length != 1 || a.dropout.active()) return false;
  if (!heads_are_aligned(a) || !is_aligned(a.out, a.heads * a.d_head)) return false;
  const int64_t groups = a.d_head / kWideGroup<T>;
  const auto with_lanes = [&](auto lanes) {
    runner.run(OneQueryAttention<T, lanes.value>{a});
    return true;
  };
  if (groups <= 4) return with_lanes(std::integral_constant<int, 4>{});
  if (groups <= 8) return with_lanes(std::integral_constant<int, 8>{});
  if (groups <= 16) return with_lanes(std::integral_constant<int, 16>{});
  return groups <= 32 && with_lanes(std::integral_constant<int, 32>{});
}

}  // namespace tearless::engine
