// softmax(q kᵀ / √d_h) v over packed rows (kernels.h: Attention), one thread block per (span, head). This file chooses
// and launches the kernel. There are two kinds:
//   attention_mma*.h     bf16 on tensor cores, where head width, alignment and shared memory allow;
//   attention_simt*.h    float, and every other bf16.
// They have the same structure, masks and saved values, so forward may be of one kind and backward of the other.
//
//   attention_span.h             rows of a (span, head), causal mask, tile bounds, dropout counters
//   attention_layout.h           shared memory and the sizes of tiles
//   online_softmax.h             maximum and sum of a row of scores
//   attention_simt.h, _mma.h     loads and matmuls of one warp
//   …_forward.h, …_backward.h    the kernels
//   attention_one_query.h        forward of spans with one query, chosen by Attention::one_query
//   attention_mma_short.h        backward of short sentences, chosen by AttentionBackward::short_spans
//
// Each warp of a block takes some rows of one side ("the warp's rows") and loops over tiles of the other side in shared
// memory, which the whole block loads. Forward: the warp's rows are queries. Backward: first compute_d_q(), with
// queries as the warp's rows; then compute_d_k_d_v(), with keys as the warp's rows. Each row of a gradient is written
// by one warp, so there are no atomics.
//
// With P the probabilities, m the dropout multipliers (0 or 1 / (1 - p)) and δ the gradient of the output:
//   out     = (m ⊙ P) v
//   ∂v      = (m ⊙ P)ᵀ δ
//   G       = m ⊙ (δ vᵀ)
//   ∂scores = P ⊙ (G - Σ_j P_j G_j)
//   ∂q      = ∂scores k / √d_h
//   ∂k      = ∂scoresᵀ q / √d_h
//
// Saved for backward: the logsumexp log Σ_j e^score of each query row and head, at [row · heads + head]. P and m are
// recomputed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/cuda/attention_layout.h"
#include "engine/cuda/attention_mma_backward.h"
#include "engine/cuda/attention_mma_forward.h"
#include "engine/cuda/attention_mma_short.h"
#include "engine/cuda/attention_one_query.h"
#include "engine/cuda/attention_simt_backward.h"
#include "engine/cuda/attention_simt_forward.h"
#include "engine/cuda/attention_span.h"
#include "engine/cuda/group.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// Elements of Attention::saved: one float for each query row, up to the last one of a span, and head.
inline int64_t attention_saved_size(const AttentionSpan* spans, int64_t span_count, int64_t heads) {
  int64_t rows = 0;
  for (int64_t i = 0; i < span_count; ++i) {
    rows = std::max<int64_t>(rows, int64_t{spans[i].query_begin} + spans[i].query_count);
  }
  return rows * heads;
}

// --- without tensor cores ---

/// Calls f with the number of channels that a lane accumulates (kPerLane), as an std::integral_constant.
template <class F>
void with_channels_per_lane(int64_t d_head, F&& f) {
  if (d_head <= 32) return f(std::integral_constant<int, 1>{});
  if (d_head <= 64) return f(std::integral_constant<int, 2>{});
  if (d_head <= 128) return f(std::integral_constant<int, 4>{});
  f(std::integral_constant<int, static_cast<int>(kMaxHead) / kLanes>{});
}

/// data[i, c] = 0, rows `stride` elements apart.
template <class T>
struct ZeroRows {
  static constexpr const char* kName = "zero_rows";
  static constexpr int kThreads = 256;
  T* data;
  int64_t rows, width, stride;

  Shape shape() const { return {blocks_for(rows * width, kThreads), kThreads, 0}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t e = block.index() * kThreads + block.thread();
    if (e < rows * width) data[e / width * stride + e % width] = static_cast<T>(0.0f);
  }
};

template <class T, class Runner>
void launch_simt(const Attention<T>& a, Runner& runner) {
  const int64_t d_model = a.heads * a.d_head;
  if (a.padded_rows > 0) runner.run(ZeroRows<T>{a.out, a.padded_rows, d_model, d_model});
  const SimtLayout layout = SimtLayout::of(a, a.max_key_length, {.operands = 1});
  with_channels_per_lane(layout.channels, [&](auto channels) {
    if (a.key_rows) {
      runner.run(SimtAttentionForward<T, channels.value, true>{a, layout, heads_are_aligned(a)});
    } else {
      runner.run(SimtAttentionForward<T, channels.value, false>{a, layout, heads_are_aligned(a)});
    }
  });
}
template <class T, class Runner>
void launch_simt(const AttentionBackward<T>& b, Runner& runner) {
  if (b.stored_rows > 0) {
    const int64_t d_model = b.forward.heads * b.forward.d_head;
    runner.run(ZeroRows<T>{b.d_q, b.stored_rows, d_model, b.d_q_stride});
    if (b.stores_keys) {
      runner.run(ZeroRows<T>{b.d_k, b.stored_rows, d_model, b.d_k_stride});
      runner.run(ZeroRows<T>{b.d_v, b.stored_rows, d_model, b.d_v_stride});
    }
  }
  const SimtLayout layout = SimtLayout::of(b.forward, std::max(b.forward.max_query_length, b.forward.max_key_length),
                                           {.operands = 2, .stats = true});
  const bool aligned = heads_are_aligned(b.forward) && is_aligned(b.d_out, b.forward.heads * b.forward.d_head);
  with_channels_per_lane(layout.channels, [&](auto channels) {
    runner.run(SimtAttentionBackward<T, channels.value>{b, layout, aligned});
  });
}

// --- on tensor cores ---

/// Whether the tensor-core kernels support this d_head and these operands.
inline bool mma_takes(const Attention<bf16>& a) {
  return a.d_head % 16 == 0 && a.d_head <= kMaxMmaHead && !a.key_rows && heads_are_aligned(a);
}

/// Calls f with the number of blocks of 16 channels (kChunks), as an std::integral_constant.
template <class F>
auto with_mma_chunks(int64_t d_head, F&& f) {
  if (d_head <= 32) return f(std::integral_constant<int, 2>{});
  if (d_head <= 64) return f(std::integral_constant<int, 4>{});
  return f(std::integral_constant<int, static_cast<int>(kMaxMmaHead) / 16>{});
}

/// Launches the tensor-core kernel, or returns false where it does not support the call.
template <class Runner>
bool launch_mma(const Attention<bf16>& a, Runner& runner) {
  if (!mma_takes(a) || !is_aligned(a.out, a.heads * a.d_head)) return false;
  return with_mma_chunks(a.d_head, [&](auto chunks) {
    MmaLayout layout;
    if (!MmaLayout::of(a, kMmaRowElements<chunks.value>, /*backward=*/false, layout)) return false;
    runner.run(MmaAttentionForward<chunks.value>{a, layout, score_scale(a.d_head)});
    return true;
  });
}
template <class Runner>
bool launch_mma(const AttentionBackward<bf16>& b, Runner& runner) {
  const Attention<bf16>& a = b.forward;
  if (!mma_takes(a) || !is_aligned(b.d_out, a.heads * a.d_head) || !is_aligned(b.d_q, b.d_q_stride) ||
      !is_aligned(b.d_k, b.d_k_stride) || !is_aligned(b.d_v, b.d_v_stride)) {
    return false;
  }
  const int64_t longest = std::max(a.max_query_length, a.max_key_length);
  return with_mma_chunks(a.d_head, [&](auto chunks) {
    if (b.short_spans && longest <= kMaxShort) {
      with_short_blocks(longest, [&](auto blocks) {
        runner.run(MmaAttentionBackwardShort<chunks.value, blocks.value>{b, score_scale(a.d_head)});
      });
      return true;
    }
    MmaLayout layout;
    if (!MmaLayout::of(a, kMmaRowElements<chunks.value>, /*backward=*/true, layout)) return false;
    runner.run(MmaAttentionBackward<chunks.value>{b, layout, score_scale(a.d_head)});
    return true;
  });
}

/// launch() of Attention<T> and AttentionBackward<T>.
template <template <class> class Call, class T, class Runner>
requires std::is_same_v<Call<T>, Attention<T>> || std::is_same_v<Call<T>, AttentionBackward<T>>
void launch(const Call<T>& call, Runner& runner) {
  if constexpr (std::is_same_v<Call<T>, Attention<T>>) {
    if (launch_one_query(call, runner)) return;
  }
  if constexpr (std::is_same_v<T, bf16>) {
    if (launch_mma(call, runner)) return;
  }
  launch_simt(call, runner);
}

}  // namespace tearless::engine
