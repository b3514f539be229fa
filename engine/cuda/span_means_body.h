// The mean row of each span (kernels.h: SpanMeans). A thread takes one group of channels of a span and loops over the
// span's rows in order.
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct SpanMeanRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "span_means";
  using GroupBody<T, kAligned>::kSize;
  SpanMeans<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [i, c, count] = this->group(block);
    if (count == 0) return;
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
struct SpanMeanGradients : GroupBody<T, kAligned> {
  static constexpr const char* kName = "span_means_backward";
  using GroupBody<T, kAligned>::kSize;
  SpanMeansBackward<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [i, c, count] = this->group(block);
    if (count == 0) return;
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
  launch_groups<SpanMeanRows>(a, a.span_count, a.width, all_aligned(a.width, a.x, a.out), runner);
}

template <class T, class Runner>
void launch(const SpanMeansBackward<T>& a, Runner& runner) {
  launch_groups<SpanMeanGradients>(a, a.span_count, a.width, all_aligned(a.width, a.d_out, a.d_x), runner);
}

}  // namespace tearless::engine
