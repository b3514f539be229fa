// The mean of the rows up to each row (kernels.h: RunningMeans). A thread takes one group of channels of a span and
// loops over the span's rows in order.
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct RunningMeanRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "running_means";
  using GroupBody<T, kAligned>::kSize;
  RunningMeans<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [i, c, count] = this->group(block);
    if (count == 0) return;
    const AttentionSpan span = a.spans[i];
    const int32_t before = span.key_count - span.query_count;
    float sum[kSize] = {};
    if (before > 0) load_group<kAligned>(sums_of(span, before - 1) + c, count, sum);
    TEARLESS_UNROLL_BY(4)
    for (int32_t q = 0; q < span.query_count; ++q) {
      const int64_t at = (int64_t{span.query_begin} + q) * a.width + c;
      const float divisor = static_cast<float>(before + q + 1);
      float row[kSize];
      load_group<kAligned>(a.x + at, count, row);
      TEARLESS_UNROLL
      for (int j = 0; j < kSize; ++j) {
        sum[j] += row[j];
        row[j] = sum[j] / divisor;
      }
      store_group<kAligned>(a.out + at, count, row);
      if (a.sums) store_group<kAligned>(sums_of(span, before + q) + c, count, sum);
    }
  }

 private:
  TEARLESS_BODY float* sums_of(const AttentionSpan& span, int32_t key) const {
    const int32_t listed = span.key_begin + key;
    return a.sums + int64_t{a.key_rows ? a.key_rows[listed] : listed} * a.width;
  }
};

template <class T, bool kAligned>
struct RunningMeanGradients : GroupBody<T, kAligned> {
  static constexpr const char* kName = "running_means_backward";
  using GroupBody<T, kAligned>::kSize;
  RunningMeansBackward<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [i, c, count] = this->group(block);
    if (count == 0) return;
    const AttentionSpan span = a.spans[i];
    const int32_t before = span.key_count - span.query_count;
    float sum[kSize] = {};  // of what the means of this row and of those after it pass back
    TEARLESS_UNROLL_BY(4)
    for (int32_t q = span.query_count - 1; q >= 0; --q) {
      const int64_t at = (int64_t{span.query_begin} + q) * a.width + c;
      const float divisor = static_cast<float>(before + q + 1);
      float d_out[kSize], d_x[kSize];
      load_group<kAligned>(a.d_out + at, count, d_out);
      load_group<kAligned>(a.d_x + at, count, d_x);
      TEARLESS_UNROLL
      for (int j = 0; j < kSize; ++j) {
        sum[j] += d_out[j] / divisor;
        d_x[j] += sum[j];
      }
      store_group<kAligned>(a.d_x + at, count, d_x);
    }
  }
};

template <class T, class Runner>
void launch(const RunningMeans<T>& a, Runner& runner) {
  const bool aligned = all_aligned(a.width, a.x, a.out) && is_aligned(a.sums, a.width);
  launch_groups<RunningMeanRows>(a, a.span_count, a.width, aligned, runner);
}

template <class T, class Runner>
void launch(const RunningMeansBackward<T>& a, Runner& runner) {
  launch_groups<RunningMeanGradients>(a, a.span_count, a.width, all_aligned(a.width, a.d_out, a.d_x), runner);
}

}  // namespace tearless::engine
