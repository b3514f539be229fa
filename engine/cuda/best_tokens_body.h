// The best tokens of each row of logits with their log-softmax (kernels.h: BestTokens), one block per row:
//   1. each thread finds the best token of its part of the row (every threads()-th group of tokens), and its part of
//      the softmax's sum;
//   2. `count` times, a warp takes the best of its lanes' tokens, and the lane that it came from searches its part
//      again for the next best;
//   3. warp 0 merges the warps' sorted lists.
//
// A token and its logit are packed into one integer key (TokenKey): the better token has the larger key, and no two
// keys are equal.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <stdexcept>
#include <string>

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/cuda/online_softmax.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

/// A key that orders tokens by logit, ties to the smaller token: the better token has the larger key. 0 means no token.
class TokenKey {
 public:
  TEARLESS_BODY static uint64_t of(float logit, int64_t token) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, logit == 0.0f ? 0.0f : logit);  // -0 counts as 0
    const uint32_t ordered = bits & kSign ? ~bits : bits | kSign;
    return uint64_t{ordered} << 32 | ~static_cast<uint32_t>(token);
  }
  TEARLESS_BODY static int32_t token(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }
  TEARLESS_BODY static float logit(uint64_t key) {
    const uint32_t ordered = static_cast<uint32_t>(key >> 32);
    return __builtin_bit_cast(float, ordered& kSign ? ordered & ~kSign : ~ordered);
  }

 private:
  static constexpr uint32_t kSign = 0x80000000u;
};

template <class T, bool kAligned>
struct BestTokensRow {
  static constexpr const char* kName = "best_tokens";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kAligned ? kWideGroup<T> : 1;  // with 1, a warp's loads are still coalesced
  BestTokens<T> a;

  Shape shape() const {
    // Fewer warps for a small vocabulary.
    const int64_t most = kThreads / kLanes;
    const int64_t warps = std::clamp<int64_t>(blocks_for(a.vocab_size, 2 * kLanes * kSize), 1, most);
    return {a.rows, kLanes * static_cast<int>(warps), kBlockSumBytes<float> + warps * a.count * 8};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    LogitSoftmax exps;
    uint64_t best = 0;
    for_groups(block, [&](int64_t first, int count, const float(&z)[kSize]) {
      exps.raise(z, count);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (i >= count) continue;
        exps.add(z[i]);
        best = better(best, key_of(z[i], first + i));
      }
    });

    const int count = static_cast<int>(a.count);
    uint64_t* lists = reinterpret_cast<uint64_t*>(block.shared() + kBlockSumBytes<float>);  // [warps, count]
    for (int rank = 0; rank < count; ++rank) {
      const uint64_t top = block.butterfly(best, [](uint64_t x, uint64_t y) { return better(x, y); });
      if (block.lane() == 0) lists[block.warp() * count + rank] = top;
      if (top == 0 || best != top) continue;
      best = 0;
      for_groups(block, [&](int64_t first, int in_group, const float(&z)[kSize]) {
        TEARLESS_UNROLL
        for (int i = 0; i < kSize; ++i) {
          const uint64_t key = i < in_group ? key_of(z[i], first + i) : 0;
          if (key < top) best = better(best, key);
        }
      });
    }

    const LogitSoftmax of_row = exps.joined(block);
    const float top = of_row.max, log_sum = logf(of_row.sum);
    if (block.warp() != 0) return;
    int taken = 0;  // from the list of warp lane(): lane w merges for warp w
    for (int rank = 0; rank < count; ++rank) {
      const bool any = block.lane() < block.warps() && taken < count;
      const uint64_t candidate = any ? lists[block.lane() * count + taken] : 0;
      const uint64_t winner = block.butterfly(candidate, [](uint64_t x, uint64_t y) { return better(x, y); });
      if (candidate == winner) ++taken;
      if (block.lane() != 0) continue;
      const float logit = winner == 0 ? -INFINITY : TokenKey::logit(winner);
      a.tokens[block.index() * count + rank] = winner == 0 ? -1 : TokenKey::token(winner);
      a.log_p[block.index() * count + rank] = logit == -INFINITY ? -INFINITY : (logit - top) - log_sum;
    }
  }

 private:
  TEARLESS_BODY static uint64_t better(uint64_t x, uint64_t y) { return x > y ? x : y; }
  TEARLESS_BODY uint64_t key_of(float logit, int64_t token) const {
    return token == a.forbidden ? 0 : TokenKey::of(logit, token);
  }

  /// Calls f(first token, count, logits) for every group of the thread's part of the row; NaN is passed as -∞.
  template <class Block, class F>
  TEARLESS_BODY void for_groups(Block& block, F&& f) const {
    const T* row = a.logits + block.index() * a.stride;
    const int64_t step = int64_t{block.threads()} * kSize;
    for (int64_t v = int64_t{block.thread()} * kSize; v < a.vocab_size; v += step) {
      const int count = inside<kSize>(v, a.vocab_size);
      float z[kSize];
      load_group<kAligned>(row + v, count, z);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (z[i] != z[i]) z[i] = -INFINITY;
      }
      f(v, count, z);
    }
  }
};

template <class T, class Runner>
void launch(const BestTokens<T>& a, Runner& runner) {
  if (a.count < 1 || a.count > kMaxBestTokens) {
    throw std::invalid_argument("the CUDA kernel finds 1 to " + std::to_string(kMaxBestTokens) +
                                " best tokens of a row, not " + std::to_string(a.count));
  }
  if (a.rows == 0) return;
  with_alignment(is_aligned(a.logits, a.stride), [&](auto aligned) { runner.run(BestTokensRow<T, aligned.value>{a}); });
}

}  // namespace tearless::engine
