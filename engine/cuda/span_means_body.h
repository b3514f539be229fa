// The mean row of each span (kernels.h: SpanMeans). A thread takes one group of channels of a span and loops over the
// span's rows in order.
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct SpanMeanRows {
  static constexpr const char* kName = "span_means";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  SpanMeans<T> a;
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.span_count), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [i, c, count] = group_of<kSize>(tiling, block, a.width);
    if (i >= a.span_count || count == 0) return;
    const AttentionSpan span = a.spans[i];
    const T* x = a.x + int64_t{span.key_begin} * a.width + c;
    float sum[kSize] = {};
    TEARLESS_UNROLL_BY(4)
    for (int32_t t = 0; t < span.key_count; ++t) {
      float row[kSize];
      load_group<kAligned>(x + t * a.width, count, row);
      TEARLESS_UNROLL
      for (int j = 0; j < kSize; ++j) sum[j] += row[j];
    }
    const float divisor = static_cast<float>(span.key_count > 0 ? span.key_count : 1);
    TEARLESS_UNROLL
    for (int j = 0; j < kSize; ++j) sum[j] /= divisor;
    store_group<kAligned>(a.out + i * a.width + c, count, sum);
  }
};

template <class T, bool kAligned>
struct SpanMeanGradients {
  static constexpr const char* kName = "span_means_backward";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  SpanMeansBackward<T> a;
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.span_count), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [i, c, count] = group_of<kSize>(tiling, block, a.width);
    if (i >= a.span_count || count == 0) return;
    const AttentionSpan span = a.spans[i];
    float d[kSize];
    load_group<kAligned>(a.d_out + i * a.width + c, count, d);
    TEARLESS_UNROLL
    for (int j = 0; j < kSize; ++j) d[j] /= static_cast<float>(span.key_count);
    T* d_x = a.d_x + int64_t{span.key_begin} * a.width + c;
    TEARLESS_UNROLL_BY(4)
    for (int32_t t = 0; t < span.key_count; ++t) {
      float row[kSize];
      load_group<kAligned>(d_x + t * a.width, count, row);
      TEARLESS_UNROLL
      for (int j = 0; j < kSize; ++j) row[j] += d[j];
      store_group<kAligned>(d_x + t * a.width, count, row);
    }
  }
};

template <class T, class Runner>
void launch(const SpanMeans<T>& a, Runner& runner) {
  with_alignment(is_aligned(a.x, a.width) && is_aligned(a.out, a.width), [&](auto aligned) {
    runner.run(SpanMeanRows<T, aligned.value>{a, Tiling::of(a.width, kGroup<T, aligned.value>)});
  });
}

template <class T, class Runner>
void launch(const SpanMeansBackward<T>& a, Runner& runner) {
  with_alignment(is_aligned(a.d_out, a.width) && is_aligned(a.d_x, a.width), [&](auto aligned) {
    runner.run(SpanMeanGradients<T, aligned.value>{a, Tiling::of(a.width, kGroup<T, aligned.value>)});
  });
}

}  // namespace tearless::engine
