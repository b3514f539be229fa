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
struct EmbeddingRows {
  static constexpr const char* kName = "embedding";
  static constexpr int kThreads = Tiling::kThreads;
  static constexpr int kSize = kGroup<T, kAligned>;
  Embedding<T> a;
  Tiling tiling;

  Shape shape() const { return {tiling.blocks(a.rows), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const auto [t, c, count] = group_of<kSize>(tiling, block, a.width);
    if (t >= a.rows || count == 0) return;
    const int64_t position = a.counters.positions[t];
    float x[kSize], place[kSize];
    load_group<kAligned>(a.table + a.tokens[t] * a.width + c, count, x);
    load_group<kAligned>(a.positions + position * a.width + c, count, place);
    const float scale = static_cast<float>(a.scale);
    TEARLESS_UNROLL
    for (int i = 0; i < kSize; ++i) x[i] = scale * x[i] + place[i];
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
    float* sums = reinterpret_cast<float*>(block.shared());             // [kWarps, kTile]
    int* count_room = reinterpret_cast<int*>(sums + kWarps * kTile);    // for block_sum
    int32_t* window = reinterpret_cast<int32_t*>(count_room + kLanes);  // tokens from first - 1 on
    const uint32_t tiles = static_cast<uint32_t>(blocks_for(a.width, kTile));
    const int64_t first = int64_t{static_cast<uint32_t>(block.index()) / tiles} * kStarts;
    const int64_t c = int64_t{static_cast<uint32_t>(block.index()) % tiles} * kTile + block.lane() * kSize;
    const int channels = inside<kSize>(c, a.width);
    const Mask mask(a.dropout);
    const float scale = static_cast<float>(a.scale);

    // No token is negative: -1 marks the index before the first and those after the last.
    const auto token_at = [&](int64_t i) { return i < 0 || i >= a.rows ? -1 : a.tokens[a.by_token[i]]; };
    window[block.thread() + 1] = token_at(first + block.thread());
    if (block.thread() == 0) window[0] = token_at(first - 1);
    block.sync();

    for (int start = 0; start < kStarts && first + start < a.rows; ++start) {
      const int32_t token = window[start + 1];
      if (token == window[start]) continue;
      // The segment's length. Tokens are sorted, so count those equal to `token`, kThreads at a time, until not all
      // are. The window has the tokens up to index first + kThreads - 1.
      int64_t length = 0;
      for (int64_t from = first + start;; from += kThreads) {
        const int64_t i = from + block.thread();
        const bool same = (i < first + kThreads ? window[i - first + 1] : token_at(i)) == token;
        const int found = block_sum(block, same ? 1 : 0, count_room);
        length += found;
        if (found < kThreads) break;
      }

      float sum[kSize] = {};
      if (channels > 0) {
        TEARLESS_UNROLL_BY(4)
        for (int64_t j = block.warp(); j < length; j += kWarps) {
          const int64_t t = a.by_token[first + start + j];
          float d[kSize];
          load_group<kAligned>(a.d_out + t * a.width + c, channels, d);
          if (mask.active()) {
            mask.apply(c, static_cast<uint32_t>(a.counters.positions[t]),
                       static_cast<uint32_t>(a.counters.sentence_ids[t]), d);
          }
          TEARLESS_UNROLL
          for (int i = 0; i < kSize; ++i) sum[i] += d[i];
        }
      }
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) sums[block.warp() * kTile + i * kLanes + block.lane()] = sum[i];
      block.sync();
      if (block.warp() == 0 && channels > 0) {
        float total[kSize], old[kSize];
        float* to = a.d_table + token * a.width + c;
        load_group<kAligned>(to, channels, old);
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) {
          total[i] = sum[i];
          for (int w = 1; w < kWarps; ++w) total[i] += sums[w * kTile + i * kLanes + block.lane()];
          total[i] = old[i] + scale * total[i];
        }
        store_group<kAligned>(to, channels, total);
      }  // no sync() here: block_sum() for the next segment's length has barriers before that segment writes `sums`
    }
  }
};

template <class T, class Runner>
void launch(const Embedding<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  if (is_aligned(a.table, a.width) && is_aligned(a.positions, a.width) && is_aligned(a.out, a.width)) {
    runner.run(EmbeddingRows<T, true>{a, Tiling::of(a.width, kGroup<T, true>)});
  } else {
    runner.run(EmbeddingRows<T, false>{a, Tiling::of(a.width, kGroup<T, false>)});
  }
}

template <class T, class Runner>
void launch(const EmbeddingBackward<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  if (is_aligned(a.d_out, a.width) && is_aligned(a.d_table, a.width)) {
    runner.run(EmbeddingSegments<T, true>{a});
  } else {
    runner.run(EmbeddingSegments<T, false>{a});
  }
}

}  // namespace tearless::engine
