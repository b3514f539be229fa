// Label-smoothed cross-entropy, loss and gradient in place (kernels.h: CrossEntropy). One block per row, which it reads
// once for the sum of exponentials and once more, from the cache, to overwrite it with the gradient.
//
//   nll              = log Σ_v e^(z_v - max) + max - z_gold
//   Σ_v -log p(v)    = K · nll - Σ_v (z_v - z_gold)        the smoothing term, from a sum of small numbers
//
// The token without mass is left out of the second sum: K is then one less.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "engine/cuda/block.h"
#include "engine/cuda/group.h"
#include "engine/cuda/online_softmax.h"
#include "engine/ops/kernels.h"

namespace tearless::engine {

template <class T, bool kAligned>
struct CrossEntropyRow {
  static constexpr const char* kName = "cross_entropy";
  static constexpr int kThreads = 256;
  static constexpr int kSize = kAligned ? kWideGroup<T> : 1;  // with 1, a warp's loads are still coalesced
  CrossEntropy<T> a;

  Shape shape() const {
    // Fewer warps for a small vocabulary.
    const int warps = static_cast<int>(blocks_for(a.vocab_size, 2 * kLanes * kSize));
    return {a.rows, kLanes * std::clamp(warps, 1, kThreads / kLanes), kBlockSumBytes<float>};
  }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    const int64_t t = block.index();
    T* row = a.logits + t * a.stride;
    const int64_t gold = a.labels[t];
    if (gold < 0) {
      if (block.thread() == 0) a.row_losses[t] = {0, 0};
      if (a.gradient) clear(block, row);
      return;
    }
    const float gold_logit = static_cast<float>(row[gold]);
    // Read before another thread writes the gradient.
    const float left_out = a.without >= 0 ? static_cast<float>(row[a.without]) - gold_logit : 0;
    float above_gold = 0;  // Σ_v (z_v - z_gold)
    const LogitSoftmax softmax = read(block, row, gold_logit, above_gold);
    if (block.thread() == 0) {
      const double nll =
          static_cast<double>(logf(softmax.sum)) + (static_cast<double>(softmax.max) - static_cast<double>(gold_logit));
      const double above = static_cast<double>(above_gold) - static_cast<double>(left_out);
      const double smooth = static_cast<double>(a.vocab_size - (a.without >= 0)) * nll - above;
      a.row_losses[t] = {a.gold * nll + a.each * smooth - a.entropy, nll};
    }
    if (a.gradient) write_gradient(block, row, t, gold, softmax);
  }

 private:
  /// Calls f(v, count) for the thread's groups of the row: tokens v … v + count - 1.
  template <class Block, class F>
  TEARLESS_BODY void for_groups(const Block& block, F&& f) const {
    const int64_t step = int64_t{block.threads()} * kSize;
    for (int64_t v = int64_t{block.thread()} * kSize; v < a.vocab_size; v += step) {
      f(v, inside<kSize>(v, a.vocab_size));
    }
  }

  template <class Block>
  TEARLESS_BODY void clear(const Block& block, T* row) const {
    for_groups(block, [&](int64_t v, int count) {
      const float zeros[kSize] = {};
      store_group<kAligned>(row + v, count, zeros);
    });
  }

  /// The row's softmax and Σ_v (z_v - z_gold), in all threads.
  template <class Block>
  TEARLESS_BODY LogitSoftmax read(Block& block, const T* row, float gold_logit, float& above_gold) const {
    LogitSoftmax softmax;
    float above = 0;
    for_groups(block, [&](int64_t v, int count) {
      float z[kSize];
      load_group<kAligned>(row + v, count, z);
      softmax.raise(z, count);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        if (i >= count) continue;
        softmax.add(z[i]);
        above += z[i] - gold_logit;
      }
    });
    const LogitSoftmax of_row = softmax.joined(block);
    above_gold = block_sum(block, above, block.shared());
    return of_row;
  }

  /// z_v = loss_scale · w_t · (p(v) - q(v)).
  template <class Block>
  TEARLESS_BODY void write_gradient(const Block& block, T* row, int64_t t, int64_t gold,
                                    const LogitSoftmax& softmax) const {
    double loss_scale = a.loss_scale_at ? *a.loss_scale_at : a.loss_scale;
    if (a.row_weights) loss_scale *= static_cast<double>(a.row_weights[t]);
    const float factor = static_cast<float>(loss_scale) / softmax.sum;
    const float flat = static_cast<float>(loss_scale * a.each);
    const float of_gold = static_cast<float>(loss_scale * a.gold);
    for_groups(block, [&](int64_t v, int count) {
      float z[kSize];
      load_group<kAligned>(row + v, count, z);
      TEARLESS_UNROLL
      for (int i = 0; i < kSize; ++i) {
        z[i] = softmax.exp(z[i]) * factor - (v + i == a.without ? 0 : flat);
        if (v + i == gold) z[i] -= of_gold;
      }
      store_group<kAligned>(row + v, count, z);
    });
  }
};

/// *sum += Σ row_losses, by one block in a fixed order: each thread adds every kThreads-th row, then block_sum().
struct SumRowLosses {
  static constexpr const char* kName = "cross_entropy_sum";
  static constexpr int kThreads = 256;
  const RowLoss* row_losses;
  int64_t rows;
  RowLoss* sum;

  Shape shape() const { return {1, kThreads, kBlockSumBytes<double>}; }

  template <class Block>
  TEARLESS_BODY void operator()(Block& block) const {
    double loss = 0, nll = 0;
    for (int64_t t = block.thread(); t < rows; t += kThreads) {
      loss += row_losses[t].loss;
      nll += row_losses[t].nll;
    }
    loss = block_sum(block, loss, block.shared());
    nll = block_sum(block, nll, block.shared());
    if (block.thread() != 0) return;
    sum->loss += loss;
    sum->nll += nll;
  }
};

template <class T, class Runner>
void launch(const CrossEntropy<T>& a, Runner& runner) {
  if (a.rows == 0) return;
  with_alignment(is_aligned(a.logits, a.stride),
                 [&](auto aligned) { runner.run(CrossEntropyRow<T, aligned.value>{a}); });
  if (a.sum) runner.run(SumRowLosses{a.row_losses, a.rows, a.sum});
}

}  // namespace tearless::engine
