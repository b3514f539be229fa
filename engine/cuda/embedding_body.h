// Token embedding + position with dropout on the sum (kernels.h: Embedding). Backward works on segments of by_token:
// all rows of a token are summed by one block, so there are no atomics.
#pragma once

#include "engine/cuda/block.h"
#include "engine/cuda/column_sums_body.h"
#include "engine/cuda/dropout_body.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct EmbeddingRows : GroupBody<T, kAligned> {
  static constexpr const char* kName = "embedding";
  using GroupBody<T, kAligned>::kSize;
  Embedding<T> a;

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = this->group(block);
    if (count == 0) return;
    const int64_t position = a.counters.positions[t];
    float x[kSize] = {}, position_embedding[kSize];
    if (a.tokens[t] >= 0) load_group<kAligned>(a.table + a.tokens[t] * a.width + c, count, x);
    load_group<kAligned>(a.positions + position * a.width + c, count, position_embedding);
    const float scale = static_cast<float>(a.scale);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] = scale * x[i] + position_embedding[i];
    const Mask mask(a.dropout);
    if (mask.active()) {
      mask.apply(c, static_cast<uint32_t>(position), static_cast<uint32_t>(a.counters.sentence_ids[t]), x);
    }
    store_group<kAligned>(a.out + t * a.width + c, count, x);
  }
};

/// A block handles the segments that start at one of kStarts consecutive indices of by_token, for a tile of channels.
/// Each warp sums every kWarps-th row of a segment; then the warps' sums are added in order.
template <class T, bool kAligned>
struct EmbeddingSegments {
  static constexpr const char* kName = "embedding_backward";
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / kLanes;
  static constexpr int kSize = kGroup<T, kAligned>;
  static constexpr int kStarts = 8;
  static constexpr int kTile = kLanes * kSize;
  EmbeddingBackward<T> a;

  Shape shape() const {
    return {blocks_for(a.rows, kStarts) * blocks_for(a.width, kTile), kThreads,
            kWarps * kTile * 4 + kBlockSumBytes<int> + (kThreads + 1) * 4};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const uint32_t tiles = static_cast<uint32_t>(blocks_for(a.width, kTile));
    const int64_t first = int64_t{static_cast<uint32_t>(block.index()) / tiles} * kStarts;
    const int64_t c = int64_t{static_cast<uint32_t>(block.index()) % tiles} * kTile + block.lane() * kSize;
    const int count = inside<kSize>(c, a.width);
    const Mask mask(a.dropout);

    int32_t* window = window_of(block);
    window[block.thread() + 1] = token_at(first + block.thread());
    if (block.thread() == 0) window[0] = token_at(first - 1);
    block.sync();
    for (int start = 0; start < kStarts && first + start < a.rows; ++start) {
      if (window[start + 1] == window[start]) continue;
      const int64_t length = segment_length(block, first, start);
      float sum[kSize] = {};
      if (count > 0) sum_rows(block, mask, first + start, length, c, count, sum);
      add_to_table(block, window[start + 1], c, count, sum);
      // No sync() here: block_sum() for the next segment's length has barriers before that segment writes warp_sums().
    }
  }

 private:
  /// [kWarps, kSize, kLanes]: the warps' sums of a segment.
  template <class Block>
  TEARLESS_BODY static float* warp_sums(Block& block) {
    return reinterpret_cast<float*>(block.shared());
  }
  /// For block_sum().
  template <class Block>
  TEARLESS_BODY static int* count_scratch(Block& block) {
    return reinterpret_cast<int*>(warp_sums(block) + kWarps * kTile);
  }
  /// [kThreads + 1]: the tokens at first - 1, first, …
  template <class Block>
  TEARLESS_BODY static int32_t* window_of(Block& block) {
    return reinterpret_cast<int32_t*>(count_scratch(block) + kLanes);
  }

  /// The token at an index of by_token. -1 before the first index and after the last, as of rows without a token
  /// (kNoToken), which are the first of by_token: they start no segment.
  TEARLESS_BODY int32_t token_at(int64_t i) const { return i < 0 || i >= a.rows ? -1 : a.tokens[a.by_token[i]]; }

  /// How many indices from first + start on have the same token. Tokens are sorted, so it counts those equal to it,
  /// kThreads at a time, until not all are. The window has the tokens up to index first + kThreads - 1.
  template <class Block>
  TEARLESS_BODY int64_t segment_length(Block& block, int64_t first, int start) const {
    const int32_t* window = window_of(block);
    const int32_t token = window[start + 1];
    int64_t length = 0;
    for (int64_t from = first + start;; from += kThreads) {
      const int64_t i = from + block.thread();
      const bool same = (i < first + kThreads ? window[i - first + 1] : token_at(i)) == token;
      const int found = block_sum(block, same ? 1 : 0, count_scratch(block));
      length += found;
      if (found < kThreads) return length;
    }
  }

  /// The warp's part of Σ drop'(∂out) over a segment's rows, in the lane's channels.
  template <class Block>
  TEARLESS_BODY void sum_rows(Block& block, const Mask& mask, int64_t begin, int64_t length, int64_t c, int count,
                              float (&sum)[kSize]) const {
    TEARLESS_UNROLL_BY(4)
    for (int64_t j = block.warp(); j < length; j += kWarps) {
      const int64_t t = a.by_token[begin + j];
      float d[kSize];
      load_group<kAligned>(a.d_out + t * a.width + c, count, d);
      const RowCounter counter = counter_of(mask, a.counters, t);
      mask.apply(c, counter.outer, counter.sentence, d);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) sum[i] += d[i];
    }
  }

  /// d_table[token] += scale · the warps' sums, which warp 0 adds in order.
  template <class Block>
  TEARLESS_BODY void add_to_table(Block& block, int32_t token, int64_t c, int count, const float (&sum)[kSize]) const {
    float* sums = warp_sums(block);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) sums[block.warp() * kTile + i * kLanes + block.lane()] = sum[i];
    block.sync();
    if (block.warp() != 0 || count == 0) return;
    const float scale = static_cast<float>(a.scale);
    float total[kSize], old[kSize];
    float* to = a.d_table + token * a.width + c;
    load_group<kAligned>(to, count, old);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) {
      total[i] = sum[i];
      for (int w = 1; w < kWarps; ++w) total[i] += sums[w * kTile + i * kLanes + block.lane()];
      total[i] = old[i] + scale * total[i];
    }
    store_group<kAligned>(to, count, total);
  }
};

template <class T, class Runner>
void launch(const Embedding<T>& a, Runner& runner) {
  launch_groups<EmbeddingRows>(a, a.rows, a.width, all_aligned(a.width, a.table, a.positions, a.out), runner);
}

template <class T, class Runner>
void launch(const EmbeddingBackward<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  with_alignment(all_aligned(a.width, a.d_out, a.d_table),
                 [&](auto aligned) { runner.run(EmbeddingSegments<T, aligned.value>{a}); });
}

}  // namespace tearless::engine
